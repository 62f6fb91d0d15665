"""Whether a pod is well: level, not history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from sevenhop.core.objects.base import condition
from sevenhop.core.objects.pod import Container, ContainerStatus, Pod, Terminated

# A kubelet needs a moment to see that a container without probes runs.
_SYNC = timedelta(seconds=10)
_EPOCH_YEAR = 1970


class NotWell(StrEnum):
    """Why a pod is not well; the words that `diagnose` and rules use."""

    PENDING = "pending"
    FAILED = "failed"
    UNREACHABLE = "unreachable"  # phase Unknown: its node does not answer
    CONTAINER_FAILED = "container_failed"
    CONTAINER_WAITING = "container_waiting"
    NOT_READY = "not_ready"  # past its start-up budget
    STUCK_TERMINATING = "stuck_terminating"


def is_well(pod: Pod, now: datetime | None) -> bool:
    """Whether nothing needs to be said about the pod; see `not_well_reason`."""
    return not_well_reason(pod, now) is None


def not_well_reason(pod: Pod, now: datetime | None) -> NotWell | None:
    """
    Why the pod is not well; None if it is.

    Succeeded and intentionally terminating pods are well.  A pod that is Running and not Ready is well while its
    start-up budget (startup and readiness probes) lasts, unless it failed before and has not been ready since.

    Args:
        now: None takes the newest time that the pod itself mentions.
    """
    if pod.status.phase == "Succeeded":
        return None
    now = now or newest_time(pod)
    if pod.is_terminating:
        return NotWell.STUCK_TERMINATING if is_stuck_terminating(pod, now) else None
    if pod.status.phase == "Failed":
        return NotWell.FAILED
    if pod.status.phase == "Unknown" or pod.status.reason == "NodeLost":
        return NotWell.UNREACHABLE
    if pod.status.phase == "Pending":
        return NotWell.PENDING
    if pod.status.phase != "Running":
        # A manifest, or a pod that its kubelet and scheduler have not seen: what it says of itself counts.
        return NotWell.PENDING if pod.status.conditions or pod.status.reason else None
    return _running(pod, now)


def awaits_node(pod: Pod) -> bool:
    """
    Whether only a scheduler can say what is wrong: no node is named, and no kubelet has written into the status.

    A pod whose node's name was left out (a fragment in a bundle) does not await one.
    """
    scheduled = condition(pod.status.conditions, "PodScheduled")
    return (
        pod.status.phase in ("Pending", "")
        and not pod.spec.node_name
        and not pod.is_terminating
        and not pod.status.container_statuses
        and not pod.status.init_container_statuses
        and (scheduled is None or scheduled.status != "True")
    )


def is_stuck_terminating(pod: Pod, now: datetime | None) -> bool:
    """Whether deletion has taken longer than it may: the deadline that the API server set, and once more the grace."""
    deadline = pod.metadata.deletion_timestamp
    if deadline is None or now is None:
        return False
    return now > deadline + timedelta(seconds=max(pod.spec.termination_grace_period_seconds, 0))


def has_failed(terminated: Terminated | None) -> bool:
    """Whether a container ended with an error."""
    return terminated is not None and (terminated.exit_code != 0 or terminated.reason in ("Error", "OOMKilled"))


def has_started(terminated: Terminated | None) -> bool:
    """Whether a container that ended ever ran: 1970 stands for one that never did."""
    return terminated is not None and not (terminated.started_at and terminated.started_at.year <= _EPOCH_YEAR)


def newest_time(pod: Pod) -> datetime | None:
    """The newest time that the pod itself mentions; the stand-in for a clock where there is none."""
    return max(_times(pod), default=None)


def startup_budget(container: Container | None) -> timedelta:
    """How long a container may run without being ready, by its own startup and readiness probes."""
    probes = (container.startup_probe, container.readiness_probe) if container else ()
    return _SYNC + timedelta(seconds=sum(probe.budget_s for probe in probes if probe))


def served_statuses(pod: Pod) -> list[ContainerStatus]:
    """Statuses of what must run for the pod to work: main containers and restartable init containers (sidecars)."""
    sidecars = {c.name for c in pod.spec.init_containers if c.restart_policy == "Always"}
    return [*pod.status.container_statuses, *(s for s in pod.status.init_container_statuses if s.name in sidecars)]


def _running(pod: Pod, now: datetime | None) -> NotWell | None:
    statuses = served_statuses(pod)
    if any(has_failed(status.state.terminated) for status in statuses):
        return NotWell.CONTAINER_FAILED
    if any(status.state.waiting for status in statuses):
        return NotWell.CONTAINER_WAITING
    ready = condition(pod.status.conditions, "Ready")
    if ready is None:
        not_ready = any(not status.ready and status.state.running for status in statuses)
    else:
        not_ready = ready.status != "True"
    if not not_ready:
        return None
    unready = [s for s in statuses if not s.ready and not s.state.terminated]
    if any(has_failed(status.last_state.terminated) for status in unready):
        return NotWell.CONTAINER_FAILED
    if unready:
        return NotWell.NOT_READY if any(_is_late(status, pod, now) for status in unready) else None
    # Every container is ready, the pod is not: a readiness gate, or a status that the kubelet no longer updates.
    since = ready.last_transition_time if ready else None
    return None if since and now and now <= since + _SYNC else NotWell.NOT_READY


def _is_late(status: ContainerStatus, pod: Pod, now: datetime | None) -> bool:
    started = status.state.running.started_at if status.state.running else None
    if started is None or now is None:
        # It says that it is not ready, and nothing excuses it.
        return True
    return now > started + startup_budget(_container(pod, status.name))


def _container(pod: Pod, name: str) -> Container | None:
    containers: Sequence[Container] = (*pod.spec.containers, *pod.spec.init_containers)
    return next((container for container in containers if container.name == name), None)


def _times(pod: Pod) -> Iterator[datetime]:
    candidates = [pod.metadata.creation_timestamp, pod.status.start_time]
    candidates += [c.last_transition_time for c in pod.status.conditions]
    for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        for state in (status.state, status.last_state):
            candidates += [state.running.started_at] if state.running else []
            candidates += [state.terminated.started_at, state.terminated.finished_at] if state.terminated else []
    for time in candidates:
        if time is not None:
            yield time if time.tzinfo else time.replace(tzinfo=UTC)
