"""
Would everyone of the need get a node once these pods have left, whatever the scheduler chooses on the way?

Where only room decides the question is put to the `Board`; where spread, affinity, ports, volumes or devices do, to a
`Contest` on the cluster itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.nodes import NodeView
from sevenhop.core.remediation.planning.board import Outcome, Role, Room, TooManyError
from sevenhop.core.remediation.planning.contest import Contest, Seat
from sevenhop.core.remediation.planning.kinds import Kinds
from sevenhop.core.remediation.planning.queue import Queue, turn

_FEW_NODES = 64
"""Up to so many, pods that more than room decides about are tried on all of them; else on those where room is made."""


class Simulation:
    """
    Questions about one need in one state of the cluster; answers to equal questions are remembered.

    Args:
        leaving: Pods that leave in any case: victims of plans that were approved already.
        first: Pods that are served before everybody: those that approved plans are for.
        kinds: Of the same state, shared by several needs.
    """

    def __init__(
        self,
        cluster: Cluster,
        need: Sequence[Pod],
        queue: Queue,
        *,
        leaving: Iterable[Key] = (),
        first: Sequence[Pod] = (),
        kinds: Kinds | None = None,
    ) -> None:
        self._cluster = cluster
        self._kinds = kinds or Kinds(cluster)
        self._leaving = frozenset(leaving)
        self._mine = frozenset(pod.metadata.key for pod in need)
        promised = {pod.metadata.key for pod in first}
        first = [*first, *(pod for pod in queue.anytime if pod.metadata.key not in promised)]
        early = {pod.metadata.key for pod in first}
        waiting = [pod for pod in queue.ahead if pod.metadata.key not in early]
        # Of two that wait equally long the one that is not ours comes first.
        order = sorted([*waiting, *need], key=lambda pod: (*turn(pod)[:2], pod.metadata.key in self._mine, turn(pod)))
        self._line = [pod for pod in (*first, *order) if not self._is_stuck(pod)]
        self._in_line = frozenset(pod.metadata.key for pod in self._line)
        self._level = [pod for pod in queue.level if pod.metadata.key not in early and not self._is_stuck(pod)]
        self._behind = [pod for pod in queue.behind if pod.metadata.key not in early and not self._is_stuck(pod)]
        self._answers: dict[tuple[bool, tuple[Room, ...]], Outcome] = {}

    def outcome(
        self,
        gone: frozenset[Key],
        also: Sequence[Pod] = (),
        *,
        tell: bool = False,
        whoever_first: bool = False,
        by_age: bool = False,
        first: Sequence[Pod] = (),
    ) -> Outcome:
        """
        What becomes of the need if these pods have left, and do not come back.

        Args:
            also: Pods of the donors that wait: served first, for what left must not come back as these.
            tell: Say where, too.
            whoever_first: Pods that are behind in the queue may be served first.  Always so where more than one pod
                leaves: between two departures somebody smaller may fit already, and who was tried at the first and
                failed may be in back-off at the second.
            by_age: Of equal priority the older is served first, as if that were certain.
            first: Pods that are behind in the queue and are served before everybody, in this order.
        """
        left = gone | self._leaving
        anybody = whoever_first or sum(self._cluster.where(key) is not None for key in left) > 1
        early = [pod for pod in (*also, *first) if pod.metadata.key not in left and not self._is_stuck(pod)]
        views = self._changed(left)
        rooms = [self._kinds.room(view, left) for view in views]
        asked = (anybody, tuple(sorted(rooms)))
        is_usual = not early and self._in_line.isdisjoint(left) and not tell and not by_age
        if is_usual and asked in self._answers:
            return self._answers[asked]  # of thousands of nodes most are alike
        passed = left | {pod.metadata.key for pod in early}
        line = early + [pod for pod in self._line if pod.metadata.key not in passed]
        level = () if by_age else self._level
        behind = [pod for pod in (*level, *(self._behind if anybody else ())) if pod.metadata.key not in passed]
        kinds, fits = self._kinds, self._kinds.board.fits
        fitting = {kind for kind in range(len(kinds.classes)) if any(fits(kind, room) for room in rooms)}
        seats = [(pod, Role.MAYBE) for pod in behind if kinds.of(pod) in fitting]
        for pod in line:
            if pod.metadata.key in self._mine:
                seats.append((pod, Role.MINE))
            elif kinds.of(pod) in fitting:
                seats.append((pod, Role.OTHER))
        if all(kinds.plain[kinds.of(pod)] for pod, _ in seats):
            answer = self._on_board(seats, rooms, views, tell=tell)
            if is_usual:
                self._answers[asked] = answer
            return answer
        elsewhere = frozenset(pod.metadata.key for pod, _ in seats if kinds.fits_now(kinds.of(pod)))
        looked_at = self._cluster.order if len(self._cluster.order) <= _FEW_NODES else views
        return Contest(self._cluster, seats, looked_at, elsewhere).outcome(left)

    def takers(self, gone: frozenset[Key], others: Iterable[Pod]) -> list[Pod]:
        """Those of these pods that could take a place that these victims leave."""
        left = gone | self._leaving
        free = [pod for pod in others if not self._is_stuck(pod) and pod.metadata.key not in left]
        rooms = [self._kinds.room(view, left) for view in self._changed(left)]
        return [pod for pod in free if any(self._kinds.board.fits(self._kinds.of(pod), room) for room in rooms)]

    def by_kind(self, pods: Iterable[Pod]) -> list[list[Pod]]:
        """Pods that are alike to the scheduler, together."""
        found: dict[int, list[Pod]] = {}
        for pod in pods:
            found.setdefault(self._kinds.of(pod), []).append(pod)
        return list(found.values())

    def _on_board(
        self, seats: Sequence[Seat], rooms: Sequence[Room], views: Sequence[NodeView], *, tell: bool
    ) -> Outcome:
        board = self._kinds.board
        turns = board.relevant([(self._kinds.of(pod), role) for pod, role in seats], rooms)
        others = {kind for kind, role in turns if role is Role.OTHER}
        elsewhere = frozenset(kind for kind in others if self._kinds.fits_now(kind))
        served = sum(role is not Role.MINE for _, role in turns)
        try:
            if not board.holds(turns, rooms, elsewhere):
                return Outcome(holds=False, served=served)
            told = board.where(turns, rooms, elsewhere) if tell else {}
        except TooManyError:
            return Outcome(holds=False, too_many=True, served=served)
        mine = iter(pod.metadata.key for pod, role in seats if role is Role.MINE)
        keys = {position: next(mine) for position, (_, role) in enumerate(turns) if role is Role.MINE}
        nodes = tuple(
            (keys[position], tuple(sorted(views[index].name for index in indexes)))
            for position, indexes in sorted(told.items())
        )
        return Outcome(holds=True, nodes=nodes, served=served)

    def _is_stuck(self, pod: Pod) -> bool:
        """Something keeps it from every node, whatever is freed; a pod of the need never counts as stuck."""
        return bool(self._kinds.classes[self._kinds.of(pod)].trouble) and pod.metadata.key not in self._mine

    def _changed(self, left: frozenset[Key]) -> list[NodeView]:
        names = {name for key in left if (name := self._cluster.where(key)) is not None}
        return [self._cluster.views[name] for name in sorted(names)]
