"""Which rules a changed subject concerns: those that look at a fact with another value."""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.facts.schema import FactValue, Unknown

_MOST_KINDS = 4_096

Seen = list[FactValue | Unknown | None]
"""Values of `WatchedFacts.names`, in their order; None for a fact that is not there."""


class WatchedFacts:
    """The rules of one kind of subject, and which of its facts they look at."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        watched: dict[str, list[Rule]] = {}
        for rule in self.rules:
            for name in rule.reads | ({rule.since} if rule.since else set()):
                watched.setdefault(name, []).append(rule)
        self.names = tuple(sorted(watched))
        self._by_position = tuple(tuple(watched[name]) for name in self.names)
        self._by_positions: dict[tuple[int, ...], tuple[Rule, ...]] = {}  # most changes are of a few kinds

    def affected(self, before: Seen | None, after: Seen) -> Iterable[Rule]:
        """Rules to evaluate: all of them for a subject that was not seen before."""
        if before is None:
            return self.rules
        other = [at for at, same in enumerate(map(is_, before, after)) if not same]
        moved = tuple([at for at in other if before[at] != after[at]])
        found = self._by_positions.get(moved)
        if found is None:
            hit = {rule.id: rule for at in moved for rule in self._by_position[at]}
            if len(self._by_positions) >= _MOST_KINDS:
                self._by_positions.clear()
            found = self._by_positions[moved] = tuple(hit.values())
        return found
