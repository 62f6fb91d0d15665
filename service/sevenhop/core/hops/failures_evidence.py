"""What a pod's status, its Events and its log say, one clue per text that is understood."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from sevenhop.core.hops.causes import CAUSES
from sevenhop.core.hops.failures_quote import quote
from sevenhop.core.hops.failures_text import Context, FailureClass, classify_lines, classify_logs
from sevenhop.core.hops.pods import has_failed, has_started
from sevenhop.core.objects.cluster import Event
from sevenhop.core.objects.pod import ContainerStatus, Pod, Terminated
from sevenhop.core.placement.events_about import recency
from sevenhop.core.words import counted


class Clue(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One text that is understood.

    Attributes:
        source: Where it stood: ``container vllm lastState.terminated``, ``event Killing``.
        is_certain: A field that the kubelet sets, not a sentence.
    """

    failure: FailureClass
    source: str
    container: str = ""
    is_init: bool = False
    is_certain: bool = False


_IMAGE_REASONS = re.compile(r"image|pull", re.IGNORECASE)
_BEFORE_START = frozenset(
    {
        "ContainerCreating",
        "PodInitializing",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    }
)
SCHEDULING_EVENTS = frozenset({"FailedScheduling", "NotTriggerScaleUp", "TriggeredScaleUp", "Nominated"})
"""Events of a pod that has no node yet."""

_EVENTS_BEFORE_START = frozenset(
    {
        "FailedMount",
        "FailedAttachVolume",
        "FailedMapVolume",
        "FailedCreatePodSandBox",
        "FailedPrepareDynamicResources",
        "NetworkNotReady",
        "FailedToRetrieveImagePullSecret",
        "FailedPodSandBoxStatus",
        "InspectFailed",
        "ErrImageNeverPull",
    }
)
_PROBE_KILL = re.compile(r"failed (?:startup|liveness) probe|(?:startup|liveness) probe failed", re.IGNORECASE)
_FIELD_PATH = re.compile(r"\{(?P<container>[^}]+)\}")
_NORMAL_THAT_TELL = frozenset({"Killing", "Preempted", "Preempting", "Evicted", "TaintManagerEviction"})

# What the kubelet reports by one word, which needs no reading.
_CERTAIN_REASONS = frozenset({"OOMKilled", "InvalidImageName", "ErrImageNeverPull", "Evicted"})

_EXIT_CODES = {
    126: "bad-command",
    127: "bad-command",
    132: "illegal-instruction",
    134: "aborted",
    135: "shared-memory-or-bus-error",
    137: "killed-unexplained",
    139: "segmentation-fault",
    143: "terminated-from-outside",
}
_SIGNALS = 128


def clues_of_status(pod: Pod, events: Sequence[Event]) -> list[Clue]:
    """From ``pod.status`` alone; Events only tell which of three things exit code 137 means."""
    clues = list(_clues_of_pod(pod))
    for status in pod.status.init_container_statuses:
        clues += _clues_of_container(pod, status, events, is_init=True)
    for status in pod.status.container_statuses:
        clues += _clues_of_container(pod, status, events, is_init=False)
    return clues


def clues_of_events(pod: Pod, events: Sequence[Event]) -> list[Clue]:
    """From Events of the stage that the pod is in, the newest first."""
    relevant = [event for event in events if is_relevant(pod, event)]
    relevant.sort(key=recency, reverse=True)
    clues = []
    for event in relevant:
        field = _FIELD_PATH.search(event.about.field_path)
        for failure in classify_lines(event_text(event), context=Context.EVENT):
            container = field["container"] if field else ""
            init = event.about.field_path.startswith("spec.initContainers")
            source = f"event {event.reason or 'without reason'}"
            clues.append(Clue(failure=failure, source=source, container=container, is_init=init))
    return clues


def clues_of_logs(lines: Sequence[str]) -> list[Clue]:
    """From log lines, the earliest first: what comes later is mostly a consequence."""
    return [Clue(failure=failure, source="log") for failure in classify_logs(lines)]


def event_text(event: Event) -> str:
    """Reason and text of an Event in one line, as classifiers read them."""
    text = event.text.strip()
    if not event.reason or text.startswith(event.reason):
        return text
    return f"{event.reason}: {text}" if text else event.reason


def is_relevant(pod: Pod, event: Event) -> bool:
    """Whether an Event speaks of the stage that the pod is in now, not of one that it has passed."""
    if event.type == "Normal" and event.reason not in _NORMAL_THAT_TELL:
        return False
    if event.reason in SCHEDULING_EVENTS:
        return not pod.spec.node_name
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    waiting = [status.state.waiting.reason for status in statuses if status.state.waiting]
    if _is_about_image(event):
        return not statuses or any(reason in _BEFORE_START or _IMAGE_REASONS.search(reason) for reason in waiting)
    if event.reason in _EVENTS_BEFORE_START:
        return not statuses or any(reason in _BEFORE_START for reason in waiting)
    return True


def _is_about_image(event: Event) -> bool:
    text = f"{event.reason} {event.text}"
    return bool(re.search(r"pull(?:ing)? image|failed to pull|imagepull|errimage", text, re.IGNORECASE))


def _clues_of_pod(pod: Pod) -> Iterator[Clue]:
    said = ": ".join(part for part in (pod.status.reason, pod.status.message) if part)
    if said:
        for failure in classify_lines(said, context=Context.STATUS):
            certain = pod.status.reason in _CERTAIN_REASONS
            yield Clue(failure=failure, source="pod status", is_certain=certain)
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget" and condition.status == "True":
            for failure in classify_lines(f"{condition.reason}: {condition.message}", context=Context.STATUS):
                yield Clue(failure=failure, source="condition DisruptionTarget")


def _clues_of_container(pod: Pod, status: ContainerStatus, events: Sequence[Event], *, is_init: bool) -> list[Clue]:
    name, clues = status.name, []
    waiting = status.state.waiting
    if waiting:
        said = ": ".join(part for part in (waiting.reason, waiting.message) if part)
        clues += [
            Clue(
                failure=failure,
                source=f"container {name} waiting",
                container=name,
                is_init=is_init,
                is_certain=waiting.reason in _CERTAIN_REASONS,
            )
            for failure in classify_lines(said, context=Context.WAITING)
        ]
    if not status.ready:
        for state, where in ((status.state, "terminated"), (status.last_state, "lastState.terminated")):
            if state.terminated:
                clues += _clues_of_end(pod, status, state.terminated, where, events, is_init=is_init)
    return clues


def _clues_of_end(
    pod: Pod, status: ContainerStatus, end: Terminated, where: str, events: Sequence[Event], *, is_init: bool
) -> list[Clue]:
    name, source = status.name, f"container {status.name} {where}"
    if not has_failed(end):
        if is_init or pod.spec.restart_policy != "Always" or end.reason not in ("", "Completed"):
            return []
        return [_clue("exited-unexpectedly", _end_line(status, end), source, name, is_init=is_init)]
    clues = [
        Clue(failure=failure, source=source, container=name, is_init=is_init)
        for failure in classify_lines(end.message, context=Context.TERMINATED)
    ]
    if end.reason == "OOMKilled":
        clues.append(_clue("host-oom", _end_line(status, end), source, name, is_init=is_init, is_certain=True))
        return clues
    if end.reason and end.reason not in ("Error", "Completed"):
        said = classify_lines(end.reason, context=Context.STATUS)
        clues += [Clue(failure=failure, source=source, container=name, is_init=is_init) for failure in said]
    if end.reason == "ContainerStatusUnknown" and clues:
        return clues  # the kubelet found it gone, and its 137 is made up
    cause = _cause_of_end(end, name, events)
    # StartError reports 128 and has its say in the message.
    if cause != "exit-code-unexplained" or not clues:
        clues.append(_clue(cause, _end_line(status, end), source, name, is_init=is_init))
    return clues


def _cause_of_end(end: Terminated, container: str, events: Sequence[Event]) -> str:
    code = _SIGNALS + end.signal if end.signal else end.exit_code
    if code in (137, 143) and any(_is_probe_kill(event, container) for event in events):
        return "probe-kill"
    if not has_started(end) and code not in _EXIT_CODES:
        return "container-runtime"
    return _EXIT_CODES.get(code, "exit-code-unexplained")


def _is_probe_kill(event: Event, container: str) -> bool:
    field = _FIELD_PATH.search(event.about.field_path)
    if field and field["container"] != container:
        return False
    return bool(_PROBE_KILL.search(event.text))


def _end_line(status: ContainerStatus, end: Terminated) -> str:
    code = f"signal {end.signal}" if end.signal else f"exit code {end.exit_code}"
    reason = f", reason {end.reason}" if end.reason else ""
    restarts = f", {counted(status.restart_count, 'restart')}" if status.restart_count else ""
    return quote(f"{code}{reason}{restarts}")


def _clue(
    slug: str, line: str, source: str, container: str, *, is_init: bool = False, is_certain: bool = False
) -> Clue:
    failure = FailureClass(cause=CAUSES[slug], context=Context.TERMINATED, line=line)
    return Clue(failure=failure, source=source, container=container, is_init=is_init, is_certain=is_certain)
