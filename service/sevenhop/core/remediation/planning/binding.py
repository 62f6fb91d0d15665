"""From the best set of victims to a plan: actions, numbers, words, and what was not chosen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.read_gpu import slot_of_pod
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.evaluation import class_of, evaluate
from sevenhop.core.placement.fit import unmodelled
from sevenhop.core.remediation.action import Action, Scale, Steer
from sevenhop.core.remediation.plan import Answer, Considered, Need, NoPlanReason, Plan
from sevenhop.core.remediation.planning.candidates import Field
from sevenhop.core.remediation.planning.cuts import Candidate, Cut, Found, Tried, why_larger
from sevenhop.core.remediation.planning.queue import Queue
from sevenhop.core.remediation.planning.search import Search
from sevenhop.core.remediation.planning.simulate import Simulation
from sevenhop.core.remediation.planning.words import count, others, slot_name, some, title_of
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.reduction import Chooser, Conflict, ConflictReason
from sevenhop.core.remediation.view import view_of

_MOST_TOLD = 50
"""Choices of victims for which it is worked out where the pods then run; of more, the first so many."""

_MOST_NODES = 16
"""Nodes on which it is tried whether more than the limits allow would help."""


class Asked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What a plan is made for.

    Attributes:
        need: The pods that are to be helped, all of what waits or a part of it.
        waiting: Pods of the need in all.
        incident: Key of the incident.
        not_preempted: Why the scheduler makes no room by itself.
        standing: The plan that people were asked about before, if any.
    """

    need: Need
    waiting: int
    playbook: Playbook
    incident: str
    not_preempted: str
    now: datetime
    standing: Plan | None = None


class Binding:
    """One need, one field: searched and bound to objects."""

    def __init__(self, state: State, asked: Asked, field: Field, simulation: Simulation, queue: Queue) -> None:
        self._state, self._asked, self._field = state, asked, field
        self._simulation, self._queue = simulation, queue
        self._actions: dict[tuple[Cut, ...], tuple[Action, ...]] = {}
        self._refused: dict[int, Considered] = {}
        self._unsteered: list[Tried] = []
        self._sure: dict[tuple[Cut, ...], Tried] = {}
        self._search = Search(
            field.donors,
            field.reducible,
            simulation,
            state.placement.pending,
            field.useful,
            most_replicas=asked.playbook.most_replicas,
            most_gpus=asked.playbook.most_gpus,
            accept=self._accept,
            standing=frozenset(asked.standing.victims) if asked.standing is not None else frozenset(),
        )

    def answer(self) -> Answer:
        """The plan, or why there is none."""
        found = self._search.run()
        considered = self._considered(found)
        if found.best is None:
            reason, text = self._shortfall(found)
            return Answer(reason=reason, text=text, considered=considered)
        return Answer(plan=self._plan(found.best.candidate, considered), considered=considered)

    # Whether it can be carried out

    def _accept(self, candidate: Candidate) -> bool:
        actions: list[Action] = []
        steered: list[bool] = []
        for cut in candidate.cuts:
            made = self._actions_of(cut)
            if isinstance(made, Conflict):
                donor = self._field.donors[cut.donor]
                self._refused[cut.donor] = Considered(slot_name(donor.slot), str(made.reason), made.text)
                return False
            actions += made
            named = {(ref.namespace, ref.name) for each in made if isinstance(each, Steer) for ref in each.pods}
            steered.append(named >= set(self._victims(cut)) and self._field.reducible[cut.donor].is_certain(cut.units))
        if not self._are_apart(candidate, actions):
            return False
        tried = self._search.judge(candidate, self._search.choices(candidate, steered))
        if not tried.outcome.holds:
            for cut in candidate.cuts:
                self._refused[cut.donor] = self._unsafe(cut.donor, tried)
            self._unsteered.append(tried)
            return False
        self._actions[candidate.cuts] = (
            *(each for each in actions if isinstance(each, Steer)),
            *(each for each in actions if not isinstance(each, Steer)),
        )
        self._sure[candidate.cuts] = tried
        return True

    def _are_apart(self, candidate: Candidate, actions: Sequence[Action]) -> bool:
        """Whether each donor gives by an object of its own: that carries one mark, and the second would be refused."""
        marked = [each.marked for each in actions if isinstance(each, Scale)]
        if len(set(marked)) == len(marked):
            return True
        for cut in candidate.cuts:
            who = slot_name(self._field.donors[cut.donor].slot)
            text = "with others of the same object it would give twice in one plan: one at a time"
            self._refused.setdefault(cut.donor, Considered(who, str(ConflictReason.INDIVISIBLE), text))
        return False

    def _actions_of(self, cut: Cut) -> tuple[Action, ...] | Conflict:
        donor = self._field.donors[cut.donor]
        known = self._state.objects.pods()
        victims = [known[key] for key in self._victims(cut)]
        after = donor.ruler.replicas - len(cut.units)
        made = donor.spec.actions(view_of(self._state), donor.workload, donor.part, donor.ruler, after, victims)
        if not isinstance(made, Conflict) and not any(isinstance(each, Scale) for each in made):
            return Conflict(ConflictReason.NO_TARGET, "nothing would be scaled")
        return made

    def _victims(self, cut: Cut) -> list[Key]:
        """In the order in which they go, the highest index first."""
        units = self._field.donors[cut.donor].units
        return [pod for index in sorted(cut.units, reverse=True) for pod in units[index].pods]

    # The plan

    def _plan(self, candidate: Candidate, considered: tuple[Considered, ...]) -> Plan:
        asked, donors = self._asked, self._field.donors
        actions = self._actions[candidate.cuts]
        tried = self._sure[candidate.cuts]
        victims = [pod for cut in candidate.cuts for pod in self._victims(cut)]
        gpus = sum(self._search.gpus(cut) for cut in candidate.cuts)
        nodes, served = self._where(candidate, actions)
        # Which nodes become emptier is only known where the victims are.
        freed = () if tried.helps[1] > 1 else self._nodes_of(victims)
        scales = [each for each in actions if isinstance(each, Scale)]
        behind = self._behind(candidate, victims)
        helps_first = self._search.cases_of_first(candidate, behind) if behind else (1, 1)
        in_queue = self._in_queue(served, len(behind), helps_first)
        notes = dict.fromkeys((*self._part(), *in_queue, *self._cost(candidate.cuts)))
        notes |= dict.fromkeys(note for cut in candidate.cuts for note in donors[cut.donor].ruler.notes)
        return Plan(
            cluster=self._state.cluster,
            playbook=asked.playbook.id,
            incident=asked.incident,
            need=asked.need,
            actions=actions,
            victims=tuple(victims),
            nodes=nodes,
            gpus=gpus,
            lease=asked.playbook.lease,
            helps_in=tried.helps,
            helps_first=helps_first,
            title=title_of(scales, gpus, asked.need.product, freed),
            considered=considered,
            not_preempted=asked.not_preempted,
            notes=(*notes, *self._not_modelled()),
            proposed_at=asked.now,
            expires_at=asked.now + asked.playbook.expires,
        )

    def _where(self, candidate: Candidate, actions: Sequence[Action]) -> tuple[tuple[str, ...], int]:
        """Nodes on which pods of the need may come to run, and how many others are served before."""
        steered = any(isinstance(each, Steer) for each in actions)
        choices = self._search.choices(candidate, [steered] * len(candidate.cuts))
        nodes: set[str] = set()
        served = 0
        for gone in self._search.gone(choices, _MOST_TOLD):
            outcome = self._simulation.outcome(gone, self._search.waiting(candidate, gone), tell=True)
            nodes.update(name for _, names in outcome.nodes for name in names)
            served = max(served, outcome.served)
        return tuple(sorted(nodes)), served

    def _nodes_of(self, pods: Sequence[Key]) -> tuple[str, ...]:
        found = (self._state.placement.where(pod) for pod in pods)
        return tuple(sorted({name for name in found if name is not None}))

    def _part(self) -> list[str]:
        helped, waiting = len(self._asked.need.pods), self._asked.waiting
        return [] if helped == waiting else [f"helps {helped} of {waiting} pods that wait: more cannot be freed safely"]

    def _behind(self, candidate: Candidate, victims: Sequence[Key]) -> list[Pod]:
        """Who waits behind and would take the place if they came first; nobody where it helps even so."""
        takers = self._simulation.takers(frozenset(victims), self._queue.behind)
        return takers if takers and not self._search.is_firm(candidate) else []

    def _in_queue(self, served: int, behind: int, helps_first: tuple[int, int]) -> list[str]:
        notes = []
        if served:
            notes.append(f"{others(served)} may be served first; it fits all the same")
        else:
            notes.append("nobody ahead in the scheduler's queue could take the room")
        if behind:
            notes.append(
                f"{count(behind, 'pod')} behind in the queue could use the room too: it helps in {helps_first[0]} of "
                f"{helps_first[1]} cases of who is tried first, for who was tried a moment ago is in back-off"
            )
        return notes

    def _cost(self, cuts: Sequence[Cut]) -> list[str]:
        notes = []
        for cut in cuts:
            donor = self._field.donors[cut.donor]
            victims = self._victims(cut)
            stays = donor.ruler.replicas - len(cut.units)
            grace = max(self._state.objects.pods()[key].spec.termination_grace_period_seconds for key in victims)
            drains = f"{count(len(victims), 'pod')} of {slot_name(donor.slot)} drain{'s' if len(victims) == 1 else ''}"
            left = f"{count(stays, 'replica')} stay{'s' if stays == 1 else ''}" if stays else "none stays"
            notes.append(f"{drains} (up to {grace} s, requests unknown); {left}")
        return notes

    def _not_modelled(self) -> list[str]:
        cluster = self._state.placement
        texts: dict[str, None] = {}
        for key in self._asked.need.pods:
            pod: Pod = cluster.pending[key]
            texts |= dict.fromkeys((*evaluate(cluster, class_of(cluster, pod)).problems, *unmodelled(pod)))
        return [f"not modelled: {some(texts)}"] if texts else []

    # What was not chosen

    def _considered(self, found: Found) -> tuple[Considered, ...]:
        best = found.best.candidate if found.best is not None else None
        chosen = {cut.donor for cut in best.cuts} if best is not None else set()
        failed = {cut.donor: tried for tried in reversed(found.failed) for cut in tried.candidate.cuts}
        out: list[Considered] = []
        for place, donor in enumerate(self._field.donors):
            if place in chosen:
                continue
            if place in self._refused:
                out.append(self._refused[place])
            elif place in failed:
                out.append(self._unsafe(place, failed[place]))
            elif place in found.cheapest and best is not None:
                text = why_larger(best, found.cheapest[place])
                out.append(Considered(slot_name(donor.slot), "larger", text))
            elif place in found.cheapest:
                out.append(Considered(slot_name(donor.slot), "no-help", "not enough would come free on one node"))
            else:
                out.append(Considered(slot_name(donor.slot), "limits", self._out_of_reach(place)))
        return (*out, *self._field.considered)

    def _unsafe(self, place: int, tried: Tried) -> Considered:
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
        limits = f"{count(self._asked.playbook.most_replicas, 'replica')} and {self._asked.playbook.most_gpus} GPUs"
        spare = f"it can spare ({donor.spare} above its floor of {donor.floor})"
        return f"what would have to go is more than {spare} or {limits}"

    def _shortfall(self, found: Found) -> tuple[NoPlanReason, str]:
        field, playbook = self._field, self._asked.playbook
        who = slot_name((self._asked.need.workload, self._asked.need.component))
        if not field.donors:
            why = some(f"{each.who}: {each.text}" for each in field.considered if each.reason != "tier")
            return NoPlanReason.NO_DONOR, f"nobody of a lower tier than {who} can give: {why}"
        tried = (*found.failed, *self._unsteered)
        partly = next((each for each in tried if 0 < each.helps[0] < each.helps[1]), None)
        if partly is not None:
            names = some(slot_name(field.donors[cut.donor].slot) for cut in partly.candidate.cuts)
            text = f"{names} would help only in {partly.helps[0]} of {partly.helps[1]} choices of victims"
            return NoPlanReason.NOT_SAFE, f"{text}, and the choice is not ours"
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
        for tried in failed[:_MOST_TOLD]:
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
