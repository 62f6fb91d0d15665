"""The game against the scheduler where more than room decides: played on the cluster itself, and taken back."""

from __future__ import annotations

from collections.abc import Sequence

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.evaluation import SchedulingClass, class_of, masks_of
from sevenhop.core.placement.nodes import NodeView
from sevenhop.core.placement.what_if import devices_for
from sevenhop.core.remediation.planning.board import Outcome, Role, TooManyError

MOST_STEPS = 600
"""Pods placed in thought for one question: each asks every filter of the scheduler again."""

Seat = tuple[Pod, Role]


class Contest:
    """
    One question.

    Args:
        views: Nodes that are looked at.
        elsewhere: Pods of others that may also be placed on nodes that are not looked at.
    """

    def __init__(
        self, cluster: Cluster, line: Sequence[Seat], views: Sequence[NodeView], elsewhere: frozenset[Key]
    ) -> None:
        self._cluster, self._line, self._views, self._elsewhere = cluster, line, views, elsewhere
        self._lost: dict[tuple[int, frozenset[tuple[Key, str]]], bool] = {}
        self._nodes: dict[Key, set[str]] = {}
        self._served: set[Key] = set()

    def outcome(self, left: frozenset[Key]) -> Outcome:
        """What becomes of the need once these pods have left."""
        with self._cluster.hushed(), self._cluster.removed(sorted(left)):
            try:
                loses = self._loses(0, frozenset())
            except TooManyError:
                return Outcome(holds=False, too_many=True)
        told = tuple((key, tuple(sorted(names))) for key, names in sorted(self._nodes.items()))
        return Outcome(holds=not loses, nodes=() if loses else told, served=len(self._served))

    def _loses(self, turn: int, placed: frozenset[tuple[Key, str]]) -> bool:
        hopeless: set[SchedulingClass] = set()
        options: list[NodeView] = []
        while turn < len(self._line):
            pod, role = self._line[turn]
            options = self._options(pod, hopeless)
            if options:
                break
            if role is Role.MINE:
                return True
            turn += 1
        else:
            return False
        position = (turn, placed)
        if position not in self._lost:
            if len(self._lost) >= MOST_STEPS:
                raise TooManyError
            self._lost[position] = self._loses_by_any(turn, placed, options)
        return self._lost[position]

    def _options(self, pod: Pod, hopeless: set[SchedulingClass]) -> list[NodeView]:
        wanted = class_of(self._cluster, pod)
        if wanted.trouble or wanted in hopeless:
            return []
        masks = masks_of(self._cluster, wanted, self._views)
        options = [view for view, mask in zip(self._views, masks, strict=True) if not mask]
        if not options:
            hopeless.add(wanted)
        return options

    def _loses_by_any(self, turn: int, placed: frozenset[tuple[Key, str]], options: Sequence[NodeView]) -> bool:
        pod, role = self._line[turn]
        key = pod.metadata.key
        for view in options:
            if role is Role.MINE:
                self._nodes.setdefault(key, set()).add(view.name)
            else:
                self._served.add(key)
            back = self._cluster.place(pod, view.name, devices_for(self._cluster, pod, view))
            try:
                if self._loses(turn + 1, placed | {(key, view.name)}):
                    return True
            finally:
                back()
        may_pass = role is Role.MAYBE or (role is Role.OTHER and key in self._elsewhere)
        return may_pass and self._loses(turn + 1, placed)
