"""Which replicas go when a component is reduced: what its controller may choose, and what we can make it choose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import combinations
from math import comb

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Steer
from sevenhop.core.remediation.planning.ranking import deletion_cost, removal_order, standing
from sevenhop.core.remediation.reduction import Chooser

_ORDINAL = re.compile(r"(\d+)$")
_INDEX_LABELS = (
    "apps.kubernetes.io/pod-index",
    "leaderworkerset.sigs.k8s.io/group-index",
    "grove.io/podcliquescalinggroup-replica-index",
    "grove.io/podclique-pod-index",
)
_COST = Steer(pods=()).cost

MOST_SETS = 2_000
"""Choices of victims that are looked through for one plan; more are too many to vouch for."""


class Unit(msgspec.Struct, frozen=True, gc=False):
    """
    One replica: all pods of it go together.

    Attributes:
        index: Ordinal or group index; None where the name has none.
        nodes: Of its pods that have one.
    """

    name: str
    index: int | None
    pods: tuple[Key, ...]
    nodes: tuple[str, ...]
    gpus: int
    ready: bool


def units_of(rows: Iterable[PodRow], pods: Mapping[Key, Pod], unit_pods: int) -> tuple[Unit, ...] | None:
    """
    Live pods as replicas, in order of index, then name; None if pods belong together and nothing says which.

    >>> units_of((), {}, 2)
    ()
    """
    groups: dict[str, list[PodRow]] = {}
    for row in rows:
        if unit_pods > 1 and not row.group:
            return None
        groups.setdefault(row.group if unit_pods > 1 else row.key[1], []).append(row)
    found = []
    for name, members in groups.items():
        members.sort(key=lambda row: row.key)
        found.append(
            Unit(
                name,
                _index(name, pods[members[0].key]) if unit_pods == 1 else _index(name, None),
                tuple(row.key for row in members),
                tuple(row.node for row in members if row.node),
                sum(row.gpus for row in members if row.node),
                all(row.ready for row in members) and len(members) >= unit_pods,
            )
        )
    return tuple(sorted(found, key=_by_name))


def _index(name: str, pod: Pod | None) -> int | None:
    labels = pod.metadata.labels if pod is not None else {}
    stated = next((labels[key] for key in _INDEX_LABELS if labels.get(key, "").isdecimal()), None)
    if stated is not None:
        return int(stated)
    ordinal = _ORDINAL.search(name)
    return int(ordinal.group(1)) if ordinal else None


def _by_name(unit: Unit) -> tuple[int, str]:
    return (unit.index if unit.index is not None else -1, unit.name)


class Reducible:
    """
    The part of a donor that decides who goes.

    Args:
        pods: All that are in the units, as they are now.
    """

    def __init__(self, chooser: Chooser, units: Sequence[Unit], pods: Mapping[Key, Pod], now: datetime) -> None:
        self.chooser = chooser
        self._units = tuple(units)
        self._first = [pods[unit.pods[0]] for unit in units]
        self._now = now
        self._standing = [standing(pod) for pod in self._first]
        self._costs = [deletion_cost(pod) for pod in self._first]
        numbers = [unit.index for unit in units]
        self._are_numbered = None not in numbers and len(set(numbers)) == len(numbers)

    def closure(self, wanted: frozenset[int]) -> frozenset[int] | None:
        """
        The smallest set of units that can be made to go and holds the wanted ones; None if there is none.

        Indexes are places in `units`.
        """
        match self.chooser:
            case Chooser.NAMED | Chooser.ANY:
                return wanted
            case Chooser.HIGHEST:
                lowest = min(wanted)
                return frozenset(range(lowest, len(self._units))) if self._are_numbered else None
            case Chooser.REPLICA_SET:
                return self._steered(wanted)

    def possible(self, gone: frozenset[int], *, steered: bool) -> list[frozenset[int]] | None:
        """
        Every set of as many units that the controller may choose, if we ask for `gone`; None if there are too many.

        Args:
            steered: The plan annotates deletion costs.  Without, nothing but the standing of pods is certain: which of
                equals goes depends on their ages at that moment.
        """
        everything = range(len(self._units))
        match self.chooser:
            case Chooser.NAMED | Chooser.HIGHEST:
                return [gone]
            case Chooser.ANY:
                return _subsets(everything, len(gone), ())
            case Chooser.REPLICA_SET:
                if steered:
                    return [gone]
                last = max(self._standing[index] for index in gone)
                sure = [index for index in everything if self._standing[index] < last]
                equal = [index for index in everything if self._standing[index] == last]
                return _subsets(equal, len(gone) - len(sure), sure)

    def is_certain(self, gone: frozenset[int]) -> bool:
        """Whether a ReplicaSet's own order, with the costs that we annotate, begins with exactly these."""
        costs = {self._first[index].metadata.key: _COST for index in gone}
        order = removal_order(self._first, self._now, costs)
        return {pod.metadata.key for pod in order[: len(gone)]} == set(costs)

    def _steered(self, wanted: frozenset[int]) -> frozenset[int] | None:
        # Whatever the costs say, pods without a node, pods that do not run and pods that are not ready go first.
        last = max(self._standing[index] for index in wanted)
        gone = wanted | {index for index, each in enumerate(self._standing) if each < last}
        for index, each in enumerate(self._standing):
            if each == last and self._costs[index] <= _COST and index not in gone:
                return None  # somebody has annotated the lowest cost already: it would go instead
        return gone


def _subsets(of: Iterable[int], size: int, sure: Sequence[int]) -> list[frozenset[int]] | None:
    items = list(of)
    if comb(len(items), size) > MOST_SETS:
        return None
    return [frozenset((*sure, *chosen)) for chosen in combinations(items, size)]


def products(choices: Sequence[Sequence[frozenset[Key]]]) -> Iterator[frozenset[Key]]:
    """Every combination of one choice of each donor, as the pods that go."""
    if not choices:
        yield frozenset()
        return
    for rest in products(choices[1:]):
        for first in choices[0]:
            yield first | rest
