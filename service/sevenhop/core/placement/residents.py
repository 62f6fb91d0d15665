"""How many pods are where: of those that hold a place on a node, counted in every way that placement asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.demand import AffinityTerm
from sevenhop.core.placement.nodes import Resident
from sevenhop.core.placement.selectors import Selector

Counts = dict[str, int]
"""Node name to number of pods."""

_K = TypeVar("_K")

_MOST_INDEXES = 512


class Residents:
    """
    Counts that are kept current, and counts by selector that are built when they are first asked for.

    Args:
        namespace_labels: Of a namespace, for terms that select namespaces.
    """

    def __init__(self, namespace_labels: Callable[[str], Mapping[str, str]]) -> None:
        self._namespace_labels = namespace_labels
        self._where: dict[Key, str] = {}
        self._by_namespace: dict[str, dict[Key, Resident]] = {}
        self._repelling: dict[AffinityTerm, Counts] = {}
        self._exclusive: dict[Key, int] = {}
        self._priorities: dict[int, int] = {}
        self._schedulers: dict[str, int] = {}
        self._indexes: dict[object, tuple[Callable[[Resident], bool], Counts]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._where

    def put(self, each: Resident) -> None:
        """A pod holds its place from now on."""
        self._where[each.key] = each.node
        self._by_namespace.setdefault(each.key[0], {})[each.key] = each
        self._count(each, 1)

    def drop(self, each: Resident) -> None:
        """It holds nothing any more."""
        self._where.pop(each.key, None)
        self._by_namespace[each.key[0]].pop(each.key, None)
        self._count(each, -1)

    def namespaces_changed(self) -> None:
        """Labels of a namespace changed, which terms may select by."""
        self._indexes = {}

    def _count(self, each: Resident, sign: int) -> None:
        _tally(self._priorities, each.priority, sign)
        _tally(self._schedulers, each.scheduler, sign)
        for term in each.anti_affinity:
            _tally(self._repelling.setdefault(term, {}), each.node, sign)
            if not self._repelling[term]:
                del self._repelling[term]
        for claim in each.claims:
            _tally(self._exclusive, claim, sign)
        for counts_it, counts in self._indexes.values():
            if counts_it(each):
                _tally(counts, each.node, sign)

    # What it answers

    def where(self, key: Key) -> str | None:
        """The node that a resident is on."""
        return self._where.get(key)

    def lowest_priority(self) -> int | None:
        """Of all of them; None if there are none."""
        return min(self._priorities, default=None)

    def placed_by(self, scheduler: str) -> int:
        """Those that name this scheduler."""
        return self._schedulers.get(scheduler, 0)

    def users_of(self, claim: Key) -> int:
        """Those that mount a PersistentVolumeClaim."""
        return self._exclusive.get(claim, 0)

    def repelled_by(self, pod: Pod) -> tuple[AffinityTerm, ...]:
        """Anti-affinity terms of pods that are here already, which speak of this pod."""
        if not self._repelling:
            return ()
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        of_namespace = self._namespace_labels(namespace)
        return tuple(t for t in self._repelling if t.covers(namespace, labels, of_namespace))

    def repelling(self, term: AffinityTerm) -> Counts:
        """Pods per node that carry the term."""
        return self._repelling.get(term, {})

    def spread_counts(self, namespace: str, selector: Selector) -> Counts:
        """Pods per node that a spread constraint counts: of the namespace, not terminating; ``{}`` counts none."""
        if selector.is_everything or selector.nothing:
            return {}

        def counts_it(each: Resident) -> bool:
            return each.key[0] == namespace and not each.terminating and selector.matches(each.labels)

        return self._index(("spread", namespace, selector), counts_it, frozenset((namespace,)))

    def affinity_counts(self, terms: tuple[AffinityTerm, ...]) -> Counts:
        """Pods per node that match all of the terms at once, terminating ones too."""

        def counts_it(each: Resident) -> bool:
            namespace = each.key[0]
            return all(t.covers(namespace, each.labels, self._namespace_labels(namespace)) for t in terms)

        named = all(t.namespace_selector is None for t in terms)
        namespaces = frozenset[str]().union(*(t.namespaces for t in terms)) if named else None
        return self._index(("affinity", terms), counts_it, namespaces)

    def _index(self, name: object, counts_it: Callable[[Resident], bool], namespaces: frozenset[str] | None) -> Counts:
        known = self._indexes.get(name)
        if known is not None:
            return known[1]
        counts: Counts = {}
        for namespace in namespaces if namespaces is not None else list(self._by_namespace):
            for each in self._by_namespace.get(namespace, {}).values():
                if counts_it(each):
                    _tally(counts, each.node, 1)
        if len(self._indexes) >= _MOST_INDEXES:
            self._indexes.pop(next(iter(self._indexes)))
        self._indexes[name] = (counts_it, counts)
        return counts


def _tally(counts: dict[_K, int], key: _K, sign: int) -> None:
    value = counts.get(key, 0) + sign
    if value:
        counts[key] = value
    else:
        counts.pop(key, None)
