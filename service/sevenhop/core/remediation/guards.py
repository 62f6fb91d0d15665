"""
The guards: every reason why a step is not done, in one place.

`judge` is asked at the moment of each step, with what is true then.  A guard is a small pure function that says why
not; which guards stand before which purpose is in the table below.  Giving back is held up by little: the switch, the
breaker, budgets and freezes never keep capacity from its owner.  To lend for longer is to take more, and is agreed to
anew.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec

from sevenhop.core.remediation import guards_agreed as agreed
from sevenhop.core.remediation import guards_history as history
from sevenhop.core.remediation import guards_policy as policy
from sevenhop.core.remediation import guards_world as world
from sevenhop.core.remediation.guards_question import Question
from sevenhop.core.remediation.permit import GuardName, Permit, Purpose, Refusal, claim

PERMIT_LASTS: Final = timedelta(seconds=30)
"""A permit is for the step at hand: one request to the API server, with its time-out."""

_DOING: Final = frozenset({Purpose.DRY_RUN, Purpose.APPLY})
_TAKING: Final = _DOING | {Purpose.EXTEND}
_CHANGING: Final = frozenset({Purpose.DRY_RUN, Purpose.APPLY, Purpose.UNDO, Purpose.RESTORE})
_AFTER_ALL: Final = _CHANGING | {Purpose.EXTEND}
_ALL: Final = frozenset(Purpose)


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        purposes: Before which steps it stands.
        check: Why not, in one line that says what would have to change; None if nothing stands against it.
        docs: What it protects, for the reference.
    """

    name: GuardName
    purposes: frozenset[Purpose]
    check: Callable[[Question], str | None]
    docs: str


GUARDS: Final[tuple[Guard, ...]] = (
    Guard(
        name=GuardName.SAME_CLUSTER,
        purposes=_ALL,
        check=policy.same_cluster,
        docs="The plan was made for the cluster that this process watches.",
    ),
    Guard(
        name=GuardName.KILL_SWITCH,
        purposes=_TAKING,
        check=policy.kill_switch,
        docs="Nobody has stopped all changes, by setting, Slack or terminal.",
    ),
    Guard(
        name=GuardName.MODE,
        purposes=_TAKING,
        check=policy.mode,
        docs="The playbook exists and its mode is `approve`.",
    ),
    Guard(
        name=GuardName.APPROVED,
        purposes=_TAKING,
        check=agreed.approved,
        docs="As many different people as the playbook asks for, each allowed by it and verified just before, agreed "
        "to exactly this plan, in time, and it was not carried out before; to lend for longer, as many agreed "
        "to that.",
    ),
    Guard(
        name=GuardName.BREAKER,
        purposes=_DOING,
        check=history.breaker,
        docs="Not too many runs failed of late, or a person has looked since.",
    ),
    Guard(
        name=GuardName.FREEZE,
        purposes=_DOING,
        check=policy.freeze,
        docs="No freeze window of the settings is open.",
    ),
    Guard(
        name=GuardName.FRESH,
        purposes=_DOING,
        check=world.fresh,
        docs="All that the decision rests on is seen now.",
    ),
    Guard(
        name=GuardName.POOL_TURNED_BAD,
        purposes=_DOING,
        check=world.pool_turned_bad,
        docs="Not much of the pool went bad at once: then the source is suspected, not the hardware.",
    ),
    Guard(
        name=GuardName.TWO_FACTS,
        purposes=_DOING,
        check=world.two_facts,
        docs="Two facts from different sources ask for it.",
    ),
    Guard(
        name=GuardName.STILL_NEEDED,
        purposes=_DOING,
        check=world.still_needed,
        docs="What it is for still waits, and less would not do.",
    ),
    Guard(
        name=GuardName.UNCHANGED,
        purposes=_AFTER_ALL,
        check=world.unchanged,
        docs="Each target is the same object with the values that were agreed to; to give back, with the values that "
        "we left there: somebody's later change stays; to extend, that it is still there.",
    ),
    Guard(
        name=GuardName.NOT_WIDER,
        purposes=_AFTER_ALL,
        check=agreed.not_wider,
        docs="The step is part of the plan, and planning now asks for no more than was agreed to.",
    ),
    Guard(
        name=GuardName.LIMITS,
        purposes=_TAKING,
        check=agreed.limits,
        docs="No more replicas, GPUs, time and kinds of steps than the playbook allows.",
    ),
    Guard(
        name=GuardName.OPT_OUT,
        purposes=_TAKING,
        check=world.opt_out,
        docs='No owner says no: `sevenhop.dev/remediation: "off"` on object, workload or namespace.',
    ),
    Guard(
        name=GuardName.FLOOR,
        purposes=_DOING,
        check=world.floor,
        docs="Nobody goes below the fewest replicas that it must keep.",
    ),
    Guard(
        name=GuardName.BUDGET_OF_PODS,
        purposes=_DOING,
        check=world.budget_of_pods,
        docs="Every PodDisruptionBudget over the victims has room for them.",
    ),
    Guard(
        name=GuardName.COOLDOWN,
        purposes=_DOING,
        check=history.cooldown,
        docs="The playbook left these objects alone for its cooldown, after any outcome, unknown included.",
    ),
    Guard(
        name=GuardName.CONCURRENT,
        purposes=_DOING,
        check=history.concurrent,
        docs="No more runs of the playbook at once than it allows; none on the same objects or incident, nor on what "
        "lends.",
    ),
    Guard(
        name=GuardName.DAILY_BUDGET,
        purposes=_DOING,
        check=history.daily_budget,
        docs="No more runs of the playbook within 24 hours than it allows.",
    ),
)
"""In the order in which they are asked: what a person can do nothing about comes after what people decided."""


def refusals(question: Question) -> tuple[Refusal, ...]:
    """Everything that stands against the step, in the order of the table; empty if nothing does."""
    found = []
    for guard in GUARDS:
        if question.purpose in guard.purposes:
            text = guard.check(question)
            if text is not None:
                found.append(Refusal(guard.name, text))
    return tuple(found)


def judge(question: Question) -> Permit | Refusal:
    """Leave for exactly this step, for `PERMIT_LASTS` from `question.now`; or the first reason why not."""
    against = refusals(question)
    if against:
        return against[0]
    return _give(
        effect_id=question.effect_id,
        plan_hash=question.plan.hash,
        purpose=question.purpose,
        given_at=question.now,
        expires_at=question.now + PERMIT_LASTS,
    )


_give: Final = claim()
