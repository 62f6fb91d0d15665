"""
Why a pod is not well, from its status, its Events and log lines.

Cause before symptom: what Kubernetes repeats every few minutes (CrashLoopBackOff, Back-off pulling image) is named
only where nothing better is known, and then as what it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from sevenhop.core.hops.causes import CAUSES
from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis, Evidence
from sevenhop.core.hops.failures_evidence import (
    SCHEDULING_EVENTS,
    Clue,
    clues_of_events,
    clues_of_logs,
    clues_of_status,
)
from sevenhop.core.hops.failures_quote import quote
from sevenhop.core.hops.failures_text import Context as Context
from sevenhop.core.hops.failures_text import FailureClass as FailureClass
from sevenhop.core.hops.failures_text import classify_text as classify_text
from sevenhop.core.hops.failures_waiting import why_unscheduled
from sevenhop.core.hops.pods import NotWell, awaits_node, not_well_reason, served_statuses
from sevenhop.core.objects.base import condition
from sevenhop.core.objects.cluster import Event
from sevenhop.core.objects.pod import Pod
from sevenhop.core.subject import Hop

_FETCHES_MODEL = re.compile(r"storage-initializer|model|download|fetch|weights|hf-|cache-warm|puller", re.IGNORECASE)
_WAITS_FOR_HEAD = re.compile(r"wait-gcs|wait-(?:for-)?(?:head|leader)", re.IGNORECASE)
_UNEXPLAINED = frozenset(
    {"crash-loop-unexplained", "exit-code-unexplained", "container-creating", "init-waiting", "exited-unexpectedly"}
)
_SHOWN_CLUES = 4
_STAGES = frozenset({"ContainerCreating", "PodInitializing", "CrashLoopBackOff"})

_MODEL_FLAG = re.compile(
    r"^--?(?:model|model[-_](?:path|id|name|dir|repo)|m|checkpoint|repo[-_]id)(?:=(?P<value>.+))?$"
)
_PYTHON = re.compile(r"(?:^|/)python[\d.]*$|^-[a-zA-Z]$")
"""What stands before the ``-m`` that names a module, not a model."""

_SERVES = re.compile(r"(?:^|\s)(?:\S*/)?(?:vllm serve|trtllm-serve(?: serve)?|lmdeploy serve api_server)$")
"""What takes its model as the next word."""

_SUBCOMMANDS = ("serve", "api_server")

_MODEL_VARIABLES = ("MODEL_ID", "HF_MODEL_ID", "MODEL_NAME", "MODEL_PATH", "MODEL", "STORAGE_URI", "NIM_MODEL_NAME")
_URI = re.compile(r"^(?:hf|s3|gs|pvc|oci|https?|abfss?|wasbs?|hdfs|webhdfs|ngc)://", re.IGNORECASE)


def why_not_well(
    pod: Pod, events: Sequence[Event], *, now: datetime | None, logs: Sequence[str] = ()
) -> Diagnosis | None:
    """
    Why the pod is not well.

    Args:
        events: Kubernetes Events about this pod, in any order; those of a stage that it has passed are left aside.
        now: None takes the newest time that the pod mentions.
        logs: Lines of its containers, oldest first; only a line that matches is shown.

    Returns:
        None if the pod is well (`pods.not_well_reason`).
    """
    reason = not_well_reason(pod, now)
    if reason is None:
        return None
    if reason is NotWell.STUCK_TERMINATING:
        return _stuck_terminating(pod)
    if awaits_node(pod):
        found = why_unscheduled(pod, events)
        if found.category is not Category.UNKNOWN or not events:
            return found
        # Its node's name was left out, but its Events are a kubelet's.
        clues = clues_of_events(pod, events)
        return _best(pod, clues) if clues else found
    clues = [*clues_of_status(pod, events), *clues_of_events(pod, events), *clues_of_logs(logs)]
    if not clues:
        return _unexplained(pod, reason)
    return _best(pod, clues)


def why_not_well_by_events(events: Sequence[Event]) -> Diagnosis | None:
    """
    The same for a pod that only its Events tell of.

    Returns:
        None if none of them says that something is wrong.
    """
    pod = Pod()
    waiting = [event for event in events if event.reason in SCHEDULING_EVENTS or not event.reason]
    clues = clues_of_events(pod, [event for event in events if event.reason not in SCHEDULING_EVENTS])
    if waiting and not clues:
        found = why_unscheduled(pod, waiting)
        return None if found.cause == "pending-unexplained" else found
    if not clues:
        return None
    return _best(pod, clues)


def _best(pod: Pod, clues: Sequence[Clue]) -> Diagnosis:
    """The best explanation; where its text explains nothing, an init container's name may."""
    ranked = sorted(clues, key=lambda clue: clue.failure.rank)
    best = ranked[0]
    slug = best.failure.cause.slug
    if slug in _UNEXPLAINED or slug == "probe-kill":
        if _WAITS_FOR_HEAD.search(best.container):
            slug = "ray-head-unreachable"
        elif best.is_init and slug in _UNEXPLAINED and _FETCHES_MODEL.search(best.container):
            slug = "artifact-fetch-unexplained"
    return _diagnosis(pod, slug, best, ranked)


def _unexplained(pod: Pod, reason: NotWell) -> Diagnosis:
    slug, container = _fallback(pod, reason)
    row = CAUSES[slug]
    where = f" (container {container})" if container else ""
    meaning = row.meaning.rstrip(".")
    said = _unread(pod)
    if said:
        meaning = f"The kubelet gives a reason that Sevenhop does not know: {said}"
    ready = condition(pod.status.conditions, "Ready")
    if ready and ready.reason == "ReadinessGatesNotReady":
        meaning = f"Every container is ready, and the pod waits for a readiness gate: {quote(ready.message)}"
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=slug,
        confidence=Confidence.UNKNOWN,
        summary=meaning + where,
        evidence=(Evidence(f"pod/{pod.metadata.name}", said or f"phase {pod.status.phase or 'not stated'}, {reason}"),),
        next_steps=row.next_steps,
    )


def _unread(pod: Pod) -> str:
    """What the kubelet says in its own words, where they are none that tell only of a stage; empty if it says none."""
    waiting = (s.state.waiting for s in (*pod.status.init_container_statuses, *pod.status.container_statuses))
    texts = [(pod.status.reason, pod.status.message), *((w.reason, w.message) for w in waiting if w)]
    return next((quote(": ".join(filter(None, text))) for text in texts if text[0] not in _STAGES and any(text)), "")


def _fallback(pod: Pod, reason: NotWell) -> tuple[str, str]:
    """(cause, container) where no text says anything."""
    if reason is NotWell.UNREACHABLE:
        return "node-lost", ""
    if reason is NotWell.FAILED:
        return "pod-failed-unexplained", ""
    if reason is NotWell.NOT_READY:
        unready = next((s.name for s in served_statuses(pod) if not s.ready), "")
        return "not-ready-unexplained", unready
    for status in pod.status.init_container_statuses:
        if status.state.running or (status.state.waiting and status.state.waiting.reason != "PodInitializing"):
            if _WAITS_FOR_HEAD.search(status.name):
                return "ray-head-unreachable", status.name
            return ("artifact-fetching" if _FETCHES_MODEL.search(status.name) else "init-waiting"), status.name
    waiting = next((s.name for s in pod.status.container_statuses if s.state.waiting), "")
    if reason is NotWell.CONTAINER_FAILED:
        return "crash-loop-unexplained", waiting
    return "container-creating", waiting


def _diagnosis(pod: Pod, slug: str, best: Clue, clues: Sequence[Clue]) -> Diagnosis:
    row = CAUSES[slug]
    failure = best.failure
    where = f"container {best.container}" if best.container else best.source
    place = ""
    if row.hop is Hop.MODEL:
        artifact, node = _artifact(pod), pod.spec.node_name
        place = f" (model {artifact}" if artifact else ""
        place += (f" on node {node}" if place else f" (node {node}") if node else ""
        place += ")" if place else ""
    steps = (failure.hint, *row.next_steps) if failure.hint else row.next_steps
    if row.category is Category.UNKNOWN or row.is_symptom:
        confidence = Confidence.UNKNOWN
    else:
        confidence = Confidence.CERTAIN if best.is_certain else Confidence.LIKELY
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=slug,
        confidence=confidence,
        # An Event's reason is in its source already.
        summary=f"{row.meaning.rstrip('.')}{place}: {where}: {failure.line.removeprefix(_reason_of(best.source))}",
        evidence=_evidence(clues),
        next_steps=steps,
    )


def _reason_of(source: str) -> str:
    """``event FailedMount`` to ``FailedMount: ``; empty for another source."""
    return f"{source.removeprefix('event ')}: " if source.startswith("event ") else ""


def _evidence(clues: Sequence[Clue]) -> tuple[Evidence, ...]:
    """The best clues, each line once."""
    shown: dict[str, Evidence] = {}
    for clue in clues:
        shown.setdefault(clue.failure.line, Evidence(clue.source, clue.failure.line))
    return tuple(shown.values())[:_SHOWN_CLUES]


def _stuck_terminating(pod: Pod) -> Diagnosis:
    row = CAUSES["stuck-terminating"]
    finalizers = ", ".join(pod.metadata.finalizers)
    held = f"finalizers {finalizers}" if finalizers else "no finalizer: its node does not confirm that it ended"
    since = pod.metadata.deletion_timestamp
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=row.slug,
        confidence=Confidence.CERTAIN,
        summary=f"The pod should have been gone by {since:%Y-%m-%dT%H:%M:%SZ} and still exists: {held}",
        evidence=(Evidence(f"pod/{pod.metadata.name} metadata", held),),
        next_steps=row.next_steps,
    )


def _artifact(pod: Pod) -> str:
    """The model that the pod's containers name; empty if none does."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        # A script of ``sh -c`` is one word.
        words = [part.strip("'\"") for word in (*container.command, *container.args) for part in word.split()]
        for position, word in enumerate(words):
            of_python = word == "-m" and _PYTHON.search(words[position - 1] if position else "")
            flag = None if of_python else _MODEL_FLAG.match(word)
            value = (flag["value"] or next(iter(words[position + 1 : position + 2]), "")) if flag else ""
            if not value and (_URI.match(word) or _SERVES.search(" ".join(words[max(0, position - 3) : position]))):
                value = word
            if value and not value.startswith("-") and "$" not in value and value not in _SUBCOMMANDS:
                return quote(value)
        for variable in container.env:
            if variable.name in _MODEL_VARIABLES and variable.value:
                return quote(variable.value)
    return ""
