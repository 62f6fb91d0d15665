"""Pods that the API server refuses to make."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.hops.diagnosis import Confidence, Diagnosis
from sevenhop.core.hops.scheduling_not_created import why_not_created
from sevenhop.core.objects.cluster import Controller
from tests.placement_builders import GPU, custom, event, pod, world

REQUESTS = {"requests": {"cpu": "4", GPU: "2"}, "limits": {GPU: "2"}}
HARDENED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def _owner(*, kind: str = "ReplicaSet", resources: Any = REQUESTS, context: Any = None, **spec: Any) -> dict[str, Any]:
    api = "batch/v1" if kind == "Job" else "apps/v1"
    container = {"name": "vllm", "resources": resources, **({"securityContext": context} if context else {})}
    template = {"spec": {"containers": [container], **spec}}
    status = {"conditions": spec.pop("conditions")} if "conditions" in spec else {}
    return custom(api, kind, "decode", "prod", spec={"replicas": 2, "template": template}, status=status)


def _why(owner: dict[str, Any], *items: dict[str, Any]) -> Diagnosis | None:
    objects = world(owner, *items)
    kind = f"{owner['kind']}.{owner['apiVersion'].partition('/')[0]}"
    found = objects.get(kind, "prod", "decode")
    assert isinstance(found, Controller)
    return why_not_created(objects, kind, found)


def _quota(hard: dict[str, str], used: dict[str, str], **spec: Any) -> dict[str, Any]:
    return custom("v1", "ResourceQuota", "q", "prod", spec={"hard": hard, **spec}, status={"hard": hard, "used": used})


def _limits(**item: Any) -> dict[str, Any]:
    return custom("v1", "LimitRange", "l", "prod", spec={"limits": [{"type": "Container", **item}]})


def _namespace(level: str) -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": level}
    return custom("v1", "Namespace", "prod", metadata={"name": "prod", "namespace": "", "labels": labels})


@pytest.mark.parametrize(
    ("owner", "refusing", "cause"),
    [
        pytest.param(
            _owner(), _quota({f"requests.{GPU}": "4"}, {f"requests.{GPU}": "3"}), "resource-quota", id="exceeded"
        ),
        pytest.param(_owner(), _quota({f"requests.{GPU}": "4"}, {f"requests.{GPU}": "2"}), None, id="just within"),
        pytest.param(_owner(), _quota({"pods": "1"}, {"pods": "1"}), "resource-quota", id="number of pods"),
        pytest.param(_owner(), _quota({"cpu": "6"}, {"cpu": "2500m"}), "resource-quota", id="cpu without prefix"),
        pytest.param(_owner(), _quota({"limits.cpu": "9"}, {}), "resource-quota", id="must state a limit"),
        pytest.param(
            _owner(),
            _quota(
                {"pods": "0"},
                {},
                scopeSelector={
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}]
                },
            ),
            None,
            id="a quota of another priority class",
        ),
        pytest.param(
            _owner(), _quota({"pods": "0"}, {}, scopes=["BestEffort"]), None, id="a quota of best effort pods"
        ),
        pytest.param(_owner(), _limits(max={GPU: "1"}), "limit-range", id="above the maximum"),
        pytest.param(_owner(), _limits(max={"cpu": "8"}), "limit-range", id="no limit where a maximum stands"),
        pytest.param(_owner(), _limits(min={"cpu": "5"}), "limit-range", id="below the minimum"),
        pytest.param(_owner(), _limits(default={"cpu": "2"}), "limit-range", id="a default limit below the request"),
        pytest.param(_owner(), _limits(default={"cpu": "8"}, max={"cpu": "8"}), None, id="a default that suits"),
        pytest.param(_owner(priorityClassName="gold"), _limits(), "priority-class-missing", id="no such class"),
        pytest.param(_owner(priorityClassName="system-node-critical"), _limits(), None, id="a class that is built in"),
        pytest.param(_owner(hostIPC=True), _namespace("baseline"), "pod-security", id="host namespace"),
        pytest.param(_owner(), _namespace("baseline"), None, id="nothing against the baseline"),
        pytest.param(_owner(), _namespace("restricted"), "pod-security", id="restricted asks for more"),
        pytest.param(_owner(context=HARDENED), _namespace("restricted"), None, id="hardened"),
        pytest.param(
            _owner(context={**HARDENED, "runAsUser": 0}), _namespace("restricted"), "pod-security", id="hardened root"
        ),
        pytest.param(
            _owner(context=HARDENED, volumes=[{"name": "v", "nfs": {"server": "s", "path": "/"}}]),
            _namespace("restricted"),
            "pod-security",
            id="a volume that restricted does not know",
        ),
        pytest.param(
            _owner(volumes=[{"name": "v", "hostPath": {"path": "/dev"}}]),
            _namespace("baseline"),
            "pod-security",
            id="a path of the host",
        ),
        pytest.param(
            _owner(volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "nfs": {"server": "s", "path": "/"}}]),
            _namespace("baseline"),
            None,
            id="volumes that the baseline allows",
        ),
        pytest.param(
            _owner(context={"seccompProfile": {"type": "Unconfined"}}),
            _namespace("baseline"),
            "pod-security",
            id="unconfined",
        ),
        pytest.param(
            _owner(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
            _namespace("baseline"),
            "pod-security",
            id="a setting of the node's kernel",
        ),
        pytest.param(
            _owner(securityContext={"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}),
            _namespace("baseline"),
            None,
            id="a setting of its own",
        ),
        pytest.param(_owner(kind="Job"), _quota({"pods": "0"}, {}), "resource-quota", id="a job"),
        pytest.param(_owner(kind="StatefulSet"), _quota({"pods": "0"}, {}), "resource-quota", id="a stateful set"),
    ],
)
def test_a_refusal_is_computed_from_objects(owner: dict[str, Any], refusing: dict[str, Any], cause: str | None) -> None:
    """Without any word of the controller, and certain."""
    found = _why(owner, refusing)
    assert (found.cause if found else None) == cause
    assert found is None or found.confidence is Confidence.CERTAIN


def test_a_priority_class_that_was_not_collected_is_not_called_missing() -> None:
    """Some pod was admitted with a class that is not here either."""
    assert _why(_owner(priorityClassName="gold"), pod("other", on="n", priorityClassName="silver")) is None


def test_nobody_is_missing_so_nothing_is_refused() -> None:
    """A quota that is used up harms no controller that has all of its pods."""
    has = [pod(f"p{i}", on="n", owner=("ReplicaSet", "decode", "uid-decode")) for i in range(2)]
    assert _why(_owner(), *has, _quota({"pods": "2"}, {"pods": "2"})) is None


def test_what_cannot_be_computed_is_read_from_the_controllers_words() -> None:
    """A webhook's refusal stands in the event alone."""
    text = 'admission webhook "policy.example.com" denied the request: no'
    found = _why(_owner(), event("decode", "FailedCreate", f"Error creating: {text}", kind="ReplicaSet"))
    assert found is not None
    assert (found.cause, found.confidence) == ("admission-denied", Confidence.LIKELY)


def test_words_and_objects_together_are_certain_and_both_shown() -> None:
    """The condition names the quota that we compute as well."""
    message = 'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    owner = _owner()
    owner["status"] = {
        "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}]
    }
    found = _why(owner, _quota({"pods": "1"}, {"pods": "1"}))
    assert found is not None
    assert (found.cause, found.confidence) == ("resource-quota", Confidence.CERTAIN)
    assert [e.source for e in found.evidence] == ["resourcequota/q", "replicaset/decode condition ReplicaFailure"]
    assert "allows 1 pod, with 1 pod in use" in found.summary
