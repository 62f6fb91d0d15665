"""
What could be offered for an incident now: looked at again only when what it rests on has changed.

Planning is dear and deterministic; so its last answer is kept with the state that it rested on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from sevenhop.core.alerts.alert import Alert
from sevenhop.core.incidents.members import Member
from sevenhop.core.inventory.pools import capacity
from sevenhop.core.inventory.state import State, slot_of
from sevenhop.core.remediation.object_plans import plan_object
from sevenhop.core.remediation.plan import Answer, NoPlanReason, Plan
from sevenhop.core.remediation.playbook import Goal, Playbook
from sevenhop.core.remediation.reduction import ScalingTable
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.core.subject import Subject, SubjectKind


class Planner(Protocol):
    """A plan for the top of one pool's waiting list, or why there is none; equal states give equal answers."""

    def __call__(
        self,
        state: State,
        pool: str,
        *,
        playbook: Playbook,
        incident: str,
        scaling: ScalingTable,
        reserved: Sequence[Plan],
        now: datetime,
        standing: Plan | None = None,
    ) -> Answer: ...


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """
    What an incident asks for.

    Attributes:
        alerts: Those of its causes whose rule names the playbook, the loudest first.
        pool: Whose waiting list it is about; empty for a playbook that mends one object.
    """

    playbook: Playbook
    alerts: tuple[Alert, ...]
    pool: str = ""


class Considered(msgspec.Struct, frozen=True, kw_only=True):
    """
    The last answer of planning, and what it rested on.

    Attributes:
        at: When it was given.
        looked_at: When what it rests on was last compared.
    """

    answer: Answer
    at: datetime
    looked_at: datetime
    ground: tuple[object, ...]


def wanted_by(members: Sequence[Member], state: State, settings: RemediationSettings) -> Wanted | None:
    """The playbook of the loudest cause that names one; None if none does, or it is off."""
    ordered = sorted(members, key=lambda m: (-m.severity.rank, m.alert.since, m.alert.fingerprint))
    for member in ordered:
        playbook = settings.playbook(member.rule.playbook) if member.rule is not None else None
        if playbook is None:
            continue
        same = [m for m in ordered if m.rule is not None and m.rule.playbook == playbook.id]
        pool = ""
        if playbook.goal is Goal.BENEFICIARY_READY:
            pool = next((found for m in same if (found := _pool(m, state))), "")
        return Wanted(playbook=playbook, alerts=tuple(m.alert for m in same), pool=pool)
    return None


def answer_for(
    wanted: Wanted,
    state: State,
    *,
    incident: str,
    planner: Planner,
    scaling: ScalingTable,
    reserved: Sequence[Plan],
    now: datetime,
    standing: Plan | None = None,
) -> Answer:
    """Ask planning."""
    if wanted.playbook.goal is not Goal.BENEFICIARY_READY:
        return plan_object(state, wanted.alerts, wanted.playbook, incident, now)
    if not wanted.pool:
        return Answer(reason=NoPlanReason.UNKNOWN, text="for which pool of GPUs it waits is not known")
    return planner(
        state,
        wanted.pool,
        playbook=wanted.playbook,
        incident=incident,
        scaling=scaling,
        reserved=reserved,
        now=now,
        standing=standing,
    )


def ground_of(wanted: Wanted, state: State, reserved: Sequence[Plan]) -> tuple[object, ...]:
    """
    What a plan rests on, to be compared: which kinds are seen, the pool and all in it, what rules its holders, and what
    is promised.
    """
    promised = (tuple(plan.id for plan in reserved), dict(state.objects.states))
    subjects = tuple(alert.subject for alert in wanted.alerts)
    if not wanted.pool:
        return (*promised, subjects, *(state.facts.get(subject) for subject in subjects))
    pool = capacity(state, wanted.pool)
    workloads = [holding.workload for holding in pool.holdings if holding.workload is not None]
    known = [found for workload in workloads if (found := state.workloads.get(workload)) is not None]
    roots = [state.objects.get(kind, *key) for workload in known for kind, key in workload.roots]
    spaces = sorted({workload[0] for workload in workloads})
    rules = [dict(table.get(space, {})) for space in spaces for table in (state.budgets, state.scalers)]
    # Guards want the scheduler's own word too, which comes a moment after the pod.
    slots = state.waiting_in.get(wanted.pool, {})
    judged = sum(row.judged for slot in slots for row in state.pods_of(slot) if row.waiting)
    return (*promised, subjects, pool, judged, *roots, *rules)


def is_due(known: Considered | None, settings: RemediationSettings, now: datetime) -> bool:
    """Whether it may be looked at again at all; what it rests on is compared only then."""
    return known is None or not known.looked_at <= now < known.looked_at + settings.replan_every


def is_stale(known: Considered, ground: tuple[object, ...], settings: RemediationSettings, now: datetime) -> bool:
    """Whether planning has to be asked again: also where something was not seen, which is no part of the ground."""
    is_seen = known.answer.reason is not NoPlanReason.UNKNOWN
    return not is_seen or known.ground != ground or not known.at <= now < known.at + settings.replan_at_latest


def _pool(member: Member, state: State) -> str:
    subject: Subject = member.alert.subject
    if member.home.cause.kind is SubjectKind.POOL:
        return member.home.cause.name
    if subject.kind is SubjectKind.POOL:
        return subject.name
    if subject.kind is SubjectKind.COMPONENT:
        return state.pool_of.get(slot_of(subject), "")
    if subject.kind is SubjectKind.WORKLOAD:
        key = (subject.namespace, subject.name)
        for part in sorted(state.slots_of.get(key, ())):
            pool = state.pool_of.get((key, part), "")
            if (key, part) in state.waiting_in.get(pool, {}):
                return pool
    return ""
