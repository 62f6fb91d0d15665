"""
The kinds that Sevenhop knows: one row each.

A kind is watched only if the API server serves it.  `name` is how code names it: the bare kind for core objects,
``Kind.group`` for all others, as kubectl does.
"""

from __future__ import annotations

import msgspec

from sevenhop.core.objects import cluster as c
from sevenhop.core.objects.base import Custom, Object, Workspace
from sevenhop.core.objects.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from sevenhop.core.objects.pod import Pod
from sevenhop.core.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass


class Kind(msgspec.Struct, frozen=True):
    """
    One kind of object.

    Attributes:
        name: ``Pod``, ``Deployment.apps``, ``RayService.ray.io``.
        versions: Served versions that we can read, the preferred one first.
        struct: What it is decoded to.
        essential: Without it nothing can be said; other kinds are simply absent.
        why: What it is read for; rendered into docs and the chart's role.
    """

    name: str
    kind: str
    group: str
    versions: tuple[str, ...]
    plural: str
    struct: type[Object]
    why: str
    namespaced: bool = True
    essential: bool = False

    def path(self, version: str, namespace: str = "") -> str:
        """API path of the list, such as ``/apis/apps/v1/deployments``."""
        root = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"


def _kind(
    kind: str,
    group: str,
    versions: str,
    plural: str,
    struct: type[Object],
    why: str,
    *,
    namespaced: bool = True,
    essential: bool = False,
) -> Kind:
    name = f"{kind}.{group}" if group else kind
    return Kind(name, kind, group, tuple(versions.split()), plural, struct, why, namespaced, essential)


_ROWS = (
    _kind("Pod", "", "v1", "pods", Pod, "who runs, who waits", essential=True),
    _kind(
        "Node",
        "",
        "v1",
        "nodes",
        c.Node,
        "capacity, labels, taints",
        namespaced=False,
        essential=True,
    ),
    _kind("Namespace", "", "v1", "namespaces", c.Namespace, "labels, tier and owner", namespaced=False),
    _kind("Event", "", "v1", "events", c.Event, "evidence"),
    _kind("Service", "", "v1", "services", c.Service, "hop service"),
    _kind(
        "PersistentVolume",
        "",
        "v1",
        "persistentvolumes",
        PersistentVolume,
        "placement",
        namespaced=False,
    ),
    _kind(
        "PersistentVolumeClaim",
        "",
        "v1",
        "persistentvolumeclaims",
        PersistentVolumeClaim,
        "placement",
    ),
    _kind("ResourceQuota", "", "v1", "resourcequotas", c.ResourceQuota, "quota"),
    _kind("LimitRange", "", "v1", "limitranges", c.LimitRange, "quota"),
    _kind("EndpointSlice", "discovery.k8s.io", "v1", "endpointslices", c.EndpointSlice, "hop service"),
    _kind("Deployment", "apps", "v1", "deployments", c.Controller, "owners", essential=True),
    _kind("ReplicaSet", "apps", "v1", "replicasets", c.Controller, "owners", essential=True),
    _kind("StatefulSet", "apps", "v1", "statefulsets", c.Controller, "owners", essential=True),
    _kind("DaemonSet", "apps", "v1", "daemonsets", c.Controller, "device plugins"),
    _kind("Job", "batch", "v1", "jobs", c.Controller, "owners"),
    _kind(
        "HorizontalPodAutoscaler",
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        c.HorizontalPodAutoscaler,
        "who else scales",
    ),
    _kind(
        "PodDisruptionBudget",
        "policy",
        "v1",
        "poddisruptionbudgets",
        c.PodDisruptionBudget,
        "floors",
    ),
    _kind(
        "PriorityClass",
        "scheduling.k8s.io",
        "v1",
        "priorityclasses",
        c.PriorityClass,
        "preemption",
        namespaced=False,
    ),
    _kind(
        "StorageClass",
        "storage.k8s.io",
        "v1",
        "storageclasses",
        StorageClass,
        "placement",
        namespaced=False,
    ),
    _kind(
        "RuntimeClass",
        "node.k8s.io",
        "v1",
        "runtimeclasses",
        c.RuntimeClass,
        "overhead",
        namespaced=False,
    ),
    _kind(
        "DeviceClass",
        "resource.k8s.io",
        "v1 v1beta2 v1beta1",
        "deviceclasses",
        DeviceClass,
        "DRA",
        namespaced=False,
    ),
    _kind(
        "ResourceSlice",
        "resource.k8s.io",
        "v1 v1beta2 v1beta1",
        "resourceslices",
        ResourceSlice,
        "DRA",
        namespaced=False,
    ),
    _kind(
        "ResourceClaim",
        "resource.k8s.io",
        "v1 v1beta2 v1beta1",
        "resourceclaims",
        ResourceClaim,
        "DRA",
    ),
    _kind(
        "ResourceClaimTemplate",
        "resource.k8s.io",
        "v1 v1beta2 v1beta1",
        "resourceclaimtemplates",
        ResourceClaimTemplate,
        "DRA",
    ),
    # Frameworks
    _kind(
        "DynamoGraphDeployment",
        "nvidia.com",
        "v1beta1 v1alpha1",
        "dynamographdeployments",
        Custom,
        "Dynamo",
    ),
    _kind(
        "DynamoComponentDeployment",
        "nvidia.com",
        "v1beta1 v1alpha1",
        "dynamocomponentdeployments",
        Custom,
        "Dynamo",
    ),
    _kind(
        "DynamoGraphDeploymentScalingAdapter",
        "nvidia.com",
        "v1beta1 v1alpha1",
        "dynamographdeploymentscalingadapters",
        Custom,
        "Dynamo: who scales",
    ),
    _kind(
        "DynamoGraphDeploymentRequest",
        "nvidia.com",
        "v1beta1 v1alpha1",
        "dynamographdeploymentrequests",
        Custom,
        "Dynamo",
    ),
    _kind(
        "DynamoWorkerMetadata",
        "nvidia.com",
        "v1alpha1",
        "dynamoworkermetadatas",
        Custom,
        "Dynamo: registration",
    ),
    _kind("PodCliqueSet", "grove.io", "v1alpha1", "podcliquesets", Custom, "Grove"),
    _kind("PodClique", "grove.io", "v1alpha1", "podcliques", Custom, "Grove"),
    _kind("PodCliqueScalingGroup", "grove.io", "v1alpha1", "podcliquescalinggroups", Custom, "Grove"),
    _kind("PodGang", "scheduler.grove.io", "v1alpha1", "podgangs", Custom, "Grove: gangs"),
    _kind("RayService", "ray.io", "v1", "rayservices", Custom, "KubeRay"),
    _kind("RayCluster", "ray.io", "v1", "rayclusters", Custom, "KubeRay"),
    _kind("RayJob", "ray.io", "v1", "rayjobs", Custom, "KubeRay"),
    _kind("InferenceService", "serving.kserve.io", "v1beta1", "inferenceservices", Custom, "KServe"),
    _kind(
        "LLMInferenceService",
        "serving.kserve.io",
        "v1alpha2 v1alpha1",
        "llminferenceservices",
        Custom,
        "KServe",
    ),
    _kind(
        "LLMInferenceServiceConfig",
        "serving.kserve.io",
        "v1alpha2 v1alpha1",
        "llminferenceserviceconfigs",
        Custom,
        "KServe: base configs",
    ),
    _kind(
        "ServingRuntime",
        "serving.kserve.io",
        "v1alpha1",
        "servingruntimes",
        Custom,
        "KServe: runtimes",
    ),
    _kind(
        "ClusterServingRuntime",
        "serving.kserve.io",
        "v1alpha1",
        "clusterservingruntimes",
        Custom,
        "KServe: runtimes",
        namespaced=False,
    ),
    _kind("Service", "serving.knative.dev", "v1", "services", Custom, "KServe on Knative"),
    _kind("Configuration", "serving.knative.dev", "v1", "configurations", Custom, "KServe on Knative: owners"),
    _kind("Revision", "serving.knative.dev", "v1", "revisions", Custom, "KServe on Knative"),
    _kind(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io",
        "v1",
        "leaderworkersets",
        Custom,
        "LeaderWorkerSet",
    ),
    _kind(
        "DisaggregatedSet",
        "disaggregatedset.x-k8s.io",
        "v1",
        "disaggregatedsets",
        Custom,
        "LeaderWorkerSet",
    ),
    _kind(
        "DisaggregatedSetRoleScaler",
        "disaggregatedset.x-k8s.io",
        "v1",
        "disaggregatedsetrolescalers",
        Custom,
        "LeaderWorkerSet: who scales",
    ),
    _kind("JobSet", "jobset.x-k8s.io", "v1alpha2", "jobsets", Custom, "engines on several hosts"),
    _kind("Model", "kubeai.org", "v1", "models", Custom, "KubeAI"),
    _kind("StormService", "orchestration.aibrix.ai", "v1alpha1", "stormservices", Custom, "AIBrix"),
    _kind("RoleSet", "orchestration.aibrix.ai", "v1alpha1", "rolesets", Custom, "AIBrix"),
    _kind("PodSet", "orchestration.aibrix.ai", "v1alpha1", "podsets", Custom, "AIBrix"),
    _kind(
        "RayClusterFleet",
        "orchestration.aibrix.ai",
        "v1alpha1",
        "rayclusterfleets",
        Custom,
        "AIBrix",
    ),
    _kind(
        "PodAutoscaler",
        "autoscaling.aibrix.ai",
        "v1alpha1",
        "podautoscalers",
        Custom,
        "AIBrix: who scales",
    ),
    _kind(
        "VLLMRuntime",
        "production-stack.vllm.ai",
        "v1alpha1",
        "vllmruntimes",
        Custom,
        "production-stack",
    ),
    _kind(
        "VLLMRouter",
        "production-stack.vllm.ai",
        "v1alpha1",
        "vllmrouters",
        Custom,
        "production-stack",
    ),
    _kind(
        "RoleBasedGroup",
        "workloads.x-k8s.io",
        "v1alpha2 v1alpha1",
        "rolebasedgroups",
        Custom,
        "RBG",
    ),
    _kind(
        "RoleBasedGroupScalingAdapter",
        "workloads.x-k8s.io",
        "v1alpha2 v1alpha1",
        "rolebasedgroupscalingadapters",
        Custom,
        "RBG: who scales",
    ),
    _kind("NIMService", "apps.nvidia.com", "v1alpha1", "nimservices", Custom, "NIM"),
    _kind("Workspace", "kaito.sh", "v1beta1 v1alpha1", "workspaces", Workspace, "KAITO"),
    _kind("InferenceSet", "kaito.sh", "v1beta1 v1alpha1", "inferencesets", Custom, "KAITO"),
    _kind("MultiRoleInference", "kaito.sh", "v1alpha1", "multiroleinferences", Custom, "KAITO"),
    _kind(
        "InferencePool",
        "inference.networking.k8s.io",
        "v1",
        "inferencepools",
        Custom,
        "folds variants of one model",
    ),
    _kind(
        "InferencePool",
        "inference.networking.x-k8s.io",
        "v1alpha2",
        "inferencepools",
        Custom,
        "the same, older",
    ),
    _kind("VariantAutoscaling", "llmd.ai", "v1alpha1", "variantautoscalings", Custom, "llm-d: who scales"),
    _kind("ScaledObject", "keda.sh", "v1alpha1", "scaledobjects", Custom, "who else scales"),
    # Queues and gangs
    _kind(
        "Workload",
        "kueue.x-k8s.io",
        "v1beta2 v1beta1",
        "workloads",
        Custom,
        "Kueue: who waits for quota",
    ),
    _kind("LocalQueue", "kueue.x-k8s.io", "v1beta2 v1beta1", "localqueues", Custom, "Kueue"),
    _kind(
        "ClusterQueue",
        "kueue.x-k8s.io",
        "v1beta2 v1beta1",
        "clusterqueues",
        Custom,
        "Kueue",
        namespaced=False,
    ),
    _kind(
        "ResourceFlavor",
        "kueue.x-k8s.io",
        "v1beta2 v1beta1",
        "resourceflavors",
        Custom,
        "Kueue",
        namespaced=False,
    ),
    _kind("PodGroup", "scheduling.volcano.sh", "v1beta1", "podgroups", Custom, "Volcano gangs"),
    _kind("PodGroup", "scheduling.run.ai", "v2alpha2", "podgroups", Custom, "KAI gangs"),
)

KINDS: dict[str, Kind] = {row.name: row for row in _ROWS}


def kind_of(api_version: str, kind: str) -> Kind | None:
    """
    The row for an object's ``apiVersion`` and ``kind``, whatever the version; None if we do not read it.

    >>> kind_of("apps/v1", "Deployment").name
    'Deployment.apps'
    """
    group = api_version.rpartition("/")[0]
    if group == "events.k8s.io":
        group = ""
    return KINDS.get(f"{kind}.{group}" if group else kind)
