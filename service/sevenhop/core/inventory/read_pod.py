"""From one pod to its row: what it says itself, and what its history adds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.failures import why_not_well
from sevenhop.core.hops.pods import served_statuses, startup_budget
from sevenhop.core.inventory.gpu_blame import blamed_on_gpu
from sevenhop.core.inventory.history import Loads
from sevenhop.core.inventory.history_keeping import release_name
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.rows import PodRow, PodShape, is_ready, pod_row, runs_since, status_of
from sevenhop.core.inventory.state import State
from sevenhop.core.inventory.workloads import Membership
from sevenhop.core.objects.base import condition
from sevenhop.core.objects.pod import Pod

STARTING = frozenset(("container-creating", "init-waiting", "artifact-fetching"))
"""What a pod goes through that was just given a node; a failure only when it takes too long."""

STARTS_WITHIN = timedelta(minutes=15)

_NO_LOADS = Loads()

_MOMENT = timedelta(milliseconds=1)
"""Deadlines of pods hold up to the very moment; they are over right after it."""


def read_pod(
    state: State, key: Key, pod: Pod, shape: PodShape, membership: Membership, now: datetime
) -> tuple[PodRow, datetime | None]:
    """
    The pod's row as of `now`, and when it changes by time alone.
    """
    wakes: list[datetime] = []
    counted = _restarts(state, key, now, wakes)
    failure = blamed_on_gpu(state, key, _failure(state, key, pod, now, wakes))
    row = pod_row(
        pod,
        shape,
        membership,
        pending=state.pending.verdict(key),
        failure=failure,
        restarts=counted,
        load_overdue=False,
        unreadable=key in state.unreadable.get("Pod", {}),
    )
    if _is_overdue(state, row, pod, shape, now, wakes):
        row = replace(row, load_overdue=True)
    return row, min(wakes, default=None)


def _restarts(state: State, key: Key, now: datetime, wakes: list[datetime]) -> int | None:
    history = state.restarts.get(key)
    if history is None:
        return 0
    changes_at = history[1].changes_at(now)
    if changes_at is not None:
        wakes.append(changes_at)
    return history[1].within(now)


def _failure(state: State, key: Key, pod: Pod, now: datetime, wakes: list[datetime]) -> Diagnosis | None:
    """Only of pods that have a node: why a pod has none is another question."""
    if not pod.spec.node_name and not pod.is_finished:
        return None
    if pod.status.phase == "Running" and is_ready(pod):
        return None
    wakes.extend(at for at in _deadlines(pod) if at > now)
    failure = why_not_well(pod, state.evidence.about("Pod", key, pod.metadata.uid), now=now)
    if failure is not None and failure.cause in STARTING and pod.status.phase == "Pending":
        placed = condition(pod.status.conditions, "PodScheduled")
        since = placed.last_transition_time if placed is not None else pod.metadata.creation_timestamp
        if since is not None and now < since + STARTS_WITHIN:
            wakes.append(since + STARTS_WITHIN)
            return None
    return failure


def _deadlines(pod: Pod) -> Iterator[datetime]:
    """When the pod's being well may change by time alone: the ends of its start-up budgets, and of its deletion."""
    if pod.metadata.deletion_timestamp is not None:
        yield pod.metadata.deletion_timestamp + timedelta(seconds=pod.spec.termination_grace_period_seconds) + _MOMENT
    containers = {c.name: c for c in (*pod.spec.containers, *pod.spec.init_containers)}
    for status in served_statuses(pod):
        if not status.ready and status.state.running is not None and status.state.running.started_at is not None:
            yield status.state.running.started_at + startup_budget(containers.get(status.name)) + _MOMENT
    ready = condition(pod.status.conditions, "Ready")
    if ready is not None and ready.status != "True" and ready.last_transition_time is not None:
        yield ready.last_transition_time + startup_budget(None) + _MOMENT


def _is_overdue(state: State, row: PodRow, pod: Pod, shape: PodShape, now: datetime, wakes: list[datetime]) -> bool:
    if row.ready or not row.started or not row.live:
        return False
    started = runs_since(status_of(pod, shape.main))
    if started is None:
        return False
    release = release_name(row.key[0], shape.family, shape.image)
    overdue_at = started + state.loads.get(release, _NO_LOADS).budget()
    if now < overdue_at:
        wakes.append(overdue_at)
    return now >= overdue_at
