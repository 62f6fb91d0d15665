"""ReplicaSets, StatefulSets, DaemonSets and Jobs that may not create their pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sevenhop.core.hops.diagnosis import Category, Diagnosis
from sevenhop.core.hops.failures_text import Context, classify_text
from sevenhop.core.hops.finding import Finding, bare, diagnosis_of, evidence_of
from sevenhop.core.hops.scheduler_text import classify_scheduler_message
from sevenhop.core.hops.scheduling_not_created import why_not_created
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.base import condition
from sevenhop.core.objects.cluster import Controller, Event

_OWNERS = ("ReplicaSet.apps", "StatefulSet.apps", "DaemonSet.apps", "Job.batch")
_CREATION_EVENTS = frozenset({"FailedCreate", "FailedCreatePod", "FailedDaemonPod"})


def owner_findings(objects: Objects) -> Iterator[Finding]:
    """Owners that lack pods and are refused; one that has its pods again is well, whatever an old Event says."""
    said = newest_refusals(objects)
    for kind in _OWNERS:
        for key, owner in objects.of(kind).items():
            if not isinstance(owner, Controller) or owner.metadata.deletion_timestamp or not lacks_pods(kind, owner):
                continue
            diagnosis = why_not_created(objects, kind, owner) or _by_text(bare(kind), key, owner, said)
            if diagnosis is not None and diagnosis.category is not Category.NONE:
                yield Finding(kind=bare(kind), namespace=key[0], name=key[1], diagnosis=diagnosis)


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


def _by_text(kind: str, key: Key, owner: Controller, said: Mapping[tuple[str, str, str], Event]) -> Diagnosis | None:
    failed = condition(owner.status.conditions, "ReplicaFailure")
    if failed is not None and failed.status == "True" and failed.message:
        return why_refused(failed.message, "condition ReplicaFailure")
    event = said.get((kind, *key))
    if event is None or (event.about.uid and owner.metadata.uid and event.about.uid != owner.metadata.uid):
        return None
    return why_refused(event.text, f"event {event.reason}")


def _refused(owner: Controller) -> bool:
    failed = condition(owner.status.conditions, "ReplicaFailure")
    return failed is not None and failed.status == "True"


def _is_newer(event: Event, before: Event) -> bool:
    return bool(event.last_seen and (before.last_seen is None or event.last_seen > before.last_seen))
