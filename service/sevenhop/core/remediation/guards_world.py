"""What the cluster looks like now: seen, needed, unchanged, and with room for the change."""

from __future__ import annotations

from collections.abc import Iterator

from sevenhop.core.facts.schema import Unknown
from sevenhop.core.remediation.action import Cordon, Edit, EvictPod, ObjectRef, Scale, Test, Value
from sevenhop.core.remediation.guards_agreed import is_narrower
from sevenhop.core.remediation.guards_question import Question, Target, place, touched
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.plan import NoPlanReason
from sevenhop.core.remediation.reduction import ConflictReason

NOT_NEEDED: frozenset[NoPlanReason] = frozenset(
    {
        NoPlanReason.NOBODY_WAITS,
        NoPlanReason.NOT_A_SHORTAGE,
        NoPlanReason.AUTOSCALER_ADDING,
        NoPlanReason.PREEMPTION_HELPS,
    }
)
"""Answers of planning that say that help comes, or is not wanted."""

_OWN_GUARD: frozenset[ConflictReason] = frozenset(
    {ConflictReason.OPTED_OUT, ConflictReason.FLOOR, ConflictReason.BUDGET, ConflictReason.UNKNOWN}
)
"""Conflicts that another guard than `unchanged` names."""


def fresh(question: Question) -> str | None:
    limits = question.limits
    for name, why in question.blind:
        return f"{name} cannot be seen now: {why}"
    if question.as_of > question.now + limits.clock_skew:
        return f"what is known is of {question.as_of:%H:%M:%S} UTC, which lies in the future; set the clocks"
    if question.now - question.as_of > limits.seen_within:
        return f"what is known is of {question.as_of:%H:%M:%S} UTC; wait until newer events are read"
    for target in question.targets:
        if target.sight is not None:
            return f"{target.ref} cannot be seen now: {target.sight}"
    return _conflict(question, ConflictReason.UNKNOWN)


def pool_turned_bad(question: Question) -> str | None:
    bad = question.pool_turned_bad
    if isinstance(bad, Unknown):
        return f"whether much of the pool went bad at once is {bad}"
    return "much of the pool went bad at once: look at the source of these readings first" if bad else None


def two_facts(question: Question) -> str | None:
    if not any(isinstance(action, (Scale, EvictPod, Cordon)) for action in question.plan.actions):
        return None
    limits, now = question.limits, question.now
    sources = {e.source for e in question.evidence if -limits.clock_skew <= now - e.seen_at <= limits.seen_within}
    if len(sources) >= 2:
        return None
    said = f"only {', '.join(sources)} says so" if sources else "nothing says so now"
    return f"{said}; two facts from different sources are needed"


def still_needed(question: Question) -> str | None:
    needed, live = question.is_needed, question.live
    if isinstance(needed, Unknown):
        return f"whether it is still needed is {needed}"
    if not needed:
        return "what it was for is over: nobody waits for it any more"
    if question.done == 0 and live is not None:
        if live.plan is None and live.reason in NOT_NEEDED:
            return f"it is not needed now: {live.text}"
        if live.plan is not None and is_narrower(live.plan, question.plan):
            return f"less would do now: plan {live.plan.id}, {live.plan.title}"
    return None


def unchanged(question: Question) -> str | None:
    if question.purpose.gives_back:
        return next(_against_giving_back(question), None)
    if question.purpose is Purpose.EXTEND:
        return next(_against_extending(question), None)
    return next(_changes(question), None)


def opt_out(question: Question) -> str | None:
    for target in question.targets:
        if target.opted_out:
            return f"{target.ref}: its owner says no ({target.opted_out})"
    return _conflict(question, ConflictReason.OPTED_OUT)


def floor(question: Question) -> str | None:
    for action in question.actions:
        if not isinstance(action, Scale):
            continue
        target = question.target(action.target)
        least = target.floor if target is not None else None
        if least is None:
            return f"the fewest replicas of {action.target} are not known"
        if isinstance(least, Unknown):
            return f"the fewest replicas of {action.target} are {least}"
        if action.after < least:
            return f"{action.target} must keep {least} replicas, and the plan leaves {action.after}"
    return _conflict(question, ConflictReason.FLOOR)


def budget_of_pods(question: Question) -> str | None:
    if isinstance(question.budgets, Unknown):
        return f"which PodDisruptionBudgets hold is {question.budgets}"
    for budget in question.budgets:
        if isinstance(budget.allowed, Unknown):
            return f"how many pods PodDisruptionBudget {budget.name} lets go is {budget.allowed}"
        if budget.victims > budget.allowed:
            return f"PodDisruptionBudget {budget.name} lets {budget.allowed} pods go, and {budget.victims} would"
    return _conflict(question, ConflictReason.BUDGET)


def _conflict(question: Question, reason: ConflictReason) -> str | None:
    conflicts = (t.conflict for t in question.targets if t.conflict is not None)
    return next((c.text for c in conflicts if c.reason is reason), None)


def _changes(question: Question) -> Iterator[str]:
    """What is no longer as it was agreed to, one line each."""
    for ref in touched(question.actions):
        target = question.target(ref)
        if target is None:
            yield f"{ref} was not looked at"
        elif target.sight is not None:
            yield f"{ref} cannot be seen now: {target.sight}"
        elif target.is_gone:
            yield f"{ref} is gone"
        elif not ref.uid or target.ref.uid != ref.uid:
            yield f"{ref} is not the object that was agreed to: it was made anew"
    for target in question.targets:
        if target.conflict is not None and target.conflict.reason not in _OWN_GUARD:
            yield target.conflict.text
    for action in question.actions:
        if not isinstance(action, Scale):
            continue
        target = question.target(action.target)
        if target is not None and target.replicas != action.before:
            asks = "an unknown number of" if target.replicas is None else target.replicas
            yield f"{action.target} asks for {asks} replicas now, and {action.before} were agreed to"
        for ref, edits, tests in _patches(action):
            wanted = {edit.pointer: edit.before for edit in edits} | {test.pointer: test.value for test in tests}
            for pointer, value in _values(question.target(ref)):
                if pointer in wanted and not _same(value, wanted[pointer]):
                    yield f"{ref}: {pointer} is {value!r} now, and {wanted[pointer]!r} was agreed to"


def _against_giving_back(question: Question) -> Iterator[str]:
    """
    Why we may not put it back: only what we left there is ours to change.

    A step whose outcome is not known may have been applied or not, so the values before it are fine too.  Of several
    that gave, one that is gone does not keep the others from getting theirs back; nor does one that is made from
    another object keep that one, whose values the patch tests.
    """
    # Pods that were steered or removed are gone, which is no reason to keep anything.
    gave = [action for action in question.actions if isinstance(action, (Scale, Cordon))]
    there = [action for action in gave if not _is_all_lost(action, question)]
    for action in there or gave:
        if there and _is_lost(_giver(action), question):
            continue
        yield from _missing(_giver(action), question)
        if not isinstance(action, Scale):
            continue
        target = question.target(action.target)
        if target is not None and target.replicas not in (action.before, action.after):
            asks = "an unknown number of" if target.replicas is None else target.replicas
            yield f"somebody changed {action.target} since: it asks for {asks} replicas, and we left {action.after}"
        for ref, edits, _ in _patches(action):
            ours = {edit.pointer: edit for edit in edits}
            for pointer, value in _values(question.target(ref)):
                edit = ours.get(pointer)
                if edit and not _same(value, edit.before) and not _same(value, edit.after):
                    yield f"somebody changed {ref} since: {pointer} is {value!r}, and we left {edit.after!r}"


def _against_extending(question: Question) -> Iterator[str]:
    """Only a date is written, on what gave: as long as one of those can be found."""
    gave = [action for action in question.actions if isinstance(action, Scale)]
    if not gave:
        yield "nothing of it is lent"
    there = [action for action in gave if not _is_all_lost(action, question)]
    for action in there or gave:
        if not there or not _is_lost(action.target, question):
            yield from _missing(action.target, question)


def _giver(action: Scale | Cordon) -> ObjectRef:
    return action.target if isinstance(action, Scale) else action.node


def _is_all_lost(action: Scale | Cordon, question: Question) -> bool:
    """Whether also the object that carries our mark, and that a lost one would be made from again, is no more."""
    if not _is_lost(_giver(action), question):
        return False
    if isinstance(action, Cordon) or place(action.marked) == place(action.target):
        return True
    return _is_lost(action.marked, question)


def _is_lost(ref: ObjectRef, question: Question) -> bool:
    """Whether this incarnation is seen to be no more."""
    target = question.target(ref)
    if target is None or target.sight is not None:
        return False
    return target.is_gone or bool(ref.uid and target.ref.uid != ref.uid)


def _missing(ref: ObjectRef, question: Question) -> Iterator[str]:
    target = question.target(ref)
    if target is None:
        yield f"{ref} was not looked at"
    elif target.sight is not None:
        yield f"{ref} cannot be seen now: {target.sight}"
    elif target.is_gone:
        yield f"{ref} is gone; there is nothing to give back to"
    elif ref.uid and target.ref.uid != ref.uid:
        yield f"{ref} was made anew since; it is not the object that gave"


def _patches(scale: Scale) -> Iterator[tuple[ObjectRef, tuple[Edit, ...], tuple[Test, ...]]]:
    yield scale.target, scale.edits, scale.tests
    yield from scale.also


def _values(target: Target | None) -> tuple[tuple[str, Value], ...]:
    return target.values if target is not None else ()


def _same(a: Value, b: Value) -> bool:
    """Equal as JSON: true is not 1."""
    return a == b and type(a) is type(b)
