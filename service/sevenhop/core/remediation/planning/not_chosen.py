"""What was not chosen, and why there is no plan: every candidate with its reason, in words."""

from __future__ import annotations

from collections.abc import Sequence

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.read_gpu import slot_of_pod
from sevenhop.core.inventory.state import State
from sevenhop.core.remediation.plan import Considered, Need, NoPlanReason
from sevenhop.core.remediation.planning.candidates import Field
from sevenhop.core.remediation.planning.cuts import Found, Tried, why_larger
from sevenhop.core.remediation.planning.queue import Queue
from sevenhop.core.remediation.planning.search import Search
from sevenhop.core.remediation.planning.simulate import Simulation
from sevenhop.core.remediation.planning.words import count, others, slot_name, some
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.reduction import Chooser

MOST_TRIED = 50
"""Candidates of which it is worked out what stands in the way; of more, the first so many."""

_MOST_NODES = 16
"""Nodes on which it is tried whether more than the limits allow would help."""


class NotChosen:
    """
    Of one need and one field.

    Attributes:
        refused: By place of the donor, what stands against a candidate that would have helped.
        unsteered: Candidates that would hold if their controller chose as we ask.
    """

    def __init__(
        self,
        state: State,
        need: Need,
        playbook: Playbook,
        field: Field,
        search: Search,
        simulation: Simulation,
        queue: Queue,
    ) -> None:
        self._state, self._need, self._playbook, self._field = state, need, playbook, field
        self._search, self._simulation, self._queue = search, simulation, queue
        self.refused: dict[int, Considered] = {}
        self.unsteered: list[Tried] = []

    def considered(self, found: Found) -> tuple[Considered, ...]:
        """Every holder that was not chosen, those that could have given first."""
        best = found.best.candidate if found.best is not None else None
        chosen = {cut.donor for cut in best.cuts} if best is not None else set()
        failed = {cut.donor: tried for tried in reversed(found.failed) for cut in tried.candidate.cuts}
        out: list[Considered] = []
        for place, donor in enumerate(self._field.donors):
            if place in chosen:
                continue
            if place in self.refused:
                out.append(self.refused[place])
            elif place in failed:
                out.append(self.unsafe(place, failed[place]))
            elif place in found.cheapest and best is not None:
                text = why_larger(best, found.cheapest[place])
                out.append(Considered(slot_name(donor.slot), "larger", text))
            elif place in found.cheapest:
                out.append(Considered(slot_name(donor.slot), "no-help", "not enough would come free on one node"))
            else:
                out.append(Considered(slot_name(donor.slot), "limits", self._out_of_reach(place)))
        return (*out, *self._field.considered)

    def unsafe(self, place: int, tried: Tried) -> Considered:
        """Why a candidate that a donor is part of does not hold."""
        donor = self._field.donors[place]
        helps, total = tried.helps
        who = slot_name(donor.slot)
        alone = "" if len(tried.candidate.cuts) == 1 else "with others, "
        if tried.outcome.too_many:
            return Considered(who, "too-many-cases", f"{alone}too many cases to vouch for")
        if 0 < helps < total:
            text = f"{alone}it would help only in {helps} of {total} choices of victims that its controller may make"
            return Considered(who, "not-safe", text)
        if tried.outcome.served:
            text = f"{alone}{others(tried.outcome.served)} may take the room first"
            return Considered(who, "not-safe", text)
        return Considered(who, "no-help", f"{alone}not enough would come free where it is needed")

    def _out_of_reach(self, place: int) -> str:
        donor = self._field.donors[place]
        limits = f"{count(self._playbook.most_replicas, 'replica')} and {self._playbook.most_gpus} GPUs"
        spare = f"it can spare ({donor.spare} above its floor of {donor.floor})"
        return f"what would have to go is more than {spare} or {limits}"

    def shortfall(self, found: Found) -> tuple[NoPlanReason, str]:
        """Why nothing at all is offered: what is most worth knowing, first."""
        field, playbook = self._field, self._playbook
        who = slot_name((self._need.workload, self._need.component))
        if not field.donors:
            why = some(f"{each.who}: {each.text}" for each in field.considered if each.reason != "tier")
            return NoPlanReason.NO_DONOR, f"nobody of a lower tier than {who} can give: {why}"
        tried = (*found.failed, *self.unsteered)
        partly = next((each for each in tried if 0 < each.helps[0] < each.helps[1]), None)
        if partly is not None:
            names = some(slot_name(field.donors[cut.donor].slot) for cut in partly.candidate.cuts)
            text = f"{names} would help only in {partly.helps[0]} of {partly.helps[1]} choices of victims"
            return NoPlanReason.NOT_SAFE, f"{text}, and the choice is not ours"
        # It would have helped, and something else stands against it.
        against = [self.refused.get(cut.donor) for each in tried if each.outcome.holds for cut in each.candidate.cuts]
        if why := some(dict.fromkeys(f"{each.who}: {each.text}" for each in against if each is not None), 2):
            return NoPlanReason.NOT_SAFE, why
        if self._beyond_limits():
            text = f"it would take more than {count(playbook.most_replicas, 'replica')} or {playbook.most_gpus} GPUs"
            return NoPlanReason.TOO_MUCH, f"{text}, the limits of playbook {playbook.id}"
        served = max((each.outcome.served for each in found.failed), default=0)
        if served:
            text = f"{others(served)} may be served first and take the room of {who}"
            return NoPlanReason.NOT_SAFE, f"{text}{self._among_equals(found.failed, who)}"
        if any(each.outcome.too_many for each in found.failed):
            return NoPlanReason.NOT_SAFE, "there are too many cases to vouch for"
        return NoPlanReason.NOT_ENOUGH, f"all who could give together do not make room for {who}"

    def _among_equals(self, failed: Sequence[Tried], who: str) -> str:
        """What would decide it, where it is only pods of the same priority that stand in the way; else empty."""
        for tried in failed[:MOST_TRIED]:
            choices = self._search.choices(tried.candidate, [True] * len(tried.candidate.cuts))
            for gone in self._search.gone(choices, 1):
                if self._simulation.outcome(gone, self._search.waiting(tried.candidate, gone), by_age=True).holds:
                    rivals = self._simulation.takers(gone, self._queue.level)
                    names = some(dict.fromkeys(self._name_of(pod.metadata.key) for pod in rivals), 2)
                    if not names:
                        continue  # of these victims it is not their equals who stand in the way
                    return f": {names} of the same priority, which age does not decide; a higher one for {who} would"
        return ""

    def _name_of(self, pod: Key) -> str:
        slot = slot_of_pod(self._state, pod)
        return "/".join(pod) if slot is None else slot_name(slot)

    def _beyond_limits(self) -> bool:
        """Whether it would help if everybody gave all that they can spare on the nodes that lack least."""
        near = set(list(self._field.useful)[:_MOST_NODES])
        gone: set[Key] = set()
        givers: list[Key] = []
        for place, (donor, reducible) in enumerate(zip(self._field.donors, self._field.reducible, strict=True)):
            if reducible.chooser is Chooser.ANY:
                continue
            here = [index for index, unit in enumerate(donor.units) if near.intersection(unit.nodes)]
            for size in range(min(len(here), donor.spare), 0, -1):
                closed = reducible.closure(frozenset(here[-size:]))
                if closed is not None and self._search.may_lose(place, closed):
                    gone.update(pod for index in closed for pod in donor.units[index].pods)
                    givers += [pod for unit in donor.units for pod in unit.pods]
                    break
        pending = self._state.placement.pending
        waiting = [pending[pod] for pod in givers if pod in pending and pod not in gone]
        return bool(gone) and self._simulation.outcome(frozenset(gone), waiting).holds
