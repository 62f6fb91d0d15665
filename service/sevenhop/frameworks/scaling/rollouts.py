"""Whether an object is on its way from one version to another: then replicas move by themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sevenhop.core.inventory.templates import LWS
from sevenhop.core.objects.base import Custom, Object, condition
from sevenhop.core.objects.cluster import Controller
from sevenhop.core.remediation.action import ObjectRef
from sevenhop.core.remediation.reduction import Conflict, ConflictReason
from sevenhop.frameworks.reading import number, rows, table, text
from sevenhop.frameworks.scaling.way import called

_UNDER_WAY = ("Pending", "InProgress")
"""Phases of a DynamoGraphDeployment's rolling update; the others are ``Completed``, ``Failed`` and none."""


def rolling(objects: Iterable[tuple[ObjectRef, Object]]) -> Conflict | None:
    """The first of these objects that a rollout is under way on."""
    for ref, obj in objects:
        why = rollout(ref.kind, obj)
        if why:
            then = _held(ref.kind, obj) or "wait until it is done"
            return Conflict(ConflictReason.ROLLOUT, f"{called(ref)}: {why}; {then}")
    return None


def rollout(kind: str, obj: Object) -> str:
    """What says that a rollout is under way, in a few words; empty if nothing does."""
    if isinstance(obj, Controller):
        if kind == "Deployment.apps":
            return _deployment(obj)
        return _stateful_set(obj) if kind == "StatefulSet.apps" else ""
    if not isinstance(obj, Custom):
        return ""
    observed = number(obj.status, "observedGeneration")
    if observed is not None and observed < obj.metadata.generation:
        return "its controller has not seen its last change"
    if kind == LWS:
        return "an update is under way" if _is_true(obj, "UpdateInProgress") else ""
    if kind == "RayService.ray.io":
        return _ray_service(obj)
    if kind == "RayCluster.ray.io":
        return "it is being suspended" if _is_true(obj, "RayClusterSuspending") else ""
    if kind == "DynamoGraphDeployment.nvidia.com":
        return _graph(obj.status)
    if kind == "InferenceService.serving.kserve.io":
        return _revisions(obj.status)
    return ""


def _held(kind: str, obj: Object) -> str:
    """What a person has to do where a rollout does not go on by itself; empty where it does."""
    if not isinstance(obj, Controller):
        return ""
    if kind == "Deployment.apps":
        return "it is paused, so this does not end by itself; resume it" if obj.spec.paused else ""
    strategy = obj.spec.update_strategy or {}
    if text(strategy, "type") == "OnDelete":
        return "with OnDelete this ends only when somebody removes these pods"
    partition = number(strategy, "rollingUpdate", "partition") or 0
    return f"its partition of {partition} keeps them; finish the update first" if partition > 0 else ""


def _deployment(obj: Controller) -> str:
    """As `kubectl rollout status` asks, but for pods that merely fail: those are no rollout."""
    spec, status = obj.spec, obj.status
    if status.observed_generation < obj.metadata.generation:
        return "its controller has not seen its last change"
    wanted = 1 if spec.replicas is None else spec.replicas
    if status.updated_replicas < wanted:
        return f"{status.updated_replicas} of {wanted} pods are of its newest version"
    if status.replicas > status.updated_replicas:
        return f"{status.replicas - status.updated_replicas} pods of an older version are still there"
    progress = condition(status.conditions, "Progressing")
    if status.unavailable_replicas and progress is not None and progress.reason != "NewReplicaSetAvailable":
        return f"its newest version is not there yet ({progress.reason})"
    return ""


def _stateful_set(obj: Controller) -> str:
    spec, status = obj.spec, obj.status
    if status.observed_generation < obj.metadata.generation:
        return "its controller has not seen its last change"
    if status.update_revision and status.current_revision != status.update_revision:
        return "some pods are of an older version"
    wanted = 1 if spec.replicas is None else spec.replicas
    return "pods are still to be made or to go" if status.replicas != wanted else ""


def _ray_service(obj: Custom) -> str:
    for kind, words in (
        ("UpgradeInProgress", "a second cluster is being made"),
        ("RollbackInProgress", "it goes back to its earlier cluster"),
        ("Suspending", "it is being suspended"),
        ("Suspended", "it is suspended"),
    ):
        if _is_true(obj, kind):
            return words
    pending = text(obj.status, "pendingServiceStatus", "rayClusterName")
    if pending and pending != text(obj.status, "activeServiceStatus", "rayClusterName"):
        return f"a second cluster is being made ({pending})"
    return ""


def _graph(status: dict[str, Any]) -> str:
    phase = text(status, "rollingUpdate", "phase")
    if phase in _UNDER_WAY:
        return f"a rolling update is under way ({phase})"
    if text(status, "restart", "phase") in ("Pending", "InProgress", "Restarting"):
        return "a restart is under way"
    return ""


def _revisions(status: dict[str, Any]) -> str:
    for name, part in sorted(table(status, "components").items()):
        created, ready = text(part, "latestCreatedRevision"), text(part, "latestReadyRevision")
        if created and created != ready:
            return f"revision {created} of its {name} is not ready yet"
        shares = [row for row in rows(part, "traffic") if (number(row, "percent") or 0) > 0]
        if len({text(row, "revisionName") for row in shares}) > 1:
            return f"two revisions of its {name} share the requests"
    return ""


def _is_true(obj: Custom, kind: str) -> bool:
    return any(text(row, "type") == kind and text(row, "status") == "True" for row in rows(obj.status, "conditions"))
