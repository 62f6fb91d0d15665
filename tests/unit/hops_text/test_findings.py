"""What is wrong with subjects that have no pod."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.events import SyncState
from sevenhop.core.hops.findings import findings
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.kinds import kind_of
from tests.unit.hops_text.pods_of_text import NOON, Doc, read

QUOTA = (
    'pods "x-1" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=8, '
    "used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"
)
NEEDS = (
    "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor f, 8 more needed"
)
NEVER = (
    "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor f, "
    "request > maximum capacity (16 > 8)"
)
GANG = "8/5 tasks in gang unschedulable: pod group is not ready, 5 Pending, 8 minAvailable"
DGD = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment"}
ISVC = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}
RAY = {"apiVersion": "ray.io/v1", "kind": "RayService"}
POOL_API = {"parents": "inference.networking.k8s.io/v1", "parent": "inference.networking.x-k8s.io/v1alpha2"}
KUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload"}


def doc(api: str, kind: str, *, name: str = "x", namespace: str = "prod", meta: Doc | None = None, **rest: Any) -> Doc:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": namespace} | (meta or {})} | rest


def custom(head: Doc, **rest: Any) -> Doc:
    return doc(head["apiVersion"], head["kind"], **rest)


def replica_set(*, wanted: int, has: int, message: str = QUOTA) -> Doc:
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    template = {"spec": {"containers": [{"name": "engine"}]}}
    spec = {"replicas": wanted, "template": template}
    return doc("apps/v1", "ReplicaSet", spec=spec, status={"replicas": has, "conditions": [failed]})


def node(*, labels: Doc, capacity: Doc, allocatable: Doc, ready: str = "True") -> Doc:
    status = {"capacity": capacity, "allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]}
    return doc("v1", "Node", namespace="", meta={"labels": labels}, status=status)


def event(kind: str, reason: str, message: str, api: str = "v1") -> Doc:
    about = {"kind": kind, "namespace": "prod", "name": "gone", "apiVersion": api}
    rest: Doc = {
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "type": "Warning",
        "lastTimestamp": NOON,
    }
    return doc("v1", "Event", name=f"gone.{reason}", **rest)


def found(*documents: Doc) -> list[tuple[str, str, str]]:
    """(kind, name, cause) of every finding; kinds that no document has were not collected."""
    objects = Objects()
    for kind in objects.states:
        objects.states[kind] = SyncState.NO_SOURCE
    for document in documents:
        row = kind_of(document["apiVersion"], document["kind"])
        assert row is not None
        objects.put(row.name, read(row.name, document))
        objects.states[row.name] = SyncState.SYNCED
    return [(f.kind, f.name, f.diagnosis.cause) for f in findings(objects)]


GPU = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "8"}
EIGHT = {"nvidia.com/gpu": "8", "cpu": "96"}


@pytest.mark.parametrize(
    ("document", "causes"),
    [
        pytest.param(replica_set(wanted=2, has=1), ["resource-quota"], id="may not create"),
        pytest.param(replica_set(wanted=2, has=2), [], id="has its pods again"),
        pytest.param(
            replica_set(wanted=1, has=0, message="something entirely new"),
            ["pod-rejected"],
            id="refused in unknown words",
        ),
        pytest.param(node(labels=GPU, capacity=EIGHT, allocatable=EIGHT), [], id="advertises what it has"),
        pytest.param(
            node(labels=GPU, capacity={"cpu": "96"}, allocatable={"cpu": "96"}),
            ["device-plugin-not-advertising"],
            id="advertises none",
        ),
        pytest.param(
            node(labels=GPU, capacity=EIGHT, allocatable=EIGHT | {"nvidia.com/gpu": "6"}),
            ["gpus-unhealthy"],
            id="advertises fewer than its capacity",
        ),
        pytest.param(
            node(labels=GPU, capacity={"nvidia.com/gpu": "7"}, allocatable={"nvidia.com/gpu": "7"}),
            ["gpus-unhealthy"],
            id="advertises fewer than its labels say",
        ),
        pytest.param(
            node(labels=GPU, capacity={"nvidia.com/gpu": "32"}, allocatable={"nvidia.com/gpu": "32"}),
            [],
            id="time-slicing advertises more",
        ),
        pytest.param(
            node(labels=GPU, capacity={"nvidia.com/mig-1g.10gb": "56"}, allocatable={"nvidia.com/mig-1g.10gb": "56"}),
            [],
            id="MIG advertises slices",
        ),
        pytest.param(
            node(labels={}, capacity={"cpu": "8"}, allocatable={"cpu": "8"}, ready="False"),
            [],
            id="a CPU node is not our business",
        ),
        pytest.param(
            node(labels=GPU, capacity=EIGHT, allocatable=EIGHT, ready="Unknown"),
            ["node-not-ready"],
            id="a GPU node is silent",
        ),
        pytest.param(
            custom(
                KUEUE,
                spec={"queueName": "q", "podSets": [{}]},
                status={
                    "conditions": [
                        {
                            "type": "QuotaReserved",
                            "status": "False",
                            "message": NEEDS,
                        }
                    ]
                },
            ),
            ["kueue-waiting"],
            id="Kueue: may still come",
        ),
        pytest.param(
            custom(
                KUEUE,
                spec={"queueName": "q", "podSets": [{}]},
                status={
                    "conditions": [
                        {
                            "type": "QuotaReserved",
                            "status": "False",
                            "message": NEVER,
                        }
                    ]
                },
            ),
            ["kueue-exceeds-max"],
            id="Kueue: never",
        ),
        pytest.param(
            custom(
                KUEUE,
                spec={"queueName": "q", "podSets": [{}]},
                status={
                    "conditions": [{"type": "QuotaReserved", "status": "True"}, {"type": "Admitted", "status": "True"}]
                },
            ),
            [],
            id="Kueue: admitted",
        ),
        pytest.param(
            doc(
                "scheduling.volcano.sh/v1beta1",
                "PodGroup",
                status={
                    "phase": "Inqueue",
                    "conditions": [
                        {
                            "type": "Unschedulable",
                            "status": "True",
                            "message": GANG,
                        }
                    ],
                },
            ),
            ["gang-waiting"],
            id="Volcano",
        ),
        pytest.param(
            doc(
                "scheduling.volcano.sh/v1beta1",
                "PodGroup",
                status={
                    "phase": "Running",
                    "conditions": [
                        {"type": "Unschedulable", "status": "True", "message": "8/5 tasks in gang unschedulable: x"}
                    ],
                },
            ),
            [],
            id="Volcano: runs by now",
        ),
        pytest.param(
            doc(
                "scheduling.run.ai/v2alpha2",
                "PodGroup",
                status={
                    "schedulingConditions": [
                        {
                            "type": "UnschedulableOnNodePool",
                            "reasons": [
                                {
                                    "reason": "OverLimit",
                                    "message": "a quota has reached the allowable limit of GPUs. Limit is 4 GPUs",
                                }
                            ],
                        }
                    ]
                },
            ),
            ["queue-quota"],
            id="KAI",
        ),
        pytest.param(
            doc("v1", "PersistentVolumeClaim", status={"phase": "Lost"}), ["pv-unavailable"], id="claim lost its volume"
        ),
        pytest.param(doc("v1", "PersistentVolumeClaim", status={"phase": "Bound"}), [], id="claim bound"),
        pytest.param(
            doc("v1", "PersistentVolumeClaim", status={"phase": "Pending"}), [], id="claim pending, class not collected"
        ),
        pytest.param(
            custom(DGD, status={"state": "failed", "conditions": []}),
            ["operator-reported"],
            id="Dynamo: failed without a word",
        ),
        pytest.param(
            custom(
                DGD,
                status={
                    "state": "pending",
                    "conditions": [
                        {
                            "type": "Ready",
                            "status": "False",
                            "reason": "some_resources_are_not_ready",
                            "message": "Resources not ready",
                        }
                    ],
                },
            ),
            [],
            id="Dynamo: makes progress",
        ),
        pytest.param(
            custom(
                ISVC,
                status={
                    "modelStatus": {
                        "transitionStatus": "BlockedByFailedLoad",
                        "lastFailureInfo": {
                            "reason": "ModelLoadFailed",
                            "message": "ValueError: No available memory for the cache blocks.",
                        },
                    }
                },
            ),
            ["gpu-oom-at-load"],
            id="KServe: the model's own words",
        ),
        pytest.param(
            custom(
                ISVC,
                status={
                    "modelStatus": {
                        "transitionStatus": "UpToDate",
                        "lastFailureInfo": {"reason": "ModelLoadFailed", "message": "old"},
                    }
                },
            ),
            [],
            id="KServe: loaded since",
        ),
        pytest.param(
            custom(
                RAY,
                status={
                    "activeServiceStatus": {
                        "applicationStatuses": {"llm": {"status": "DEPLOY_FAILED", "message": "CUDA out of memory"}}
                    }
                },
            ),
            ["gpu-oom"],
            id="Ray Serve: deploy failed",
        ),
        pytest.param(
            custom(
                RAY, status={"conditions": [{"type": "Ready", "status": "True", "reason": "NonZeroServeEndpoints"}]}
            ),
            [],
            id="Ray Serve: ready",
        ),
        pytest.param(
            event("Pod", "FailedScheduling", "0/3 nodes are available: 3 node(s) were unschedulable."),
            ["cordoned"],
            id="an Event about a pod that was not collected",
        ),
        pytest.param(
            event("ReplicaSet", "FailedCreate", "Error creating: " + QUOTA, api="apps/v1"),
            ["resource-quota"],
            id="an Event about an owner that was not collected",
        ),
        pytest.param(
            event(
                "StatefulSet",
                "FailedCreate",
                (
                    'create Pod x-0 in StatefulSet x failed error: pods "x-0" is forbidden: failed quota: q: '
                    "must specify requests.cpu"
                ),
                api="apps/v1",
            ),
            ["quota-needs-requests"],
            id="quota that wants requests",
        ),
        pytest.param(event("Service", "UpdatedLoadBalancer", "nothing to see"), [], id="an Event that says nothing"),
        pytest.param(
            doc("v1", "ResourceQuota", status={"hard": {"pods": "1"}, "used": {"pods": "1"}}),
            [],
            id="a quota that is used up",
        ),
    ],
)
def test_findings(document: Doc, causes: list[str]) -> None:
    """
    Each subject has one finding, or none.
    """
    assert [cause for _, _, cause in found(document)] == causes


def test_a_pod_that_is_gone_is_no_finding() -> None:
    """
    Where pods were collected, an Event about one that is not there tells of the past.
    """
    other = doc("v1", "Pod", name="other", status={"phase": "Running"})

    assert found(event("Pod", "FailedScheduling", "0/3 nodes are available: 3 Too many pods."), other) == []


def test_devices_of_dra_are_advertised_elsewhere() -> None:
    """
    A node whose devices a DRA driver publishes does not advertise them a second time.
    """
    bare = node(labels=GPU, capacity={"cpu": "96"}, allocatable={"cpu": "96"})
    published = doc(
        "resource.k8s.io/v1", "ResourceSlice", namespace="", spec={"nodeName": "x", "driver": "gpu.nvidia.com"}
    )

    assert found(bare, published) == []


def test_a_claim_that_waits_for_its_consumer_is_well() -> None:
    """
    Only a class that binds at once, or does not exist, makes a pending claim a finding.
    """
    claim = doc("v1", "PersistentVolumeClaim", spec={"storageClassName": "fast"}, status={"phase": "Pending"})

    def of_class(name: str, mode: str) -> Doc:
        return doc(
            "storage.k8s.io/v1", "StorageClass", namespace="", name=name, provisioner="p", volumeBindingMode=mode
        )

    assert found(claim, of_class("fast", "WaitForFirstConsumer")) == []
    assert found(claim, of_class("fast", "Immediate")) == [("PersistentVolumeClaim", "x", "pvc-unbound")]
    assert found(claim, of_class("slow", "Immediate")) == [("PersistentVolumeClaim", "x", "pvc-unbound")]


def test_sorted_and_once() -> None:
    """
    Findings come in one order, and one per subject, whatever the order of the objects.
    """
    documents = [
        replica_set(wanted=2, has=0),
        node(labels=GPU, capacity={}, allocatable={}),
        event("ReplicaSet", "FailedCreate", QUOTA, api="apps/v1"),
    ]

    assert found(*documents) == found(*reversed(documents))
    subjects = [(kind, name) for kind, name, _ in found(*documents)]
    assert len(set(subjects)) == len(subjects)


@pytest.mark.parametrize(
    ("field", "said", "expected"),
    [
        pytest.param("parents", [("ResolvedRefs", "False", "InvalidExtensionRef")], ["route-status"], id="no picker"),
        pytest.param("parent", [("Accepted", "False", "HTTPRouteNotAccepted")], ["route-status"], id="v1alpha2"),
        pytest.param("parents", [("Accepted", "Unknown", "Pending")], [], id="nobody has looked at it"),
        pytest.param(
            "parents",
            [("Accepted", "False", "HTTPRouteNotAccepted"), ("Accepted", "True", "Accepted")],
            [],
            id="another gateway accepts it",
        ),
    ],
)
def test_what_a_gateway_says_of_a_pool(field: str, said: list[tuple[str, str, str]], expected: list[str]) -> None:
    """
    An InferencePool that no gateway can use is broken at the gateway.
    """
    parents = [{"conditions": [{"type": kind, "status": status, "reason": reason}]} for kind, status, reason in said]

    assert [cause for _, _, cause in found(doc(POOL_API[field], "InferencePool", status={field: parents}))] == expected


@pytest.mark.parametrize(
    ("reason", "kind", "message"),
    [
        ("FailedBinding", "Normal", "no persistent volumes available for this claim and no storage class is set"),
        ("ProvisioningFailed", "Warning", 'failed to provision volume with StorageClass "fast": quota exceeded'),
    ],
)
def test_a_claim_that_only_events_tell_of(reason: str, kind: str, message: str) -> None:
    """
    What cannot bind a claim is said of type Normal too.
    """
    assert found(event("PersistentVolumeClaim", reason, message) | {"type": kind}) == [
        ("PersistentVolumeClaim", "gone", "pvc-unbound")
    ]


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "Failed", "status": "True", "reason": "NIMCacheNotFound", "message": "NIMCache c not found"},
        {"type": "Ready", "status": "False", "reason": "pods_not_ready", "message": "NIMCache c not found"},
    ],
)
def test_a_failed_state_is_told_with_its_condition(condition: Doc) -> None:
    """ "state Failed" helps nobody; the condition beside it says what."""
    objects = Objects()
    graph = custom(DGD, spec={}, status={"state": "failed", "conditions": [condition]})
    objects.put("DynamoGraphDeployment.nvidia.com", read("DynamoGraphDeployment.nvidia.com", graph))
    (finding,) = findings(objects)

    assert "NIMCache c not found" in finding.diagnosis.summary
