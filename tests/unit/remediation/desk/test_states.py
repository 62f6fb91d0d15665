"""The table of states, said once more: a change of it is a change of what plans may do."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sevenhop.core.remediation.case import Case, Stage, moved
from sevenhop.core.remediation.states import NEXT, PlanState
from tests.guard_questions import plan

S = PlanState
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
TABLE = {
    "proposed": {"approved", "rejected", "expired", "superseded"},
    "approved": {"running", "superseded", "failed"},
    "running": {"succeeded", "failed", "undone", "unknown"},
    "succeeded": {"restored", "unknown"},
    "unknown": {"undone", "restored", "succeeded"},
}
"""Issue and docs/reference/plan-states.md: no state is left but by these."""


@pytest.mark.parametrize("state", PlanState, ids=str)
def test_what_may_follow(state: PlanState) -> None:
    """Each state leads where the table says, and nowhere else."""
    assert {str(each) for each in NEXT[state]} == TABLE.get(state, set())


@pytest.mark.parametrize("state", PlanState, ids=str)
def test_what_goes_on_by_itself(state: PlanState) -> None:
    """Something may still come of four of them without a person."""
    assert state.is_open is (state in {S.PROPOSED, S.APPROVED, S.RUNNING, S.SUCCEEDED})


@pytest.mark.parametrize("after", PlanState, ids=str)
@pytest.mark.parametrize("before", PlanState, ids=str)
def test_a_case_moves_by_the_table(before: PlanState, after: PlanState) -> None:
    """A state that may not follow is a fault of ours and never stored; the same state again keeps its time."""
    earlier = NOON.replace(hour=11)
    case = Case(plan=plan(), state=before, since=earlier, stage=Stage.DECISION)
    if after is not before and after not in NEXT[before]:
        with pytest.raises(ValueError, match=f"{before} does not become {after}"):
            moved(case, after, Stage.OVER, NOON, "why", "who")
        return
    found = moved(case, after, Stage.OVER, NOON, "why", "who")
    assert (found.state, found.stage, found.why) == (after, Stage.OVER, "why")
    assert found.since == (earlier if after is before else NOON)
    entry = found.entries[-1]
    assert (entry.what, entry.text, entry.who, entry.at) == (f"plan.{after}", f"{after}: why", "who", NOON)
