"""Events about objects of a kind that was not collected: their text is all there is."""

from __future__ import annotations

from collections.abc import Iterator

from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis
from sevenhop.core.hops.failures import why_not_well_by_events
from sevenhop.core.hops.failures_evidence import event_text
from sevenhop.core.hops.failures_quote import clean
from sevenhop.core.hops.failures_text import Context, classify_text
from sevenhop.core.hops.finding import Finding, diagnosis_of, evidence_of
from sevenhop.core.hops.findings_claims import TROUBLE
from sevenhop.core.hops.findings_refusals import is_refusal, refusal_of
from sevenhop.core.hops.scheduler_text import classify_scheduler_message
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.cluster import Event
from sevenhop.core.objects.kinds import KINDS, kind_of
from sevenhop.core.placement.events_about import recency

_About = tuple[str, str, str]


def event_findings(objects: Objects) -> Iterator[Finding]:
    """
    One finding per object that only Events tell of.

    An object that is missing although all of its kind were collected is gone, and so is what was wrong with it.
    """
    about: dict[_About, list[Event]] = {}
    for event in objects.of("Event").values():
        if isinstance(event, Event) and event.about.name and not _was_collected(objects, event):
            about.setdefault((event.about.kind, event.about.namespace, event.about.name), []).append(event)
    for (kind, namespace, name), events in about.items():
        diagnosis = why_not_well_by_events(events) if kind == "Pod" else _why(events)
        if diagnosis is not None:
            yield Finding(kind=kind, namespace=namespace, name=name, diagnosis=diagnosis)


def _was_collected(objects: Objects, event: Event) -> bool:
    about = event.about
    row = kind_of(about.api_version, about.kind)
    names = [row.name] if row else [name for name, kind in KINDS.items() if kind.kind == about.kind]
    place = "" if about.kind == "Node" else about.namespace
    return any(objects.is_known(name) or objects.get(name, place, about.name) is not None for name in names)


def _why(events: list[Event]) -> Diagnosis | None:
    """The newest Event that says why something could not be created or placed."""
    events.sort(key=recency, reverse=True)
    for event in events:
        source = f"event {event.reason}"
        if event.about.kind == "PersistentVolumeClaim" and event.reason in TROUBLE:
            summary = f"Claim {event.about.name} is not bound: {clean(event.text)}"
            return diagnosis_of("pvc-unbound", summary, (evidence_of(source, event.text),))
        if event.type == "Normal":
            continue
        if is_refusal(event):
            return refusal_of(event)
        verdict = classify_scheduler_message(event.text)
        if verdict is not None and verdict.category not in (Category.UNKNOWN, Category.NONE):
            return diagnosis_of(verdict.cause, verdict.summary, (evidence_of(source, event.text),))
        failure = classify_text(event_text(event), context=Context.EVENT)
        if failure is not None and not failure.cause.is_symptom:
            summary = f"{failure.cause.meaning.rstrip('.')}: {failure.line}"
            found = diagnosis_of(failure.cause.slug, summary, (evidence_of(source, event.text),))
            return found if found.confidence is not Confidence.UNKNOWN else None
    return None
