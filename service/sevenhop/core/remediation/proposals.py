"""What is offered for each incident, and when an offer no longer stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec.structs import replace

from sevenhop.core.incidents.incident import Incident
from sevenhop.core.incidents.members import Member
from sevenhop.core.inventory.state import State
from sevenhop.core.remediation.case import Case, Stage, moved, noted
from sevenhop.core.remediation.cases import Cases
from sevenhop.core.remediation.permit import GuardName, Refusal
from sevenhop.core.remediation.plan import Answer, NoPlanReason, Plan
from sevenhop.core.remediation.playbook import Mode
from sevenhop.core.remediation.progress import Look, look
from sevenhop.core.remediation.proposing import (
    Considered,
    Planner,
    Wanted,
    answer_for,
    ground_of,
    is_due,
    is_stale,
    wanted_by,
)
from sevenhop.core.remediation.reduction import ScalingTable
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.core.remediation.states import PlanState

LARGE = 50
"""Causes from which on even looking at them all is done only as often as planning may be asked."""

_REASONS: Mapping[GuardName, NoPlanReason] = {
    GuardName.COOLDOWN: NoPlanReason.COOLDOWN,
    GuardName.POOL_TURNED_BAD: NoPlanReason.POOL_TURNED_BAD,
    GuardName.LIMITS: NoPlanReason.TOO_MUCH,
    GuardName.FRESH: NoPlanReason.UNKNOWN,
}


class Incidents(Protocol):
    """What the desk of plans asks the desk of incidents."""

    @property
    def incidents(self) -> Mapping[str, Incident]:
        """By key."""
        ...

    def causes(self, key: str) -> Sequence[Member]:
        """Firing alerts whose cause an incident is; empty for an unknown one."""
        ...


class Against(Protocol):
    """What stands against offering a plan to people, whoever would approve it."""

    def __call__(self, case: Case, now: datetime) -> tuple[Refusal, ...]: ...


class Proposals:
    """Mutable, owned by the desk of plans; it proposes and withdraws, and never carries anything out."""

    def __init__(
        self, settings: RemediationSettings, cases: Cases, planner: Planner, scaling: ScalingTable, against: Against
    ) -> None:
        self._settings = settings
        self._cases = cases
        self._planner = planner
        self._scaling = scaling
        self._against = against
        self._known: dict[str, Considered] = {}
        self._held: dict[str, Case] = {}  # what guards kept back: they are asked again, time may have lifted it
        self._wakes: dict[str, datetime | None] = {}
        self._fresh: dict[tuple[str, tuple[str, ...], str], Answer] = {}

    def begin_step(self) -> None:
        """The cluster may be another one now: what planning said is asked anew where it is needed."""
        self._fresh.clear()

    def answer(self, key: str) -> Answer | None:
        """What planning said last of an incident."""
        known = self._known.get(key)
        return known.answer if known is not None else None

    def take_wakes(self) -> list[tuple[str, datetime | None]]:
        """(incident's key, when it wants to be looked at again)"""
        wakes, self._wakes = self._wakes, {}
        return list(wakes.items())

    def live(self, case: Case, incidents: Incidents, state: State, now: datetime) -> Answer:
        """What planning says now, for the incident of a case, as if the case itself were not there."""
        wanted = wanted_by(incidents.causes(case.plan.incident), state, self._settings)
        if wanted is None or wanted.playbook.id != case.plan.playbook:
            return Answer(reason=NoPlanReason.NOBODY_WAITS, text="the alert that asked for it does not fire any more")
        if case.pool:
            wanted = replace(wanted, pool=case.pool)
        return self._ask(wanted, case.plan.incident, self._cases.reserved(but=case.id), state, now, case.plan)

    def consider(
        self, key: str, incidents: Incidents, state: State, now: datetime, *, anew: bool = False
    ) -> list[Case]:
        """
        Look at an incident, unless that was done a moment ago; returns the cases that changed or are new.

        Args:
            anew: Ask planning even so.
        """
        incident = incidents.incidents.get(key)
        if incident is not None and len(incident.alerts) >= LARGE and not anew:
            known = self._known.get(key)
            if known is not None and not is_due(known, self._settings, now):
                self._wakes[key] = known.looked_at + self._settings.replan_every
                return []
        members = incidents.causes(key) if incident is not None and incident.is_open else ()
        current = self._cases.current(key)
        offered = current if current is not None and current.stage in (Stage.DECISION, Stage.SHADOW) else None
        wanted = wanted_by(members, state, self._settings) if members else None
        if incident is None or wanted is None:
            self._known.pop(key, None)
            self._held.pop(key, None)
            self._wakes[key] = None
            why = "the incident is over" if not members else "its playbook is off, or no rule asks for it any more"
            return [self._withdrawn(offered, f"no longer needed: {why}", state, now)] if offered is not None else []
        self._wakes[key] = now + self._settings.replan_every
        if current is not None and not current.is_over and offered is None:
            return []
        known = self._known.get(key)
        if not anew and not is_due(known, self._settings, now):
            return []
        reserved = self._cases.reserved()
        before = tuple((case.id, case.state) for case in self._cases.of_incident(key))
        ground = (before, *ground_of(wanted, state, reserved))
        is_as_it_was = known is not None and not is_stale(known, ground, self._settings, now)
        if known is not None and is_as_it_was and not anew and not self._is_let_go(key, now):
            self._known[key] = replace(known, looked_at=now)
            return []
        standing = offered.plan if offered is not None else None
        self._held.pop(key, None)
        answer = self._taken(key, wanted) or self._ask(wanted, key, reserved, state, now, standing)
        answer, changed = self._offer(incident, wanted, answer, offered, state, now)
        if known is None or known.answer.text != answer.text or known.answer.considered != answer.considered:
            self._cases.touched.add(key)
        self._known[key] = Considered(answer=answer, at=now, looked_at=now, ground=ground)
        return changed

    def _offer(
        self, incident: Incident, wanted: Wanted, answer: Answer, offered: Case | None, state: State, now: datetime
    ) -> tuple[Answer, list[Case]]:
        """(what planning and the guards came to, the cases that changed)"""
        plan = answer.plan
        if plan is None:
            # That nobody can see now says nothing of the plan; nobody can approve it meanwhile.
            keeps = offered is None or answer.reason is NoPlanReason.UNKNOWN
            return answer, [] if keeps or offered is None else [self._withdrawn(offered, answer.text, state, now)]
        asks = wanted.playbook.mode is Mode.APPROVE
        # What was proposed later than now was so before the clock was set back, and could not be approved until then.
        is_of_this_clock = offered is not None and offered.plan.proposed_at <= now
        is_alike = offered is not None and plan.hash == offered.plan.hash and is_of_this_clock
        if offered is not None and is_alike and asks == (offered.stage is Stage.DECISION):
            seen = self._seen_without(offered, wanted, state, now)
            return answer, [seen] if seen is not offered else []
        case = _proposed(plan, incident, wanted, now)
        refused = self._refused(case, now)
        if refused is not None:
            self._held[plan.incident] = case
            text = f"{plan.title}: not offered, {refused.text}"
            changed = [self._withdrawn(offered, f"the cluster changed; {refused.text}", state, now)] if offered else []
            return Answer(reason=refused.reason, text=text, considered=answer.considered), changed
        if offered is None:
            return answer, [case]
        why = "the cluster changed" if is_of_this_clock else "the clock was set back"
        return answer, [self._withdrawn(offered, f"{why}; plan {case.id} takes its place", state, now), case]

    def _is_let_go(self, key: str, now: datetime) -> bool:
        """Whether nothing stands any more against what was kept back: a cooldown ends with no change in the cluster."""
        held = self._held.get(key)
        return held is not None and self._refused(held, now) is None

    def _refused(self, case: Case, now: datetime) -> Answer | None:
        """What would stand against it even if everybody agreed: people are not asked in vain."""
        for other in reversed(self._cases.of_incident(case.plan.incident)):
            if other.state in (PlanState.REJECTED, PlanState.EXPIRED) and other.plan.playbook == case.plan.playbook:
                playbook = self._settings.playbook(case.plan.playbook)
                again = other.since + playbook.cooldown if playbook is not None else now
                if now < again:
                    text = f"plan {other.id} is {other.state} ({other.why}); asked again after {again:%H:%M:%S} UTC"
                    return Answer(reason=NoPlanReason.COOLDOWN, text=text)
                break
        against = self._against(case, now)
        if not against:
            return None
        return Answer(reason=_REASONS.get(against[0].guard, NoPlanReason.NOT_SAFE), text=against[0].text)

    def _taken(self, key: str, wanted: Wanted) -> Answer | None:
        """One plan for the top of a pool's waiting list: whoever else waits there is told of it."""
        if not wanted.pool:
            return None
        for case in self._cases.open():
            busy = case.stage is Stage.DECISION or case.is_running
            if busy and case.pool == wanted.pool and case.plan.incident != key:
                text = f"plan {case.id} is for the same GPUs and comes first: {case.plan.title}"
                return Answer(reason=NoPlanReason.NOT_FIRST, text=text)
        return None

    def _ask(
        self,
        wanted: Wanted,
        key: str,
        reserved: Sequence[Plan],
        state: State,
        now: datetime,
        standing: Plan | None,
    ) -> Answer:
        place = (key, tuple(plan.id for plan in reserved), standing.id if standing is not None else "")
        if place not in self._fresh:
            self._fresh[place] = answer_for(
                wanted,
                state,
                incident=key,
                planner=self._planner,
                scaling=self._scaling,
                reserved=reserved,
                now=now,
                standing=standing,
            )
        return self._fresh[place]

    def _withdrawn(self, case: Case, why: str, state: State, now: datetime) -> Case:
        if case.stage is Stage.DECISION:
            return moved(case, PlanState.SUPERSEDED, Stage.OVER, now, why)
        playbook = self._settings.playbooks.get(case.plan.playbook)
        seen = look(state, case.plan, playbook.goal) if playbook is not None else None
        reached = isinstance(seen, Look) and seen.reached
        text = f"the goal was reached without it: {seen.words}" if isinstance(seen, Look) and reached else why
        return _without(case, text, now)

    def _seen_without(self, case: Case, wanted: Wanted, state: State, now: datetime) -> Case:
        """A shadow whose goal was reached by itself is over."""
        if case.stage is not Stage.SHADOW:
            return case
        seen = look(state, case.plan, wanted.playbook.goal)
        if isinstance(seen, Look) and seen.reached:
            return _without(case, f"the goal was reached without it: {seen.words}", now)
        return case


def _proposed(plan: Plan, incident: Incident, wanted: Wanted, now: datetime) -> Case:
    asks = wanted.playbook.mode is Mode.APPROVE
    state = PlanState.PROPOSED if asks else PlanState.SHADOWED
    case = Case(
        plan=plan,
        state=state,
        since=now,
        stage=Stage.DECISION if asks else Stage.SHADOW,
        why=plan.title,
        pool=wanted.pool,
        episode=f"{incident.id}/{incident.opening}",
    )
    return noted(case, now, f"plan.{state}", f"{state}: {plan.title}")


def _without(case: Case, text: str, now: datetime) -> Case:
    after = noted(case, now, "plan.instead", text)
    return replace(after, stage=Stage.OVER, instead=text, instead_at=now)
