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
        seen: (when, how many) of those whose time is known, the oldest first.
        earlier: From before we looked, at times that nothing tells; at least 0, all of them over by `earlier_until`.
        young_until: Until then the whole life of the pod lies in the window, so `earlier` counts in full.
    """

    total: int
    seen: tuple[tuple[datetime, int], ...] = ()
    earlier: int = 0
    earlier_until: datetime | None = None
    young_until: datetime | None = None

    def within(self, now: datetime) -> int | None:
        """Restarts in the window that ends now; None if that cannot be told."""
        known = sum(count for at, count in self.seen if now - at < RESTART_WINDOW)
        if self.earlier_until is None or now >= self.earlier_until:
            return known
        if self.young_until is not None and now < self.young_until:
            return known + self.earlier
        return None

    def changes_at(self, now: datetime) -> datetime | None:
        """When `within` next changes by time alone."""
        ends = [at + RESTART_WINDOW for at, _ in self.seen]
        ends += [at for at in (self.earlier_until, self.young_until) if at is not None]
        return min((at for at in ends if at > now), default=None)


def restarts(before: Restarts | None, pod: Pod, now: datetime, *, known_pod: bool = False) -> Restarts | None:
    """
    The history after another look at the pod; None for a pod that never restarted.

    The first look finds a count without times, only the end of each container's last run is told.  One restart with
    that end in the window is certain; of several, all but the last may have been earlier.

    Args:
        known_pod: We saw this very pod before: without a history it had not restarted then.
    """
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    total = sum(status.restart_count for status in statuses)
    if total == 0:
        return None
    if before is None and not known_pod:
        return _first_look(statuses, total, pod.metadata.creation_timestamp, now)
    before = before or Restarts(0)
    if total <= before.total:
        return before
    ended = min(_last_end(statuses) or now, now)
    recent = tuple((at, count) for at, count in before.seen if now - at < RESTART_WINDOW)
    return msgspec.structs.replace(before, total=total, seen=(*recent, (ended, total - before.total)))


def _first_look(statuses: Iterable[ContainerStatus], total: int, created: datetime | None, now: datetime) -> Restarts:
    seen: list[tuple[datetime, int]] = []
    earlier = 0
    until: list[datetime] = []
    for status in statuses:
        ended = _end(status)
        if status.restart_count == 0 or (ended is not None and now - ended >= RESTART_WINDOW):
            continue
        if ended is not None:
            seen.append((ended, 1))
        if status.restart_count > 1 or ended is None:
            earlier += status.restart_count - (0 if ended is None else 1)
            until.append((ended or now) + RESTART_WINDOW)
    young_until = created + RESTART_WINDOW if created is not None else None
    return Restarts(total, tuple(sorted(seen)), earlier, max(until, default=None), young_until)


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
