"""What people agreed to: who, to what exactly, until when, and how far it may go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from sevenhop.core.inventory.objects import Key
from sevenhop.core.remediation.action import EvictPod, Scale, name_of
from sevenhop.core.remediation.guards_people import humans, reached_at
from sevenhop.core.remediation.guards_question import Approval, Question, place
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.plan import Plan
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.states import PlanState
from sevenhop.core.words import counted


def approved(question: Question) -> str | None:
    playbook, plan = question.playbook, question.plan
    if playbook is None:
        return f"there is no playbook {plan.playbook} that says who may approve"
    if question.purpose is Purpose.EXTEND:
        return _extended(question, playbook)
    if question.state not in (PlanState.APPROVED, PlanState.RUNNING):
        return f"plan {plan.id} is {question.state}; only an approved one is carried out"
    for run in question.history:
        if run.plan_id == plan.id and run.state not in (PlanState.APPROVED, PlanState.RUNNING):
            return f"plan {plan.id} was carried out before and is {run.state}; an approval is used once"
    return _enough(question.approvals, playbook, question, lambda a: against_approval(a, plan, playbook, question))


def _extended(question: Question, playbook: Playbook) -> str | None:
    """Lending for longer takes from the owner what was promised back: it is agreed to by as many as the plan was."""
    if question.state is not PlanState.SUCCEEDED:
        return f"plan {question.plan.id} is {question.state}; only what is lent can be lent for longer"
    return _enough(question.extensions, playbook, question, lambda a: against_extension(a, playbook, question))


def _enough(
    approvals: Iterable[Approval],
    playbook: Playbook,
    question: Question,
    against: Callable[[Approval], str | None],
) -> str | None:
    """Whether as many people as needed said a yes that counts, and not too long ago."""
    good, why_not = [], []
    for approval in approvals:
        why = against(approval)
        if why is None:
            good.append(approval)
        else:
            why_not.append(why)
    needed = max(1, playbook.approvals)
    if humans(a.person for a in good) < needed:
        said = f": {'; '.join(why_not)}" if why_not else ""
        return f"{humans(a.person for a in good)} of {needed} approvals count{said}"
    since = reached_at(good, needed)
    if question.now - since > question.limits.approval_good_for:
        return f"approved at {_time(since)}, which is too long ago to act on; approve it anew"
    return None


def against_approval(approval: Approval, plan: Plan, playbook: Playbook, question: Question) -> str | None:
    """Why one person's yes to the plan does not count; None if it does."""
    name = approval.person.name or approval.person.id
    if approval.at >= plan.expires_at:
        return f"{name} approved after the plan had expired at {_time(plan.expires_at)}"
    return _against_yes(approval, plan, playbook, question)


def against_extension(approval: Approval, playbook: Playbook, question: Question) -> str | None:
    """Why one person's yes to lend for longer does not count; None if it does."""
    name = approval.person.name or approval.person.id
    if question.now - approval.at > question.limits.approval_good_for:
        return f"{name} agreed to that at {_time(approval.at)}, which is too long ago"
    return _against_yes(approval, question.plan, playbook, question)


def _against_yes(approval: Approval, plan: Plan, playbook: Playbook, question: Question) -> str | None:
    person, limits = approval.person, question.limits
    name = person.name or person.id
    if approval.plan_id != plan.id:
        return f"{name} approved plan {approval.plan_id or '(none)'}, not {plan.id}"
    if approval.plan_hash != plan.hash:
        return f"{name} saw another version of the plan"
    if not person.is_one_of(playbook.approvers):
        return f"{name} may not approve {playbook.id}"
    if approval.at < plan.proposed_at - limits.clock_skew:
        return f"{name} approved before the plan was proposed"
    if approval.at > question.now + limits.clock_skew:
        return f"the approval of {name} lies in the future"
    verified_at = person.verified_at
    if verified_at is None:
        return f"who {name} is was not verified"
    if verified_at > approval.at + limits.clock_skew:
        return f"who {name} is was verified only after the approval"
    if approval.at - verified_at > limits.verified_within:
        return f"who {name} is was last verified at {_time(verified_at)}, too long before the approval"
    return None


def not_wider(question: Question) -> str | None:
    plan, actions, done = question.plan, question.actions, question.done
    if not actions:
        return "the step does nothing"
    if any(action not in plan.actions for action in actions):
        return f"the step is no part of plan {plan.id}"
    if question.purpose.gives_back or question.purpose is Purpose.EXTEND:
        return None
    in_order = done >= 0 and actions == plan.actions[done : done + len(actions)]
    if question.purpose is Purpose.APPLY and not in_order:
        return "the steps of a plan are applied in their order, each once"
    if done != 0:
        return None  # our own first step has changed what planning sees
    if question.live is None:
        return "planning was not asked anew"
    if question.live.plan is None:
        return f"planning finds no plan now: {question.live.text}"
    if question.live.plan.hash != plan.hash and not is_narrower(question.live.plan, plan):
        return f"what would help now is another plan, {question.live.plan.id}: {question.live.plan.title}"
    return None


def is_narrower(live: Plan, agreed: Plan) -> bool:
    """Whether a plan asks for a part of what another asked for, and for nothing else."""
    if live.hash == agreed.hash or (live.cluster, live.playbook) != (agreed.cluster, agreed.playbook):
        return False
    if _beneficiary(live) != _beneficiary(agreed):
        return False
    scales = {(place(s.target), s.target.uid, s.component): s for s in agreed.scales}
    for action in live.actions:
        if isinstance(action, Scale):
            other = scales.get((place(action.target), action.target.uid, action.component))
            if other is None or not _is_part_of(action, other):
                return False
        elif action not in agreed.actions:
            return False
    return len(live.victims) <= len(agreed.victims) and live.gpus <= agreed.gpus and live.lease <= agreed.lease


def limits(question: Question) -> str | None:
    playbook, plan = question.playbook, question.plan
    if playbook is None:
        return f"there is no playbook {plan.playbook} that says how far to go"
    for action in plan.actions:
        if name_of(action) not in playbook.steps:
            return f"playbook {playbook.id} has no step {name_of(action)}"
    for scale in plan.scales:
        if not 0 <= scale.after < scale.before:
            return f"{scale.target}: from {scale.before} to {scale.after} replicas is no reduction"
    evicted = sum(1 for action in plan.actions if isinstance(action, EvictPod))
    replicas = sum(scale.before - scale.after for scale in plan.scales) + evicted
    if replicas > playbook.most_replicas:
        return f"{counted(replicas, 'replica')}, and {playbook.id} allows {playbook.most_replicas}"
    gpus = max(plan.gpus, sum((s.before - s.after) * s.unit_gpus for s in plan.scales))
    if gpus > playbook.most_gpus:
        return f"{counted(gpus, 'GPU')}, and {playbook.id} allows {playbook.most_gpus}"
    pods = sum((s.before - s.after) * s.unit_pods for s in plan.scales) + evicted
    if len(plan.victims) > pods:
        return f"{counted(len(plan.victims), 'pod')} would go, and the steps take {pods}"
    if plan.lease > playbook.lease:
        return f"a lease of {plan.lease}, and {playbook.id} allows {playbook.lease}"
    if plan.scales and playbook.lease and not plan.lease:
        return f"it does not say when the capacity is given back, and {playbook.id} lends"
    return None


def _beneficiary(plan: Plan) -> tuple[Key, str] | None:
    return (plan.need.workload, plan.need.component) if plan.need is not None else None


def _is_part_of(part: Scale, whole: Scale) -> bool:
    return (
        part.before == whole.before
        and part.after >= whole.after
        and (part.unit_pods, part.unit_gpus) == (whole.unit_pods, whole.unit_gpus)
    )


def _time(at: datetime) -> str:
    return f"{at:%H:%M:%S} UTC"
