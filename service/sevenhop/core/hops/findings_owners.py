"""ReplicaSets, StatefulSets, DaemonSets and Jobs that may not create their pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from sevenhop.core.hops.diagnosis import Category, Diagnosis
from sevenhop.core.hops.failures_text import Context, classify_text
from sevenhop.core.hops.finding import Finding, bare, diagnosis_of, evidence_of
from sevenhop.core.hops.scheduler_text import classify_scheduler_message
from sevenhop.core.hops.scheduling_not_created import why_not_created
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.base import condition
from sevenhop.core.objects.cluster import Controller, Event
from sevenhop.core.placement.events_about import recency

OWNERS = ("ReplicaSet.apps", "StatefulSet.apps", "DaemonSet.apps", "Job.batch")
"""Kinds that make pods and tell when they may not."""

_CREATION_EVENTS = frozenset({"FailedCreate", "FailedCreatePod", "FailedDaemonPod"})


def owner_findings(objects: Objects) -> Iterator[Finding]:
    """Owners that lack pods and are refused; one that has its pods again is well, whatever an old Event says."""
    said = newest_refusals(objects)
    for kind in OWNERS:
        for key, owner in objects.of(kind).items():
            if not isinstance(owner, Controller):
                continue
            newest = said.get((bare(kind), *key))
            diagnosis = why_lacking(objects, kind, owner, [newest] if newest is not None else [])
            if diagnosis is not None:
                yield Finding(kind=bare(kind), namespace=key[0], name=key[1], diagnosis=diagnosis)


def why_lacking(objects: Objects, kind: str, owner: Controller, events: Iterable[Event]) -> Diagnosis | None:
    """
    Why an owner has fewer pods than it wants; None if it has them, or nothing refuses them.

    Args:
        kind: One of `OWNERS`.
        events: About the owner, in any order; those of an earlier object of its name count for nothing.
    """
    if owner.metadata.deletion_timestamp or not lacks_pods(kind, owner):
        return None
    newest = _newest_of(owner, events)
    found = why_not_created(objects, kind, owner, events=[newest] if newest is not None else [])
    found = found or _by_text(owner, newest)
    return found if found is not None and found.category is not Category.NONE else None


def refused_since(owner: Controller, events: Iterable[Event]) -> datetime | None:
    """Since when the owner has said that it is refused; None where it has not, or does not say when."""
    failed = condition(owner.status.conditions, "ReplicaFailure")
    if failed is not None and failed.status == "True":
        return failed.last_transition_time
    newest = _newest_of(owner, events)
    return (newest.first_timestamp or newest.metadata.creation_timestamp) if newest is not None else None


def lacks_pods(kind: str, owner: Controller) -> bool:
    """Whether fewer pods exist than are wanted; a Job that failed to create says so in no count."""
    if owner.spec.suspend or owner.spec.paused:
        return False
    if kind == "DaemonSet.apps":
        return owner.status.replicas < owner.status.desired_number_scheduled or _refused(owner)
    if kind == "Job.batch":
        finished = any(
            (found := condition(owner.status.conditions, name)) and found.status == "True"
            for name in ("Complete", "Failed", "SuccessCriteriaMet")
        )
        return not finished
    wanted = 1 if owner.spec.replicas is None else owner.spec.replicas
    return owner.status.replicas < wanted


def newest_refusals(objects: Objects) -> Mapping[tuple[str, str, str], Event]:
    """(kind, namespace, name) of an owner to its newest Event that tells of a pod that could not be created."""
    found: dict[tuple[str, str, str], Event] = {}
    for event in objects.of("Event").values():
        if isinstance(event, Event) and event.reason in _CREATION_EVENTS:
            about = event.about
            key = (about.kind, about.namespace, about.name)
            before = found.get(key)
            if before is None or _is_newer(event, before):
                found[key] = event
    return found


def why_refused(text: str, source: str) -> Diagnosis:
    """What a controller's text of a pod that could not be created means."""
    verdict = classify_scheduler_message(text)
    if verdict is not None:
        return diagnosis_of(verdict.cause, verdict.summary, (evidence_of(source, text),))
    failure = classify_text(text, context=Context.EVENT)
    if failure is not None and not failure.cause.is_symptom:
        summary = f"{failure.cause.meaning.rstrip('.')}: {failure.line}"
        return diagnosis_of(failure.cause.slug, summary, (evidence_of(source, text),))
    return diagnosis_of("pod-rejected", "A pod cannot be created", (evidence_of(source, text),))


def _by_text(owner: Controller, newest: Event | None) -> Diagnosis | None:
    failed = condition(owner.status.conditions, "ReplicaFailure")
    if failed is not None and failed.status == "True" and failed.message:
        return why_refused(failed.message, "condition ReplicaFailure")
    return why_refused(newest.text, f"event {newest.reason}") if newest is not None else None


def _newest_of(owner: Controller, events: Iterable[Event]) -> Event | None:
    """The newest that tells of a pod of this very owner that could not be created."""
    newest: Event | None = None
    for event in events:
        is_other = event.about.uid and owner.metadata.uid and event.about.uid != owner.metadata.uid
        if event.reason in _CREATION_EVENTS and not is_other and (newest is None or _is_newer(event, newest)):
            newest = event
    return newest


def _refused(owner: Controller) -> bool:
    failed = condition(owner.status.conditions, "ReplicaFailure")
    return failed is not None and failed.status == "True"


def _is_newer(event: Event, before: Event) -> bool:
    return recency(event) > recency(before)
