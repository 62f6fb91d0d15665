"""What could be taken from whom, what it costs, and how it fared."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sevenhop.core.remediation.planning.board import Outcome
from sevenhop.core.remediation.planning.words import count

Cost = tuple[int, int, int, int, int, int, float, int, tuple[tuple[str, str, str], ...], tuple[str, ...]]
"""
(replicas, pods that serve, pods, workloads, tiers, donors that end late, largest part of a donor, GPUs, donors, units);
less is better
"""


class Cut(msgspec.Struct, frozen=True, gc=False):
    """What one donor gives: places in its `units`; where the controller chooses, only how many counts."""

    donor: int
    units: frozenset[int]


class Candidate(msgspec.Struct, frozen=True, gc=False):
    cuts: tuple[Cut, ...]
    cost: Cost

    @property
    def replicas(self) -> int:
        return self.cost[0]


class Tried(msgspec.Struct, frozen=True, gc=False):
    """
    How a candidate fared.

    Attributes:
        helps: In how many of how many choices of victims; fewer of both where looking on was not worth it.
    """

    candidate: Candidate
    outcome: Outcome
    helps: tuple[int, int]


class Found(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        best: The smallest that holds; None if none does.
        failed: Those that were tried and do not hold, the cheapest first.
        cheapest: Of each donor, its cheapest candidate within the limits; donors that have none are not in it.
    """

    best: Tried | None
    failed: tuple[Tried, ...] = ()
    cheapest: Mapping[int, Candidate] = {}


def why_larger(best: Candidate, other: Candidate) -> str:
    """The first thing in which it disturbs more."""
    ours, its = best.cost, other.cost
    if its[0] != ours[0]:
        return f"not needed: {count(its[0], 'replica')} of it would go, instead of {ours[0]}"
    if its[1] != ours[1]:
        return f"not needed: {count(its[1], 'serving pod')} would go, instead of {ours[1]}"
    if its[2] != ours[2]:
        return f"not needed: {count(its[2], 'pod')} would go, instead of {ours[2]}"
    if its[3] != ours[3]:
        return f"not needed: {count(its[3], 'workload')} would give, instead of {ours[3]}"
    if its[4] != ours[4]:
        return "not needed: it ranks higher than who was chosen"
    if its[5] != ours[5]:
        return "not needed: its pods may take longer to end than those of who was chosen"
    if its[6] != ours[6]:
        return f"not needed: a larger part of it would go ({its[6]:.0%}, instead of {ours[6]:.0%})"
    return "not needed: no smaller disturbance than the one chosen"
