"""The table of guards: all are there, and each stands where it is published to stand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sevenhop.core.remediation.guards import GUARDS, judge, refusals
from sevenhop.core.remediation.guards_breaker import Breaker
from sevenhop.core.remediation.permit import GuardName, Permit, Purpose, Refusal
from sevenhop.core.remediation.plan import Answer
from sevenhop.core.remediation.states import PlanState
from tests.guard_questions import NOW, passing

BEFORE_DOING = set(GuardName)
BEFORE_GIVING_BACK = {GuardName.SAME_CLUSTER, GuardName.UNCHANGED, GuardName.NOT_WIDER}
BEFORE_EXTENDING = BEFORE_GIVING_BACK | {
    GuardName.KILL_SWITCH,
    GuardName.MODE,
    GuardName.APPROVED,
    GuardName.LIMITS,
    GuardName.OPT_OUT,
}


def test_no_guard_is_missing() -> None:
    """
    Every name has one guard, with words for the reference.
    """
    assert sorted(guard.name for guard in GUARDS) == sorted(GuardName)
    assert all(guard.docs.endswith(".") for guard in GUARDS)


@pytest.mark.parametrize(
    ("purpose", "expected"),
    [
        (Purpose.DRY_RUN, BEFORE_DOING),
        (Purpose.APPLY, BEFORE_DOING),
        (Purpose.UNDO, BEFORE_GIVING_BACK),
        (Purpose.RESTORE, BEFORE_GIVING_BACK),
        (Purpose.EXTEND, BEFORE_EXTENDING),
        (Purpose.READ_BACK, {GuardName.SAME_CLUSTER}),
    ],
    ids=lambda each: each.value if isinstance(each, Purpose) else "its guards",  # sets have no order to name them by
)
def test_which_guards_stand_before(purpose: Purpose, expected: set[GuardName]) -> None:
    """
    All before doing, trying included; those that people decide before extending; three before giving back; one before
    looking.
    """
    assert {guard.name for guard in GUARDS if purpose in guard.purposes} == expected


@pytest.mark.parametrize("purpose", Purpose, ids=str)
def test_what_passes(purpose: Purpose) -> None:
    """
    The question of the tests is let pass for every purpose, with a permit for that purpose.
    """
    found = judge(passing(purpose=purpose))

    assert isinstance(found, Permit)
    assert found.purpose is purpose


@pytest.mark.parametrize("purpose", Purpose, ids=str)
def test_what_gives_back(purpose: Purpose) -> None:
    """
    Undoing and restoring do, nothing else.
    """
    assert purpose.gives_back is (purpose in {Purpose.UNDO, Purpose.RESTORE})


@pytest.mark.parametrize("purpose", [Purpose.UNDO, Purpose.RESTORE], ids=str)
def test_giving_back_is_not_held_up(purpose: Purpose) -> None:
    """
    Capacity goes back to its owner though everything is stopped, broken, forgotten or in the dark.
    """
    question = passing()
    stopped = replace(
        question,
        purpose=purpose,
        playbook=None,
        approvals=(),
        state=PlanState.UNKNOWN,
        live=Answer(text="nothing"),
        is_needed=False,
        pool_turned_bad=True,
        evidence=(),
        switch=replace(question.switch, is_on=True, by_settings=True),
        breaker=Breaker(opened_at=NOW),
        as_of=question.plan.proposed_at,
        now=question.plan.expires_at.replace(year=2030),
    )

    assert isinstance(judge(stopped), Permit)
    assert len(refusals(replace(stopped, purpose=Purpose.APPLY))) > 8


def test_the_first_refusal_in_order_is_the_answer() -> None:
    """
    With many reasons the verdict names the first of the table, and all can be had.
    """
    question = passing(cluster="elsewhere", is_needed=False, pool_turned_bad=True)
    found = refusals(question)

    assert judge(question) == found[0]
    assert [r.guard for r in found] == [GuardName.SAME_CLUSTER, GuardName.POOL_TURNED_BAD, GuardName.STILL_NEEDED]
    assert all(isinstance(r, Refusal) and r.text and "\n" not in r.text for r in found)
