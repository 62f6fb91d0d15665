"""To lend for longer than was promised: who must agree, and what stands against it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.core.remediation.guards import refusals
from sevenhop.core.remediation.guards_breaker import Breaker
from sevenhop.core.remediation.guards_freeze import Freeze
from sevenhop.core.remediation.guards_question import Question, Switch
from sevenhop.core.remediation.permit import GuardName, Purpose
from sevenhop.core.remediation.playbook import Mode
from sevenhop.core.remediation.states import PlanState
from tests.guard_questions import ANN, BOB, DONOR, NOW, PLAYBOOK, approval, passing, plan

PLAN = plan(proposed_at=NOW - timedelta(hours=2), expires_at=NOW - timedelta(minutes=105))
ANN_AGAIN = replace(ANN, id="kubernetes:ann", is_same_as=())
STRANGER = replace(BOB, id="slack:U9", groups=())
GOOD_FOR = timedelta(minutes=15)


def lent(**more: Any) -> Question:
    """What stands before an extension that may pass, hours after the plan itself was approved."""
    return passing(PLAN, purpose=Purpose.EXTEND, **more)


def for_two(*people: Any) -> Question:
    return lent(playbook=replace(PLAYBOOK, approvals=2), extensions=tuple(approval(person, PLAN) for person in people))


def agreed(**more: Any) -> Question:
    return lent(extensions=(approval(more.pop("person", ANN), PLAN, **more),))


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(lent(), id="one is enough"),
        pytest.param(for_two(ANN, BOB), id="two of two"),
        pytest.param(agreed(at=NOW - GOOD_FOR, person=replace(ANN, verified_at=NOW - GOOD_FOR)), id="on the dot"),
        pytest.param(
            lent(extensions=(approval(ANN, PLAN, at=NOW - 2 * GOOD_FOR), approval(BOB, PLAN))),
            id="one of long ago, and one of now",
        ),
        pytest.param(
            lent(
                breaker=Breaker(opened_at=NOW),
                freezes=(Freeze(name="f", start=NOW, end=NOW + GOOD_FOR),),
                is_needed=False,
                live=None,
                evidence=(),
                pool_turned_bad=True,
                as_of=PLAN.proposed_at,
                approvals=(),
            ),
            id="nothing is begun, so what stands against beginning does not matter",
        ),
    ],
)
def test_let_pass(question: Question) -> None:
    """As many as the playbook asks for agreed to it, just now; that the plan itself has expired is no matter."""
    assert refusals(question) == ()


@pytest.mark.parametrize(
    ("question", "guard"),
    [
        pytest.param(lent(switch=Switch(is_on=True)), GuardName.KILL_SWITCH, id="stopped by people"),
        pytest.param(lent(switch=Switch(by_settings=True)), GuardName.KILL_SWITCH, id="stopped by settings"),
        pytest.param(lent(playbook=replace(PLAYBOOK, mode=Mode.SHADOW)), GuardName.MODE, id="shadow"),
        pytest.param(lent(extensions=()), GuardName.APPROVED, id="who approved the plan agreed to its end"),
        pytest.param(for_two(ANN), GuardName.APPROVED, id="one of two"),
        pytest.param(for_two(ANN, ANN), GuardName.APPROVED, id="one of two, twice"),
        pytest.param(for_two(ANN, ANN_AGAIN), GuardName.APPROVED, id="one of two, in two places"),
        pytest.param(for_two(ANN, STRANGER), GuardName.APPROVED, id="one of two, and a stranger"),
        pytest.param(agreed(person=STRANGER), GuardName.APPROVED, id="a stranger"),
        pytest.param(agreed(plan_id="other"), GuardName.APPROVED, id="another plan"),
        pytest.param(agreed(plan_hash="other"), GuardName.APPROVED, id="another version"),
        pytest.param(agreed(person=replace(ANN, verified_at=None)), GuardName.APPROVED, id="not verified"),
        pytest.param(
            agreed(
                at=NOW - GOOD_FOR - timedelta(microseconds=1),
                person=replace(ANN, verified_at=NOW - GOOD_FOR - timedelta(microseconds=1)),
            ),
            GuardName.APPROVED,
            id="too long ago",
        ),
        pytest.param(agreed(at=NOW + timedelta(minutes=1)), GuardName.APPROVED, id="in the future"),
        pytest.param(lent(state=PlanState.RUNNING), GuardName.APPROVED, id="not lent yet"),
        pytest.param(lent(state=PlanState.UNKNOWN), GuardName.APPROVED, id="nobody knows what is lent"),
        pytest.param(
            lent(playbook=replace(PLAYBOOK, lease=timedelta(minutes=119))), GuardName.LIMITS, id="a shorter lease now"
        ),
        pytest.param(
            lent(targets=tuple(replace(t, opted_out="off") if t.ref == DONOR else t for t in lent().targets)),
            GuardName.OPT_OUT,
            id="the owner wants it back",
        ),
    ],
)
def test_refused(question: Question, guard: GuardName) -> None:
    """To keep what was promised back is to take it, and asks for as much leave."""
    assert [each.guard for each in refusals(question)] == [guard]


def test_whose_yes_does_not_count_is_named() -> None:
    """By the name that people know, with the time, for an extension as for the plan itself."""
    (old,) = refusals(agreed(at=NOW - 2 * GOOD_FOR))
    at = NOW - 2 * GOOD_FOR
    assert old.text == f"0 of 1 approvals count: ann agreed to that at {at:%H:%M:%S} UTC, which is too long ago"
    nameless = replace(ANN, name="")
    assert "slack:U1 agreed to that at" in refusals(agreed(at=at, person=nameless))[0].text
    late = passing(PLAN, approvals=(approval(ANN, PLAN),))
    texts = [each.text for each in refusals(late) if each.guard is GuardName.APPROVED]
    assert texts == [
        f"0 of 1 approvals count: ann approved after the plan had expired at {PLAN.expires_at:%H:%M:%S} UTC"
    ]


def test_without_a_playbook_nobody_extends() -> None:
    """Nothing says any more who may."""
    assert {GuardName.APPROVED, GuardName.MODE} <= {each.guard for each in refusals(lent(playbook=None))}
