"""What the table writes is followed when it is all that is left; what it would never write is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.core.effects import Borrow
from sevenhop.core.remediation.action import Edit, Scale
from sevenhop.core.remediation.borrowed import Lent
from sevenhop.core.remediation.mark_terms import against_following
from sevenhop.core.remediation.plan import Plan
from sevenhop.frameworks.scaling import SCALING
from tests.unit.scaling import scenes
from tests.unit.scaling.test_rulers import Case, each_case
from tests.unit.scaling.world import World

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PATCHES = frozenset(patch for spec in SCALING.values() for patch in spec.patches)


def against(world: World, scale: Scale) -> str:
    plan = Plan(
        cluster="c",
        playbook="free-gpu-capacity",
        incident="i",
        actions=(scale,),
        lease=timedelta(hours=2),
        title="t",
        proposed_at=NOW,
        expires_at=NOW,
    )
    borrow = Borrow(
        plan=plan.id,
        hash=plan.hash,
        incident="i",
        workload="/".join(scale.workload),
        component=scale.component,
        before=scale.before,
        after=scale.after,
        until=NOW + timedelta(hours=2),
        by="ann",
        terms=plan,
    )
    return against_following(Lent(ref=scale.marked, borrow=borrow), world, PATCHES, "c", NOW)


@each_case
def test_whatever_the_table_writes(case: Case) -> None:
    """The mark of every framework's own change is enough to give back by."""
    assert against(case.world, case.world.scale(case.component, case.replicas - 1)) == ""


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(Edit("/spec/replicas", 1, 2), id="fewer"),
        pytest.param(Edit("/spec/replicas", None, 2), id="fewer, by absence"),
        pytest.param(Edit("/spec/replicas", "2", None), id="whatever stands there"),
        pytest.param(Edit("/spec/replicas", True, 1), id="no number"),
        pytest.param(Edit("/spec/template/spec/priority", 2, 1), id="another field"),
        pytest.param(Edit("/metadata/ownerReferences/0/replicas", 2, 1), id="another part"),
    ],
)
def test_the_object_above_is_only_raised(edit: Edit) -> None:
    """Who may write on one object does not thereby scale down, or change otherwise, the one that rules it."""
    world: Any = scenes.dynamo_adapted()
    scale = world.scale("VllmDecodeWorker", 1)
    assert scale.target != scale.marked
    assert "more than giving back replicas" in against(world, replace(scale, edits=(edit,)))
