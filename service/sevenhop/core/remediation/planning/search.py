"""
The smallest disturbance that helps: fewest replicas, then pods that serve, pods, workloads, lowest tier, those that end
soon, smallest part.

Layer by layer of replicas: what one replica can do is never asked of two.  Within a layer cheap sets of victims are
tried first, so the first that holds is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import combinations, islice
from math import comb

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.planning.board import Outcome
from sevenhop.core.remediation.planning.cuts import Candidate, Cost, Cut, Found, Tried
from sevenhop.core.remediation.planning.donors import Donor
from sevenhop.core.remediation.planning.drains import grace_of
from sevenhop.core.remediation.planning.simulate import Simulation
from sevenhop.core.remediation.planning.victims import MOST_SETS, Reducible, Unit, products
from sevenhop.core.remediation.reduction import Chooser

MOST_TRIED = 10_000
"""Sets of victims of one size that are all looked at."""

SOME_TRIED = 800
"""Where there are more, so many are: those on one node, then those on several, the nodes that lack least first."""

MOST_FIRMER = 200
"""Candidates that are looked at for one that holds whoever is served first."""

FEW_UNITS = 40
"""Up to so many replicas of all donors together, every set of them is a candidate."""

SHORTLIST = 24
"""Replicas that are combined across nodes where not all can be."""

Pick = tuple[int, int]
"""(place of the donor, place of the unit in it)"""


class Search:
    """
    Args:
        useful: Nodes on which the pods that wait could run, those that lack least first, and how many GPUs they lack.
        no_progress: Of equals, donors whose pods may take longer to end come last.
        accept: Whether a candidate that holds can also be carried out; asked last.
        standing: Victims that people were told of already: of equally many replicas these are tried first.
    """

    def __init__(
        self,
        donors: Sequence[Donor],
        reducible: Sequence[Reducible],
        simulation: Simulation,
        pending: Mapping[Key, Pod],
        useful: Mapping[str, int],
        *,
        most_replicas: int,
        most_gpus: int,
        no_progress: timedelta,
        accept: Callable[[Candidate], bool],
        standing: frozenset[Key] = frozenset(),
    ) -> None:
        self._donors, self._reducible = donors, reducible
        self._simulation, self._pending, self._useful = simulation, pending, useful
        self._most_replicas, self._most_gpus, self._accept = most_replicas, most_gpus, accept
        self._standing = standing
        self._ready = [sum(unit.ready for unit in donor.units) for donor in donors]
        self._slow = [grace_of(donor.pods) > no_progress for donor in donors]

    def run(self) -> Found:
        """The best of all layers."""
        picks = self._picks()
        layers: dict[int, dict[tuple[Cut, ...], Candidate]] = {}
        cheapest: dict[int, Candidate] = {}
        failed: list[Tried] = []
        for replicas in range(1, self._most_replicas + 1):
            for wanted in self._combinations(picks, replicas):
                candidate = self._candidate(wanted)
                if candidate is None:
                    continue
                layers.setdefault(candidate.replicas, {})[candidate.cuts] = candidate
                for cut in candidate.cuts:
                    known = cheapest.get(cut.donor)
                    if known is None or candidate.cost < known.cost:
                        cheapest[cut.donor] = candidate
            layer = sorted(layers.pop(replicas, {}).values(), key=lambda each: (not self._stands(each), each.cost))
            for place, candidate in enumerate(layer):
                tried = self._try(candidate)
                if tried.outcome.holds and self._accept(candidate):
                    return Found(self._firmer(tried, layer[place + 1 :]), tuple(failed), cheapest)
                failed.append(tried)
        return Found(None, tuple(failed), cheapest)

    def _firmer(self, best: Tried, others: Sequence[Candidate]) -> Tried:
        """
        One that disturbs as little and holds whoever is served first; the given one if it does, or none does.

        Only sizes and tiers must be equal: of which workload a replica goes matters less than that it helps.
        """
        if self._stands(best.candidate) or self.is_firm(best.candidate):
            return best
        for candidate in others[:MOST_FIRMER]:
            if candidate.cost[:5] != best.candidate.cost[:5]:
                break
            if self.is_firm(candidate):
                tried = self._try(candidate)
                if tried.outcome.holds and self._accept(candidate):
                    return tried
        return best

    def _stands(self, candidate: Candidate) -> bool:
        if not self._standing:
            return False
        return self._standing == {pod for unit in self._units(candidate.cuts) for pod in unit.pods}

    def is_firm(self, candidate: Candidate) -> bool:
        """Whether it holds even if pods that are behind in the queue are served first."""
        choices = self.choices(candidate, [True] * len(candidate.cuts))
        gone = next(self.gone(choices, 1), frozenset[Key]())
        return self._simulation.outcome(gone, self.waiting(candidate, gone), whoever_first=True).holds

    def cases_of_first(self, candidate: Candidate, behind: Sequence[Pod]) -> tuple[int, int]:
        """
        (in how many of how many cases it helps): nobody of these comes first, each of them alone, or all of them.

        Args:
            behind: Pods that could take a place and are behind in the queue.
        """
        choices = self.choices(candidate, [True] * len(candidate.cuts))
        gone = next(self.gone(choices, 1), frozenset[Key]())
        waiting = self.waiting(candidate, gone)
        helps = cases = 1  # as the queue stands; it would not be offered otherwise
        for alike in self._simulation.by_kind(behind):
            cases += len(alike)
            helps += len(alike) * self._simulation.outcome(gone, waiting, first=alike[:1]).holds
        if len(behind) > 1:
            cases += 1
            helps += self._simulation.outcome(gone, waiting, first=behind).holds
        return helps, cases

    # Which sets of replicas

    def _picks(self) -> list[Pick]:
        """
        Replicas with a pod where it helps, in the order of those nodes.

        Last come others that may matter: those that wait and would take room, those that a controller may choose
        instead, and, where there are few, those that make room for somebody who is ahead in the queue.
        """
        rank = {name: place for place, name in enumerate(self._useful)}
        few = sum(len(donor.units) for donor in self._donors) <= FEW_UNITS
        found: list[tuple[int, int, int]] = []
        for place, donor in enumerate(self._donors):
            for index, unit in enumerate(donor.units):
                is_any = self._reducible[place].chooser is Chooser.ANY
                matters = few or is_any or any(pod in self._pending for pod in unit.pods)
                best = min((rank[name] for name in unit.nodes if name in rank), default=len(rank) if matters else None)
                if best is not None:
                    found.append((best, place, index))
        return [(place, index) for _, place, index in sorted(found)]

    def _combinations(self, picks: Sequence[Pick], size: int) -> Iterator[tuple[Pick, ...]]:
        if comb(len(picks), size) <= MOST_TRIED:
            yield from combinations(picks, size)
            return
        left = SOME_TRIED
        by_node: dict[str, list[Pick]] = {name: [] for name in self._useful}
        for place, index in picks:
            for name in dict.fromkeys(self._donors[place].units[index].nodes):
                if name in by_node:
                    by_node[name].append((place, index))
        for here in by_node.values():
            for wanted in combinations(here, size):
                yield wanted
                left -= 1
                if left <= 0:
                    return
        for wanted in combinations(picks[:SHORTLIST], size):
            yield wanted
            left -= 1
            if left <= 0:
                return

    def _candidate(self, wanted: Iterable[Pick]) -> Candidate | None:
        by_donor: dict[int, set[int]] = {}
        for place, index in wanted:
            by_donor.setdefault(place, set()).add(index)
        cuts: list[Cut] = []
        for place, indexes in sorted(by_donor.items()):
            reducible = self._reducible[place]
            gone = reducible.closure(frozenset(indexes))
            if gone is None:
                return None
            if reducible.chooser is Chooser.ANY:
                gone = frozenset(range(len(gone)))
            if not self.may_lose(place, gone):
                return None
            cuts.append(Cut(place, gone))
        if not self._frees_enough(cuts):
            return None
        cost = self._cost(cuts)
        if cost[0] > self._most_replicas or cost[7] > self._most_gpus:
            return None
        return Candidate(tuple(cuts), cost)

    def _frees_enough(self, cuts: Iterable[Cut]) -> bool:
        """Whether any node could get what it lacks: what does not even do that need not be simulated."""
        freed: dict[str, int] = {}
        for unit in self._units(cuts):
            for node in dict.fromkeys(unit.nodes):
                freed[node] = freed.get(node, 0) + unit.gpus
        if any(self._reducible[cut.donor].chooser is Chooser.ANY for cut in cuts):
            return True
        useful = self._useful
        return any(gpus >= useful[node] for node, gpus in freed.items() if node in useful)

    def may_lose(self, place: int, gone: frozenset[int]) -> bool:
        """Whether as many replicas as a donor's floor stay, and are ready."""
        return self._left_ready(place, gone) >= self._donors[place].floor

    def _left_ready(self, place: int, gone: frozenset[int]) -> int:
        """Ready replicas that stay, in the worst case."""
        units, ready = self._donors[place].units, self._ready[place]
        if self._reducible[place].chooser is Chooser.ANY:
            return ready - min(len(gone), ready)
        return ready - sum(units[index].ready for index in gone)

    def _cost(self, cuts: Sequence[Cut]) -> Cost:
        donors = self._donors
        units = self._units(cuts)
        return (
            len(units),
            sum(len(unit.pods) for unit in units if unit.ready),
            sum(len(unit.pods) for unit in units),
            len({donors[cut.donor].slot[0] for cut in cuts}),
            sum(len(cut.units) * donors[cut.donor].tier.rank for cut in cuts),
            sum(self._slow[cut.donor] for cut in cuts),
            round(max(len(cut.units) / len(donors[cut.donor].units) for cut in cuts), 6),
            sum(self.gpus(cut) for cut in cuts),
            tuple((*donors[cut.donor].slot[0], donors[cut.donor].slot[1]) for cut in cuts),
            tuple(unit.name for unit in units),
        )

    def _units(self, cuts: Iterable[Cut]) -> list[Unit]:
        return [self._donors[cut.donor].units[index] for cut in cuts for index in sorted(cut.units)]

    def gpus(self, cut: Cut) -> int:
        """GPUs that become free; the most, where the controller chooses."""
        units = self._donors[cut.donor].units
        if self._reducible[cut.donor].chooser is Chooser.ANY:
            return sum(sorted((unit.gpus for unit in units), reverse=True)[: len(cut.units)])
        return sum(units[index].gpus for index in cut.units)

    # Whether they help

    def _try(self, candidate: Candidate) -> Tried:
        choices = [self._choices(cut, steered=True) for cut in candidate.cuts]
        return self.judge(candidate, choices)

    def judge(self, candidate: Candidate, choices: Sequence[Sequence[frozenset[Key]] | None]) -> Tried:
        """Whether it holds for every combination of these choices of victims."""
        known = [each for each in choices if each is not None]
        total = 1
        for each in known:
            total *= len(each)
        if len(known) < len(choices) or total > MOST_SETS:
            return Tried(candidate, Outcome(holds=False, too_many=True), (0, total))
        helps = 0
        worst: Outcome | None = None
        for gone in products(known):
            outcome = self._simulation.outcome(gone, self.waiting(candidate, gone))
            helps += outcome.holds
            if not outcome.holds and worst is None:
                worst = outcome
        return Tried(candidate, worst or Outcome(holds=True), (helps, total))

    def _choices(self, cut: Cut, *, steered: bool) -> list[frozenset[Key]] | None:
        donor = self._donors[cut.donor]
        sets = self._reducible[cut.donor].possible(cut.units, steered=steered)
        if sets is None:
            return None
        return [frozenset(pod for index in chosen for pod in donor.units[index].pods) for chosen in sets]

    def choices(self, candidate: Candidate, steered: Sequence[bool]) -> list[list[frozenset[Key]] | None]:
        """Of each cut, the sets of pods that may go."""
        return [self._choices(cut, steered=is_so) for cut, is_so in zip(candidate.cuts, steered, strict=True)]

    def gone(self, choices: Sequence[Sequence[frozenset[Key]] | None], most: int) -> Iterator[frozenset[Key]]:
        """Up to so many combinations of choices, as pods that leave."""
        return islice(products([each for each in choices if each is not None]), most)

    def waiting(self, candidate: Candidate, gone: frozenset[Key]) -> list[Pod]:
        """Pods of these donors that wait for a node themselves and stay."""
        keys = (
            pod
            for cut in candidate.cuts
            for unit in self._donors[cut.donor].units
            for pod in unit.pods
            if pod in self._pending and pod not in gone
        )
        return [self._pending[key] for key in keys]
