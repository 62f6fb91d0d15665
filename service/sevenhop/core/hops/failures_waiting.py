"""Why a pod has no node yet, by its own condition and Events: the fall-back where nodes cannot be seen."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from sevenhop.core.hops.causes import CAUSES
from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis, Evidence
from sevenhop.core.hops.failures_quote import quote
from sevenhop.core.hops.scheduler_text import classify_scheduler_message
from sevenhop.core.hops.scheduler_text_reasons import is_gpu
from sevenhop.core.objects.base import condition
from sevenhop.core.objects.cluster import Event
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.events_about import recency

_AUTOSCALER_EVENTS = frozenset({"NotTriggerScaleUp", "TriggeredScaleUp", "Nominated", "FailedToScaleUp"})
_VERDICTS = frozenset({"FailedScheduling", "FailedCreate", "FailedBinding"})
_KUBELET = re.compile(r"Failed|BackOff|Unhealthy|Err|Inspect|Killing|Unexpected|Evicted|OutOf|NetworkNotReady|Probe")


def why_unscheduled(pod: Pod, events: Sequence[Event]) -> Diagnosis:
    """
    Why the scheduler has not placed the pod, as far as texts tell.

    The condition is asked first: it is whole where an Event is cut, and there may be no Event at all.  What the
    autoscaler says only adds to a verdict about resources.
    """
    name = pod.metadata.name
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    scheduled = condition(pod.status.conditions, "PodScheduled")
    if gates or (scheduled and scheduled.reason == "SchedulingGated"):
        return _gated(name, gates)
    verdict = None
    # Of a pod that only its Events tell of it is not known.
    gpu = wants_gpu(pod) if pod.spec.containers else None
    if scheduled and scheduled.status != "True":
        verdict = _classify(scheduled.message, f"pod/{name} condition PodScheduled", wants=gpu)
    newest = sorted(events, key=recency, reverse=True)
    autoscaler = None
    for event in newest:
        source = f"event {event.reason}"
        if event.reason in _AUTOSCALER_EVENTS:
            autoscaler = autoscaler or _of_autoscaler(event, source, wants=gpu)
        elif verdict is None and _is_of_scheduler(event):
            verdict = _classify(event.text, source, wants=gpu)
    if autoscaler and (verdict is None or _may_be_overruled(verdict)):
        evidence = (*autoscaler.evidence, *(verdict.evidence if verdict else ()))
        not_preempted = verdict.not_preempted if verdict else ""
        return msgspec.structs.replace(autoscaler, evidence=evidence, not_preempted=not_preempted)
    return verdict or _unread(pod, scheduled.message if scheduled else "")


def wants_gpu(pod: Pod) -> bool:
    """Whether any container asks for an accelerator, as an extended resource or as a claim."""
    if pod.spec.resource_claims:
        return True
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    amounts = [amounts for c in containers for amounts in (c.resources.requests, c.resources.limits)]
    return any("/" in resource and is_gpu(resource) for some in amounts for resource in some)


def _classify(text: str, source: str, *, wants: bool | None) -> Diagnosis | None:
    verdict = classify_scheduler_message(text, wants_gpu=wants)
    if verdict is None:
        return None
    return msgspec.structs.replace(verdict, evidence=(Evidence(source, verdict.evidence[0].text),))


def _is_of_scheduler(event: Event) -> bool:
    """Not a kubelet's: what it says of mounts and images is of a later stage."""
    return event.type != "Normal" and (event.reason in _VERDICTS or not _KUBELET.match(event.reason))


def _of_autoscaler(event: Event, source: str, *, wants: bool | None) -> Diagnosis | None:
    text = event.text
    if event.reason == "TriggeredScaleUp" and "scale-up" not in text:
        text = f"pod triggered scale-up: {text}"
    return _classify(text, source, wants=wants)


def _may_be_overruled(verdict: Diagnosis) -> bool:
    """A selector or a missing claim binds whatever the autoscaler does; missing resources may be on their way."""
    return verdict.category in (Category.RESOURCE, Category.DEVICE_PLUGIN, Category.UNKNOWN)


def _gated(name: str, gates: Sequence[str]) -> Diagnosis:
    row = CAUSES["scheduling-gate"]
    named = ", ".join(gates) or "not named"
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=row.slug,
        confidence=Confidence.CERTAIN,
        summary=f"The pod waits for its scheduling gates to be lifted: {quote(named)}",
        evidence=(Evidence(f"pod/{name} schedulingGates", quote(named)),),
        next_steps=row.next_steps,
    )


def _unread(pod: Pod, message: str) -> Diagnosis:
    shown = quote(message)
    row = CAUSES["scheduler-text-unread" if shown else "pending-unexplained"]
    scheduler = pod.spec.scheduler_name
    who = "" if scheduler == "default-scheduler" else f"; it names the scheduler {quote(scheduler)}"
    said = (
        f"the text of its scheduler is not one that Sevenhop knows: {shown}" if shown else "no scheduler has said why"
    )
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=row.slug,
        confidence=Confidence.UNKNOWN,
        summary=f"The pod is Pending, and {said}{who}",
        evidence=(Evidence(f"pod/{pod.metadata.name}", shown or "no condition, no Event"),),
        next_steps=row.next_steps,
    )
