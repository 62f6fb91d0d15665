"""What no list returns: restarts within a window, the most GPUs that a node ever showed, how long loads take."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.pod import ContainerStatus, Pod

RESTART_WINDOW = timedelta(minutes=10)


class Restarts(msgspec.Struct, frozen=True, gc=False):
    """
    Container restarts of one pod.

    Attributes:
        total: As the kubelet last counted, all containers together.
        seen: (when, how many) within the window, the oldest first.
        unclear_until: Until then, restarts from before we looked may lie in the window; None if none may.
    """

    total: int
    seen: tuple[tuple[datetime, int], ...] = ()
    unclear_until: datetime | None = None

    def within(self, now: datetime) -> int | None:
        """Restarts in the window that ends now; None if that cannot be told."""
        if self.unclear_until is not None and now < self.unclear_until:
            return None
        return sum(count for at, count in self.seen if now - at < RESTART_WINDOW)

    def changes_at(self, now: datetime) -> datetime | None:
        """When `within` next changes by time alone."""
        ends = [at + RESTART_WINDOW for at, _ in self.seen if now - at < RESTART_WINDOW]
        if self.unclear_until is not None and now < self.unclear_until:
            ends.append(self.unclear_until)
        return min(ends, default=None)


def restarts(before: Restarts | None, pod: Pod, now: datetime) -> Restarts | None:
    """
    The history after another look at the pod; None for a pod that never restarted.

    The first look finds a count without times, only the end of each container's last run is told.  One restart with
    that end in the window is certain; of several, all but the last may have been earlier.
    """
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    total = sum(status.restart_count for status in statuses)
    if total == 0:
        return None
    if before is None:
        return _first_look(statuses, total, now)
    if total <= before.total:
        return before
    ended = min(_last_end(statuses) or now, now)
    recent = tuple((at, count) for at, count in before.seen if now - at < RESTART_WINDOW)
    return Restarts(total, (*recent, (ended, total - before.total)), before.unclear_until)


def _first_look(statuses: Iterable[ContainerStatus], total: int, now: datetime) -> Restarts:
    seen: list[tuple[datetime, int]] = []
    unclear: list[datetime] = []
    for status in statuses:
        ended = _end(status)
        if status.restart_count == 0 or (ended is not None and now - ended >= RESTART_WINDOW):
            continue
        if status.restart_count == 1 and ended is not None:
            seen.append((ended, 1))
        else:
            unclear.append((ended or now) + RESTART_WINDOW)
    return Restarts(total, tuple(sorted(seen)), max(unclear, default=None))


def _end(status: ContainerStatus) -> datetime | None:
    last = status.last_state.terminated
    return last.finished_at if last is not None else None


def _last_end(statuses: Iterable[ContainerStatus]) -> datetime | None:
    return max((end for status in statuses if (end := _end(status)) is not None), default=None)


class SeenGpus(msgspec.Struct, frozen=True, gc=False):
    """
    The most GPUs that a node advertised while it was set up as now.

    `setup` is the part of its labels that says how GPUs are named, shared and cut: another set-up is another promise.
    """

    setup: str
    most: int


_SETUP_LABELS = (
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.replicas",
    "nvidia.com/mig.config",
    "nvidia.com/mig.strategy",
    "node.kubernetes.io/instance-type",
)


def seen_gpus(before: SeenGpus | None, node: Node, allocatable: int) -> SeenGpus:
    """The history after another look at the node."""
    setup = "|".join(node.metadata.labels.get(label, "") for label in _SETUP_LABELS)
    if before is None or before.setup != setup:
        return SeenGpus(setup, allocatable)
    return before if allocatable <= before.most else SeenGpus(setup, allocatable)


LOADS_KEPT = 20
LOADS_NEEDED = 3
LOAD_UNKNOWN = timedelta(minutes=45)
"""How long a load may take of which fewer than `LOADS_NEEDED` earlier ones are known."""


class Loads(msgspec.Struct, frozen=True, gc=False):
    """Seconds from the engine's start to Ready of the last loads of one release, as (pod uid, seconds)."""

    seconds: tuple[tuple[str, float], ...] = ()

    def budget(self) -> timedelta:
        """Twice the 95th percentile seen; 45 minutes where too few were seen."""
        if len(self.seconds) < LOADS_NEEDED:
            return LOAD_UNKNOWN
        ordered = sorted(seconds for _, seconds in self.seconds)
        return timedelta(seconds=2 * ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))])


def loads(before: Loads | None, pod_uid: str, seconds: float) -> Loads:
    """The history with one more load; the same pod counts once."""
    known = before.seconds if before is not None else ()
    if any(uid == pod_uid for uid, _ in known):
        return before or Loads()
    return Loads((*known, (pod_uid, seconds))[-LOADS_KEPT:])
