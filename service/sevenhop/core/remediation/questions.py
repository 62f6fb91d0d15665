"""The question that the guards are asked about a step: everything they read, as it is at this moment."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from sevenhop.core.facts.schema import Unknown
from sevenhop.core.inventory.read_component import PDBS
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.base import Object, condition
from sevenhop.core.objects.cluster import Node
from sevenhop.core.remediation.action import Action, ObjectRef, Scale, Value
from sevenhop.core.remediation.budgets import budgets_of
from sevenhop.core.remediation.case import Case
from sevenhop.core.remediation.consent import refusal_for
from sevenhop.core.remediation.guards_breaker import Breaker
from sevenhop.core.remediation.guards_question import PastRun, Question, Switch, Target, touched
from sevenhop.core.remediation.live import Unseen, done_of, held, is_gone, live_pods, object_of, sight_of, value_at
from sevenhop.core.remediation.object_plans import evidence_for
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.plan import Answer, Plan
from sevenhop.core.remediation.planning.donors import floor_of
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.reduction import Conflict, Ruler, ScalingTable
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.core.remediation.states import PlanState
from sevenhop.core.remediation.view import view_of
from sevenhop.core.subject import Subject, SubjectKind

BAD_SHARE = 0.2
BAD_WITHIN = timedelta(minutes=10)


class Desktop(msgspec.Struct, frozen=True, kw_only=True):
    """What the desk knows beside the cluster: the rest of a question."""

    cluster: str
    settings: RemediationSettings
    scaling: ScalingTable
    switch: Switch
    breaker: Breaker
    history: tuple[PastRun, ...]
    as_of: datetime


def question_of(
    case: Case,
    purpose: Purpose,
    effect_id: str,
    *,
    desk: Desktop,
    state: State,
    playbook: Playbook | None,
    live: Answer | None,
    is_open: bool,
    now: datetime,
) -> Question:
    """
    Args:
        live: What planning says now; not needed to give back.
        is_open: Whether the incident still is.
    """
    plan = case.plan
    done = done_of(state, plan) if purpose is Purpose.APPLY else 0
    done = min(done, len(plan.actions) - 1)
    actions = plan.actions[done:]
    return Question(
        cluster=desk.cluster,
        plan=plan,
        purpose=purpose,
        effect_id=effect_id,
        actions=actions,
        done=done,
        now=now,
        state=PlanState.APPROVED if case.state is PlanState.PROPOSED else case.state,
        playbook=playbook,
        switch=desk.switch,
        breaker=desk.breaker,
        freezes=desk.settings.freezes,
        approvals=case.approvals,
        history=desk.history,
        targets=tuple(targets_of(state, desk.scaling, case, actions, purpose)),
        budgets=budgets_of(state, plan),
        is_needed=is_open and _is_needed(state, plan),
        live=live if not purpose.gives_back else None,
        evidence=tuple(evidence_for(state, plan, now)),
        blind=tuple(_blind(state, plan)),
        as_of=desk.as_of,
        pool_turned_bad=turned_bad(state, now),
        limits=desk.settings.guard_limits,
        extensions=case.extensions,
    )


def targets_of(
    state: State, scaling: ScalingTable, case: Case, actions: tuple[Action, ...], purpose: Purpose
) -> Iterable[Target]:
    """One for each object that the actions touch."""
    ruled = {scale.target: scale for scale in actions if isinstance(scale, Scale)}
    pointers = _pointers(actions)
    # What others set since stays as they set it; then only our mark is taken off, which needs no values.
    only_mark = purpose.gives_back and bool(case.others)
    for ref in touched(actions):
        obj, sight = object_of(state, ref), sight_of(state, ref)
        here = msgspec.structs.replace(ref, uid=obj.metadata.uid) if obj is not None else ref
        scale = ruled.get(ref)
        if obj is None or sight is not None:
            yield Target(ref=here, sight=sight, is_gone=is_gone(state, ref))
            continue
        values = tuple(_values(obj, pointers.get(ref, ())))
        if scale is None:
            no = "" if purpose.gives_back else refusal_for(state, ref)
            yield Target(ref=here, values=() if only_mark else values, opted_out=no)
            continue
        ruler = _rule(state, scaling, scale, case.id)
        conflict = ruler if isinstance(ruler, Conflict) and not purpose.gives_back else None
        replicas = ruler.replicas if isinstance(ruler, Ruler) else _replicas(scale, values)
        if purpose.gives_back:
            replicas = scale.after if only_mark else _left(state, case.plan, scale)
        yield Target(
            ref=here,
            replicas=replicas,
            values=() if only_mark else values,
            floor=_floor(state, scale, ruler),
            conflict=conflict,
            # The table does not speak of who has given already; that its owner wants it back is heard all the same.
            opted_out=refusal_for(state, ref) if purpose is Purpose.EXTEND else "",
        )


def turned_bad(state: State, now: datetime) -> bool | Unknown:
    """
    Whether more than a fifth of the GPU nodes stopped being ready within ten minutes, or of a pool's GPUs went bad by
    what their agents say: then suspect the source.
    """
    unknown = state.gate("Node")
    if unknown is not None:
        return unknown
    if any(_pool_went_bad(state, pool) for pool in state.ledger.pools()):
        return True
    bad = total = 0
    for pool in state.ledger.pools():
        for free in state.ledger.nodes_of(pool):
            total += 1
            node = state.objects.nodes().get(("", free.name))
            bad += isinstance(node, Node) and _went_bad(node, now)
    return total > 1 and bad > 1 and bad / total > BAD_SHARE


def _pool_went_bad(state: State, pool: str) -> bool:
    ratio = state.facts.get(Subject(SubjectKind.POOL, "", pool), {}).get("pool.bad_ratio_10m")
    return isinstance(ratio, float) and ratio > BAD_SHARE


def _went_bad(node: Node, now: datetime) -> bool:
    ready = condition(node.status.conditions, "Ready")
    if ready is None or ready.status == "True":
        return False
    return ready.last_transition_time is not None and now - ready.last_transition_time <= BAD_WITHIN


def _is_needed(state: State, plan: Plan) -> bool | Unknown:
    if plan.need is None:
        return True
    unknown = state.gate("Pod") or state.belonging_gate()
    if unknown is not None:
        return unknown
    return any(row.waiting for row in state.pods_of((plan.need.workload, plan.need.component)))


def _blind(state: State, plan: Plan) -> Iterable[tuple[str, Unknown]]:
    kinds = ["Pod", "Node", *(PDBS for _ in plan.scales[:1]), *(ref.kind for ref in plan.touches)]
    for kind in dict.fromkeys(kinds):
        why = state.gate(kind)
        if why is not None:
            yield kind, why
    why = state.belonging_gate()
    if why is not None:
        yield "to which workload each pod belongs", why


def _rule(state: State, scaling: ScalingTable, scale: Scale, own: str) -> Ruler | Conflict | None:
    workload = state.workloads.get(scale.workload)
    part = workload.component(scale.component) if workload is not None else None
    if workload is None or part is None or workload.framework not in scaling:
        return None
    return scaling[workload.framework].rule(
        view_of(state, own), workload, part, live_pods(state, scale.workload, scale.component)
    )


def _floor(state: State, scale: Scale, ruler: Ruler | Conflict | None) -> int | Unknown | None:
    workload = state.workloads.get(scale.workload)
    part = workload.component(scale.component) if workload is not None else None
    if workload is None or part is None or not isinstance(ruler, Ruler):
        return None
    rows = state.pods_of((scale.workload, scale.component))
    return floor_of(state, workload, part, ruler, rows)[0]


def _replicas(scale: Scale, values: tuple[tuple[str, Value], ...]) -> int | None:
    """What the object asks for, read from the edited place where the table does not say."""
    live = dict(values)
    for edit in scale.edits:
        value = live.get(edit.pointer)
        if isinstance(value, int) and edit.before == scale.before:
            return value
    return None


def _left(state: State, plan: Plan, scale: Scale) -> int | None:
    """
    What is left of our change: the table of scaling does not speak of who has given, so the edited places tell.

    Where these cannot be seen it is for the patch to test them; where somebody else set them, nothing is ours.
    """
    seen = held(state, msgspec.structs.replace(plan, actions=(scale,)))
    if seen.others:
        return None
    return scale.before if seen.before and not seen.ours else scale.after


def _pointers(actions: tuple[Action, ...]) -> dict[ObjectRef, tuple[str, ...]]:
    found: dict[ObjectRef, tuple[str, ...]] = {}
    for action in actions:
        if isinstance(action, Scale):
            for ref, edits, tests in ((action.target, action.edits, action.tests), *action.also):
                found[ref] = (*found.get(ref, ()), *(e.pointer for e in edits), *(t.pointer for t in tests))
    return found


def _values(obj: Object, pointers: tuple[str, ...]) -> Iterable[tuple[str, Value]]:
    for pointer in pointers:
        value = value_at(obj, pointer)
        if not isinstance(value, Unseen):
            yield pointer, value
