"""From the best set of victims to a plan: actions, numbers, words, and what was not chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.evaluation import class_of, evaluate
from sevenhop.core.placement.fit import unmodelled
from sevenhop.core.remediation.action import Action, Scale, Steer
from sevenhop.core.remediation.plan import Answer, Considered, Need, Plan
from sevenhop.core.remediation.planning.candidates import Field
from sevenhop.core.remediation.planning.cuts import Candidate, Cut, Tried
from sevenhop.core.remediation.planning.drains import grace_of, slow
from sevenhop.core.remediation.planning.not_chosen import NotChosen
from sevenhop.core.remediation.planning.objections import MOST_TOLD, Objections, nodes_of
from sevenhop.core.remediation.planning.queue import Queue
from sevenhop.core.remediation.planning.search import Search
from sevenhop.core.remediation.planning.simulate import Simulation
from sevenhop.core.remediation.planning.words import count, others, slot_name, some, stays_put, title_of
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.reduction import Chooser, Conflict, ConflictReason
from sevenhop.core.remediation.view import view_of


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
        self._sure: dict[tuple[Cut, ...], Tried] = {}
        self._search = Search(
            field.donors,
            field.reducible,
            simulation,
            state.placement.pending,
            field.useful,
            most_replicas=asked.playbook.most_replicas,
            most_gpus=asked.playbook.most_gpus,
            no_progress=asked.playbook.no_progress,
            accept=self._accept,
            standing=frozenset(asked.standing.victims) if asked.standing is not None else frozenset(),
        )
        self._objections = Objections(state, asked.need, asked.playbook, field, self._search)
        self._not_chosen = NotChosen(state, asked.need, asked.playbook, field, self._search, simulation, queue)

    def answer(self) -> Answer:
        """The plan, or why there is none."""
        found = self._search.run()
        considered = self._not_chosen.considered(found)
        if found.best is None:
            reason, text = self._not_chosen.shortfall(found)
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
                self._not_chosen.refused[cut.donor] = Considered(slot_name(donor.slot), str(made.reason), made.text)
                return False
            actions += made
            named = {(ref.namespace, ref.name) for each in made if isinstance(each, Steer) for ref in each.pods}
            steered.append(named >= set(self._victims(cut)) and self._field.reducible[cut.donor].is_certain(cut.units))
        if not self._are_apart(candidate, actions):
            return False
        against = self._objections.against(candidate, steered)
        if against:
            self._not_chosen.refused |= against
            return False
        tried = self._search.judge(candidate, self._search.choices(candidate, steered))
        if not tried.outcome.holds:
            for cut in candidate.cuts:
                self._not_chosen.refused[cut.donor] = self._not_chosen.unsafe(cut.donor, tried)
            self._not_chosen.unsteered.append(tried)
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
            self._not_chosen.refused.setdefault(cut.donor, Considered(who, str(ConflictReason.INDIVISIBLE), text))
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
        freed = () if tried.helps[1] > 1 else nodes_of(self._state, victims)
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
            title=title_of(scales, self._freed(candidate, victims, gpus), freed, asked.need.workload[0]),
            considered=considered,
            not_preempted=asked.not_preempted,
            notes=(*notes, *self._not_modelled()),
            proposed_at=asked.now,
            expires_at=asked.now + asked.playbook.expires,
        )

    def _freed(self, candidate: Candidate, victims: Sequence[Key], gpus: int) -> dict[str, int]:
        """GPUs by product, that which is waited for first; a donor's pods need not all hold the same."""
        product = self._asked.need.product
        if any(self._field.reducible[cut.donor].chooser is Chooser.ANY for cut in candidate.cuts):
            return {product: gpus}
        found: Counter[str] = Counter({product: 0})
        for key in victims:
            row = self._state.rows.get(key)
            if row is not None and row.node:
                found[self._state.ledger.pool_of_pod(key) or product] += row.gpus
        return {name: number for name, number in found.items() if number or name == product}

    def _where(self, candidate: Candidate, actions: Sequence[Action]) -> tuple[tuple[str, ...], int]:
        """Nodes on which pods of the need may come to run, and how many others are served before."""
        steered = any(isinstance(each, Steer) for each in actions)
        choices = self._search.choices(candidate, [steered] * len(candidate.cuts))
        nodes: set[str] = set()
        served = 0
        for gone in self._search.gone(choices, MOST_TOLD):
            outcome = self._simulation.outcome(gone, self._search.waiting(candidate, gone), tell=True)
            nodes.update(name for _, names in outcome.nodes for name in names)
            served = max(served, outcome.served)
        return tuple(sorted(nodes)), served

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
        pods = self._state.objects.pods()
        for cut in cuts:
            donor = self._field.donors[cut.donor]
            victims = self._victims(cut)
            stays = donor.ruler.replicas - len(cut.units)
            grace = max(pods[key].spec.termination_grace_period_seconds for key in victims)
            drains = f"{count(len(victims), 'pod')} of {slot_name(donor.slot)} drain{'s' if len(victims) == 1 else ''}"
            left = f"{count(stays, 'replica')} stay{'s' if stays == 1 else ''}" if stays else "none stays"
            notes.append(f"{drains} (up to {grace} s, requests unknown); {left}")
            if text := slow(grace_of(pods[key] for key in victims), self._asked.playbook):
                notes.append(f"{slot_name(donor.slot)}: {text}")
            notes += stays_put(pods[key] for key in victims)
            outranks = self._outranks(victims)
            if outranks:
                notes.append(f"{slot_name(donor.slot)} {outranks}")
        return notes

    def _outranks(self, victims: Sequence[Key]) -> str:
        """That the donor's pods, once they are given back in a shortage, would push away whom they made room for."""
        pods, pending = self._state.objects.pods(), self._state.placement.pending
        gives = max(pods[key].spec.priority or 0 for key in victims)
        takes = min((pending[key].spec.priority or 0 for key in self._asked.need.pods), default=gives)
        if gives <= takes or all(pods[key].spec.preemption_policy == "Never" for key in victims):
            return ""
        return (
            f"has a higher priority ({gives}) than who gets its room ({takes}): given back in a shortage, the "
            "scheduler may preempt that again; set PriorityClasses as the tiers are"
        )

    def _not_modelled(self) -> list[str]:
        cluster = self._state.placement
        texts: dict[str, None] = {}
        for key in self._asked.need.pods:
            pod: Pod = cluster.pending[key]
            texts |= dict.fromkeys((*evaluate(cluster, class_of(cluster, pod)).problems, *unmodelled(pod)))
        return [f"not modelled: {some(texts)}"] if texts else []
