"""Further objects of the remediation stories: who may, who stands against it, and donors of other kinds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping

import yaml

from docs.render import REFERENCE
from tests.testbed import build
from tests.testbed.client import Client, Object
from tests.testbed.waiting import eventually

COST = "controller.kubernetes.io/pod-deletion-cost"
DENIED = "replicas are frozen for the audit"
_ADMISSION = "admissionregistration.k8s.io/v1"


def service_account(client: Client, user: str) -> None:
    """`system:serviceaccount:<namespace>:<name>`, with its namespace."""
    namespace, name = user.split(":")[2:]
    if client.find("v1", "Namespace", namespace) is None:
        client.create(build.namespace(namespace))
    if client.find("v1", "ServiceAccount", name, namespace) is None:
        client.create(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
        )


def install(client: Client, user: str) -> None:
    """A service account with just the roles that docs/reference and docs/howto/approve-a-plan.md name."""
    service_account(client, user)
    names = ["system:auth-delegator"]
    for file in ("cluster-role.yaml", "cluster-role-remediation.yaml"):
        role = yaml.safe_load((REFERENCE / file).read_text("utf-8"))
        names.append(client.apply(role)["metadata"]["name"])
    namespace, account = user.split(":")[2:]
    for name in names:
        client.apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{name}-{namespace}".replace(":", "-")},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
            }
        )


def stateful_donor(name: str, namespace: str, where: Mapping[str, str]) -> Object:
    """A StatefulSet of one vLLM pod a node, as the Deployment of the same name would be."""
    manifest = build.vllm_deployment(
        name, namespace, f"org/{name}", gpus=1, node_selector=where, annotations={"sevenhop.dev/tier": "batch"}
    )
    manifest["kind"] = "StatefulSet"
    spec = manifest["spec"]
    spec["serviceName"] = name
    term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spec["template"]["spec"]["affinity"] = {"podAntiAffinity": required}
    return manifest


def autoscaler(name: str, namespace: str, deployment: str) -> Object:
    """A HorizontalPodAutoscaler; it has no metrics here, and rules all the same."""
    target = {"type": "Utilization", "averageUtilization": 80}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment},
            "minReplicas": 2,
            "maxReplicas": 6,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }  # fmt: skip


@contextlib.contextmanager
def no_fewer_replicas(client: Client, namespace: str, *, dry_run_too: bool) -> Iterator[None]:
    """A policy of the API server that lets nobody lower a Deployment's replicas, or only not for real."""
    name = f"frozen-{namespace}"
    expression = "object.spec.replicas >= oldObject.spec.replicas"
    if not dry_run_too:
        expression = f"request.dryRun || {expression}"
    rule = {
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"],
        "resources": ["deployments", "deployments/scale"],
    }  # fmt: skip
    policy = {
        "apiVersion": _ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": DENIED}],
        },
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding = {
        "apiVersion": _ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here}},
    }
    client.create(build.vllm_deployment("probe", namespace, "org/probe", replicas=1, cpu="1000"))
    client.create(policy)
    client.create(binding)
    try:
        eventually(lambda: _is_denied(client, namespace), timeout=30, every=0.3, what="the policy to hold")
        yield
    finally:
        client.delete(_ADMISSION, "ValidatingAdmissionPolicyBinding", name)
        client.delete(_ADMISSION, "ValidatingAdmissionPolicy", name)


def _is_denied(client: Client, namespace: str) -> bool:
    body = b'{"spec":{"replicas":0}}'
    path = client.path("apps/v1", "Deployment", "probe", namespace)
    status, text = client.request("PATCH", path, body, "application/merge-patch+json")
    if status < 400:
        client.patch("apps/v1", "Deployment", "probe", namespace, {"spec": {"replicas": 1}})
    return DENIED in text


def steered(pods: Iterable[Object]) -> list[str]:
    """Pods that still carry a deletion cost."""
    return [pod["metadata"]["name"] for pod in pods if COST in pod["metadata"].get("annotations", {})]
