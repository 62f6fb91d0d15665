"""Several gave: what happened to one of them is no reason to keep from the others what is theirs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.remediation.action import Cordon, Edit, ObjectRef
from sevenhop.core.remediation.guards import refusals
from sevenhop.core.remediation.guards_question import Question, Target
from sevenhop.core.remediation.permit import GuardName, Purpose
from tests.guard_questions import DONOR, NODE, mending_plan, passing, plan, scale

OTHER = ObjectRef("InferenceService.serving.kserve.io", "batch", "ranker", "uid-other")
BOTH = plan(scale(), scale(target=OTHER, marked=OTHER, also=(), workload=("batch", "ranker")))

Changed = Callable[[Target], Target]


def gone(target: Target) -> Target:
    return replace(target, is_gone=True, replicas=None, values=())


def anew(target: Target) -> Target:
    return replace(target, ref=replace(target.ref, uid="uid-new"))


def unseen(target: Target) -> Target:
    return replace(target, sight=Unknown(UnknownReason.STALE), is_gone=True, replicas=None, values=())


def asked(purpose: Purpose, **changes: Changed) -> Question:
    of = passing(BOTH, purpose=purpose)
    by_name: dict[str, Changed] = {ref.name: change for ref in (DONOR, OTHER) if (change := changes.get(ref.name))}
    targets = tuple(
        by_name[t.ref.name](t) if t.ref.kind == DONOR.kind and t.ref.name in by_name else t for t in of.targets
    )
    return replace(of, targets=targets)


@pytest.mark.parametrize("purpose", [Purpose.UNDO, Purpose.RESTORE, Purpose.EXTEND])
@pytest.mark.parametrize("lost", [gone, anew])
def test_one_is_gone(purpose: Purpose, lost: Changed) -> None:
    """Its owner deleted it, or made it anew: the other one gets back what it gave."""
    assert refusals(asked(purpose, ranker=lost)) == ()
    assert refusals(asked(purpose, summarizer=lost)) == ()


@pytest.mark.parametrize("purpose", [Purpose.UNDO, Purpose.RESTORE, Purpose.EXTEND])
@pytest.mark.parametrize("lost", [gone, anew])
def test_what_is_made_from_another_object_is_gone(purpose: Purpose, lost: Changed) -> None:
    """A RayService replaced the cluster that gave, and makes the next one with our number: that one is set back."""
    live = ObjectRef("RayCluster.ray.io", "batch", "chat-1", "uid-live")
    above = ObjectRef("RayService.ray.io", "batch", "chat", "uid-above")
    lasting = ((above, (Edit("/spec/rayClusterConfig/workerGroupSpecs/0/replicas", 4, 3),), ()),)
    of = passing(plan(scale(target=live, marked=above, also=lasting)), purpose=purpose)

    def without(*refs: ObjectRef) -> Question:
        return replace(of, targets=tuple(lost(t) if t.ref in refs else t for t in of.targets))

    assert refusals(without(live)) == ()
    assert [each.guard for each in refusals(without(live, above))] == [GuardName.UNCHANGED]


@pytest.mark.parametrize("purpose", [Purpose.UNDO, Purpose.RESTORE])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"ranker": gone, "summarizer": anew}, id="nobody is left"),
        pytest.param({"ranker": unseen}, id="nobody can see"),
        pytest.param({"ranker": gone, "summarizer": lambda t: replace(t, replicas=9)}, id="the other was changed"),
    ],
)
def test_still_refused(purpose: Purpose, change: dict[str, Changed]) -> None:
    """Nothing is left to give to, or what is left cannot be seen, or is not as we left it."""
    assert [each.guard for each in refusals(asked(purpose, **change))] == [GuardName.UNCHANGED]


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(asked(Purpose.EXTEND, ranker=anew, summarizer=gone), id="nobody is left"),
        pytest.param(asked(Purpose.EXTEND, ranker=unseen), id="nobody can see"),
        pytest.param(passing(mending_plan(Cordon(node=NODE)), purpose=Purpose.EXTEND), id="nothing is lent"),
        pytest.param(replace(asked(Purpose.EXTEND), targets=()), id="not looked at"),
    ],
)
def test_an_end_is_not_written_on_what_is_not_there(question: Question) -> None:
    """An extension writes a date on what gave; without that there is nothing to write on."""
    assert [each.guard for each in refusals(question)] == [GuardName.UNCHANGED]


@pytest.mark.parametrize("purpose", [Purpose.UNDO, Purpose.RESTORE, Purpose.EXTEND])
def test_planning_is_not_asked_before_giving_back(purpose: Purpose) -> None:
    """Also when no step is known to be done, as from an empty store: what would help now does not matter any more."""
    assert refusals(replace(asked(purpose), done=0, live=None)) == ()


@pytest.mark.parametrize("purpose", [Purpose.DRY_RUN, Purpose.APPLY])
def test_nothing_is_begun_with_one_of_them_gone(purpose: Purpose) -> None:
    """What people agreed to was both."""
    assert GuardName.UNCHANGED in {each.guard for each in refusals(asked(purpose, ranker=gone))}
