"""Why pods have no node: computed when something that placement reads has changed, and never more often than pays."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.scheduling import why_pending
from sevenhop.core.inventory.objects import Key
from sevenhop.core.placement.cluster import Cluster

AT_MOST_EVERY = timedelta(milliseconds=100)
PER_POD = timedelta(microseconds=100)
"""Two thousand pods that wait are looked at every 0.2 s: the pass must not eat the time between two passes."""


class Pending:
    """
    Verdicts on the pods of workloads that have no node.

    A pass is due when the cluster changed for any of them, or when one of them changed itself; between two passes the
    last verdicts stand.

    Attributes:
        disagreements: How often a verdict came to contradict the scheduler's: it measures our own mistakes.
        looked_at: Pods of the last call of `run`, whether or not their verdict changed.
    """

    def __init__(self, placement: Cluster) -> None:
        self._placement = placement
        self._verdicts: dict[Key, Diagnosis | None] = {}
        self._stale: set[Key] = set()
        self._seen: tuple[int, int] = (-1, -1)
        self._last: datetime | None = None
        self.disagreements = 0
        self.looked_at: Sequence[Key] = ()

    def watch(self, pod: Key) -> None:
        """This pod waits, and is new or has changed."""
        self._verdicts.setdefault(pod, None)
        self._stale.add(pod)

    def forget(self, pod: Key) -> None:
        """It has a node, or is gone."""
        self._verdicts.pop(pod, None)
        self._stale.discard(pod)

    def verdict(self, pod: Key) -> Diagnosis | None:
        """As of the last pass; None while there was none."""
        return self._verdicts.get(pod)

    def disagreeing(self) -> int:
        """Pods for which our verdict contradicts the scheduler's, as of the last pass."""
        return sum(1 for verdict in self._verdicts.values() if verdict is not None and verdict.disagreement)

    def due_at(self) -> datetime | None:
        """When the next pass may run; None if there is nothing to compute, the past if at once."""
        if not self._verdicts or not (self._stale or self._seen != self._mark()):
            return None
        return _AT_ONCE if self._last is None else self._last + max(AT_MOST_EVERY, PER_POD * len(self._verdicts))

    def run(self, now: datetime) -> set[Key]:
        """One pass, if it is due; returns the pods whose verdict changed."""
        due = self.due_at()
        if due is None or due > now:
            self.looked_at = ()
            return set()
        mark = self._mark()
        self.looked_at = sorted(self._verdicts) if mark != self._seen else sorted(self._stale)
        changed = {key for key in self.looked_at if self._look(key)}
        self._stale.clear()
        # Questions of what-if may leave their own marks.
        self._seen, self._last = self._mark(), now
        return changed

    def _look(self, key: Key) -> bool:
        pod = self._placement.objects.pods().get(key)
        if pod is None:
            return False
        before = self._verdicts[key]
        after = self._verdicts[key] = why_pending(self._placement, pod)
        if after.disagreement and (before is None or not before.disagreement):
            self.disagreements += 1
        return before != after

    def _mark(self) -> tuple[int, int]:
        return (self._placement.epoch, len(self._placement.log))


_AT_ONCE = datetime.min.replace(tzinfo=UTC)
