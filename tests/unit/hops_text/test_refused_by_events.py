"""Pods that an operator could not create, where only Events tell of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from sevenhop.core.hops.diagnosis import Confidence
from sevenhop.core.hops.findings import Finding, findings
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.kinds import kind_of
from tests.unit.hops_text.pods_of_text import NOON, Doc, read

REFUSED = (
    'Failed to create worker Pod for the cluster prod/ray, pods "ray-w-1" is forbidden: exceeded quota: gpu, '
    "requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"
)
WEBHOOK = 'Failed to create worker Pod: admission webhook "deny.example.com" denied the request: no'


def clock(minutes: float) -> str:
    return (datetime.fromisoformat(NOON) + timedelta(minutes=minutes)).isoformat()


def cluster(kind: str = "RayCluster", api: str = "ray.io/v1", **rest: Any) -> Doc:
    meta = {"name": "ray", "namespace": "prod", "uid": "u1"} | rest.pop("meta", {})
    return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": {}, "status": {}} | rest


def event(reason: str, text: str, minutes: float = 0, *, about: Doc | None = None, uid: str = "u1", **rest: Any) -> Doc:
    of = about or cluster()
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{reason}-{minutes}".lower(), "namespace": "prod"},
        "involvedObject": {
            "apiVersion": of["apiVersion"], "kind": of["kind"], "namespace": "prod", "name": "ray", "uid": uid
        },
        "reason": reason,
        "message": text,
        "type": "Warning",
        "lastTimestamp": clock(minutes),
    } | rest  # fmt: skip


def pod(minutes: float) -> Doc:
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ray", "uid": "u1", "controller": True}
    meta = {
        "name": "w",
        "namespace": "prod",
        "uid": "p",
        "creationTimestamp": clock(minutes),
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {}, "status": {"phase": "Running"}}


def found(*documents: Doc) -> list[Finding]:
    objects = Objects()
    for document in documents:
        row = kind_of(document["apiVersion"], document["kind"])
        assert row is not None
        objects.put(row.name, read(row.name, document))
    return findings(objects)


@pytest.mark.parametrize(
    ("reason", "text", "cause"),
    [
        ("FailedToCreateWorkerPod", REFUSED, "resource-quota"),
        ("FailedToCreateHeadPod", REFUSED, "resource-quota"),
        ("FailedToCreatePod", REFUSED, "resource-quota"),
        ("FailedCreate", REFUSED, "resource-quota"),
        ("FailedToCreateWorkerPod", WEBHOOK, "admission-denied"),
        ("FailedToCreateWorkerPod", "Failed to create worker Pod: it just did not work", "pod-rejected"),
        ("FailedToCreateService", "Failed to create service: it just did not work", "operator-reported"),
    ],
)
def test_what_events_say(reason: str, text: str, cause: str) -> None:
    """Read in a text, so likely at best, and named after the object that makes the pods."""
    (finding,) = found(cluster(), event(reason, text))

    assert (finding.kind, finding.name, finding.diagnosis.cause) == ("RayCluster", "ray", cause)
    assert finding.diagnosis.confidence is not Confidence.CERTAIN
    assert "ray" in finding.diagnosis.summary


def test_any_framework_that_makes_its_pods() -> None:
    """RoleBasedGroups and LeaderWorkerSets tell it as Ray does."""
    group = cluster("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1")

    assert [each.diagnosis.cause for each in found(group, event("FailedCreate", WEBHOOK, about=group))] == [
        "admission-denied"
    ]


READY = {"state": "ready", "desiredWorkerReplicas": 2, "availableWorkerReplicas": 2}


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param((cluster(), pod(2), event("FailedToCreateWorkerPod", REFUSED, 1)), id="a pod came after it"),
        pytest.param(
            (
                cluster(), event("FailedToCreateWorkerPod", REFUSED, 1),
                event("CreatedWorkerPod", "Created", 2, type="Normal"),
            ),
            id="it tells that it could",
        ),
        pytest.param((cluster(), event("FailedToCreateWorkerPod", REFUSED, uid="u0")), id="an earlier one of its name"),
        pytest.param((cluster(status=READY), event("FailedToCreateWorkerPod", REFUSED)), id="all workers are there"),
        pytest.param((cluster(spec={"suspend": True}), event("FailedToCreateWorkerPod", REFUSED)), id="suspended"),
        pytest.param(
            (cluster(meta={"deletionTimestamp": NOON}), event("FailedToCreateWorkerPod", REFUSED)), id="being deleted"
        ),
        pytest.param(
            (
                cluster("Service", "serving.knative.dev/v1"),
                event("FailedToCreateEndpoint", "no", about=cluster("Service", "v1")), cluster("Service", "v1"),
            ),
            id="a core object of the same kind and name",
        ),
    ],
)  # fmt: skip
def test_words_that_are_old_or_another_s(documents: tuple[Doc, ...]) -> None:
    """An Event is evidence of its moment, and of its own object."""
    assert found(*documents) == []


def test_a_head_that_was_made_says_nothing_of_workers() -> None:
    """The head is there, its workers are refused, and go on being refused."""
    created = event("CreatedHeadPod", "Created head", 2, type="Normal")

    assert len(found(cluster(), pod(0), event("FailedToCreateWorkerPod", REFUSED, 1), created)) == 1


def test_the_condition_of_later_versions_comes_first() -> None:
    """Where the operator names a cause in its status, its Events add nothing."""
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateWorkerPod", "message": WEBHOOK}
    (finding,) = found(cluster(status={"conditions": [failure]}), event("FailedToCreateWorkerPod", REFUSED))

    assert finding.diagnosis.cause == "admission-denied"
