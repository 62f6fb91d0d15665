"""
Objects of frameworks whose operators could not create pods, and tell so in Events only.

KubeRay before its ReplicaFailure condition, RoleBasedGroup, LeaderWorkerSet and their like make pods themselves; what
the API server answered stands in a Warning about the custom resource, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from sevenhop.core.hops.diagnosis import Category, Diagnosis
from sevenhop.core.hops.finding import bare, diagnosis_of, evidence_of
from sevenhop.core.hops.findings_owners import why_refused
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.base import Custom
from sevenhop.core.objects.cluster import Event
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.events_about import recency

_REFUSED = re.compile(r"^(?:Failed(?:To)?Creat\w*|Creat\w*Failed|\w*CreationFailed)$")
_MADE = re.compile(r"^(?:Success\w*|Created)(?:Create)?\w*$")
_OF_PODS = re.compile(r"Pods?$|^FailedCreate$")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def is_refusal(event: Event) -> bool:
    """Whether its reason says that something could not be created, as operators spell it."""
    return event.type != "Normal" and _REFUSED.match(event.reason) is not None


def why_refused_by_events(objects: Objects, kind: str, custom: Custom, events: Iterable[Event]) -> Diagnosis | None:
    """
    Why the operator could not create what the object asks for; None if it did since, or nothing says that it could not.

    Args:
        kind: As in `KINDS`.
        events: About the object, in any order; those of an earlier object of its name count for nothing.
    """
    if custom.metadata.deletion_timestamp or custom.spec.get("suspend") is True or _has_all_workers(custom):
        return None
    mine = [event for event in events if _is_about(event, kind, custom)]
    refused = newest_refusal(mine)
    if refused is None or _when(refused) < _made_last(objects, custom, refused, mine):
        return None
    return refusal_of(refused, f"{bare(kind)} {custom.metadata.name}")


def newest_refusal(events: Iterable[Event]) -> Event | None:
    """The last of these that says that something could not be created."""
    return max(filter(is_refusal, events), key=recency, default=None)


def refusal_of(event: Event, whose: str = "") -> Diagnosis:
    """What an Event of `is_refusal` means."""
    source = f"event {event.reason}"
    found = why_refused(event.text, source)
    if found.cause == "pod-rejected" and not _OF_PODS.search(event.reason):
        # A Service, a role or a whole cluster that could not be created: no pod was refused.
        found = diagnosis_of("operator-reported", f"It could not be created: {event.text}", found.evidence)
        found = msgspec.structs.replace(found, summary=evidence_of(source, event.text).text)
    return msgspec.structs.replace(found, summary=f"{whose}: {found.summary}") if whose else found


def says_nothing(diagnosis: Diagnosis | None) -> bool:
    """Whether an operator's status names no cause, so that its Events may."""
    return diagnosis is None or diagnosis.category is Category.UNKNOWN


def _is_about(event: Event, kind: str, custom: Custom) -> bool:
    """Not of an earlier object of its name, nor of a core object of the same kind, as Knative's Services have."""
    about = event.about
    group = about.api_version.rpartition("/")[0]
    is_same_kind = not about.api_version or f"{about.kind}.{group}" == kind
    return is_same_kind and not (about.uid and custom.metadata.uid and about.uid != custom.metadata.uid)


def _has_all_workers(custom: Custom) -> bool:
    """A RayCluster counts what it wants and has; others say nothing of the kind."""
    wanted, have = custom.status.get("desiredWorkerReplicas"), custom.status.get("availableWorkerReplicas")
    return (
        isinstance(wanted, int) and isinstance(have, int) and have >= wanted and custom.status.get("state") == "ready"
    )


def _made_last(objects: Objects, custom: Custom, refused: Event, events: Iterable[Event]) -> datetime:
    """When a pod of the object was last created, by itself or as its operator tells of the same sort of thing."""
    children = objects.children(custom.metadata.uid) if custom.metadata.uid else ()
    born = [pod.metadata.creation_timestamp for _, pod in children if isinstance(pod, Pod)]
    sort = _sort_of(refused.reason)
    told = [e.last_seen for e in events if e.type == "Normal" and _MADE.match(e.reason) and _sort_of(e.reason) == sort]
    return max((at for at in (*born, *told) if at is not None), default=_LONG_AGO)


def _sort_of(reason: str) -> str:
    """``HeadPod`` of both ``FailedToCreateHeadPod`` and ``CreatedHeadPod``."""
    return re.sub(r"^(?:Success(?:ful(?:ly)?)?|Failed(?:To)?)?Creat(?:e[ds]?|ing|ion)?", "", reason)


def _when(event: Event) -> datetime:
    return event.last_seen or _LONG_AGO
