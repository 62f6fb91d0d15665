"""The executor on the simulated API server: what was approved, once, and nothing half done."""

from __future__ import annotations

import json
from datetime import timedelta

import msgspec
import pytest

from sevenhop.core.events import StepResult
from sevenhop.core.remediation.permit import Purpose
from tests.unit.actions import scene
from tests.unit.actions.interference import (
    EACH_SHAPE,
    Nth,
    patches,
    scaled_by_somebody,
    without_empty,
)
from tests.unit.actions.scene import (
    NOON,
    Shape,
    act,
    cluster,
    leave,
    mark,
)


@EACH_SHAPE
async def test_apply_marks_scales_and_tells(shape: Shape) -> None:
    """The owner says who borrowed what, the number is the new one, and each touched object has one Event."""
    async with cluster() as c:
        done = await c.deliver(act(*shape.make(c)))

        assert (done.result, shape.replicas(c)) == (StepResult.DONE, 3)
        said = mark(c, shape)
        assert (said["before"], said["after"], said["by"]) == (4, 3, "dana")
        assert said["terms"]["title"] == "donor 4 → 3"
        assert {e["reason"] for e in c.events()} == {"RemediationApplied"}
        assert len({e["involvedObject"]["name"] for e in c.events()}) == len(c.events()) > 0


@pytest.mark.parametrize("purpose", [Purpose.DRY_RUN, Purpose.APPLY])
async def test_every_object_that_is_changed_is_named(purpose: Purpose) -> None:
    """The RayService above the live cluster gets the number too, and what is told of the step says so."""
    async with cluster() as c:
        done = await c.deliver(act(*scene.ray(c), purpose=purpose))
        assert "RayCluster chat/ray-x 4 → 3, and RayService chat/ray too" in done.detail


@EACH_SHAPE
async def test_a_dry_run_asks_for_every_patch_and_changes_nothing(shape: Shape) -> None:
    """As many requests as the real thing, none of which leaves a trace."""
    async with cluster() as c:
        actions, before = shape.make(c), c.store.revision
        done = await c.deliver(act(*actions, purpose=Purpose.DRY_RUN))

        assert (done.result, c.store.revision) == (StepResult.DONE, before)
        tried = sum("dryRun=All" in path for _, path in c.server.requests)
        await c.deliver(act(*actions))
        assert tried == sum(m == "PATCH" and "dryRun" not in path for m, path in c.server.requests)


@EACH_SHAPE
@pytest.mark.parametrize("purpose", [Purpose.UNDO, Purpose.RESTORE])
async def test_what_was_lent_comes_back_as_it_was(shape: Shape, purpose: Purpose) -> None:
    """After apply and back every object looks as before, annotations included."""
    async with cluster() as c:
        actions = shape.make(c)
        before = c.looks()
        await c.deliver(act(*actions))
        assert c.looks() != before
        done = await c.deliver(act(*actions, purpose=purpose, number=2))

        assert done.result is StepResult.DONE
        after = c.looks()
        if "RayCluster.ray.io ray-x" in after:  # an empty list is what an empty list means
            group = after["RayCluster.ray.io ray-x"]["spec"]["workerGroupSpecs"][1]
            assert group.pop("scaleStrategy", None) in (None, {"workersToDelete": []})
        assert after == before


@EACH_SHAPE
async def test_an_extension_changes_the_date_on_the_mark(shape: Shape) -> None:
    """And nothing else; the same again changes nothing; and it is given back as before."""
    async with cluster() as c:
        actions = shape.make(c)
        before = c.looks()
        await c.deliver(act(*actions))
        lent = c.looks()
        said = mark(c, shape)
        step = act(*actions, purpose=Purpose.EXTEND, number=2)
        assert step.borrow is not None
        later = NOON + timedelta(hours=9)
        step = msgspec.structs.replace(step, borrow=msgspec.structs.replace(step.borrow, until=later))
        assert (await c.deliver(step)).result is StepResult.DONE
        assert mark(c, shape) == {**said, "until": "2026-11-30T21:00:00Z"}
        assert json.dumps(c.looks()).replace("2026-11-30T21:00", "2026-11-30T14:00") == json.dumps(lent)
        revision = c.store.revision
        assert (await c.deliver(step, uncertain=True)).result is StepResult.DONE
        assert c.store.revision == revision

        await c.deliver(act(*actions, purpose=Purpose.RESTORE, number=3))
        assert mark(c, shape) is None
        assert (await c.deliver(step)).result is StepResult.REFUSED
        assert len(before) == len(c.looks())


@EACH_SHAPE
@pytest.mark.parametrize("purpose", [Purpose.UNDO, Purpose.RESTORE])
async def test_a_later_change_of_somebody_else_is_respected(shape: Shape, purpose: Purpose) -> None:
    """Whoever scaled the donor to seven meanwhile keeps seven; only our mark goes, and the answer says so."""
    async with cluster() as c:
        actions = shape.make(c)
        await c.deliver(act(*actions))
        scaled_by_somebody(c, 7)
        done = await c.deliver(act(*actions, purpose=purpose, number=2))

        assert (done.result, shape.replicas(c), mark(c, shape)) == (StepResult.DONE, 7, None)
        assert "set it to 7" in done.detail


@EACH_SHAPE
async def test_a_donor_that_moved_is_refused_and_left_alone(shape: Shape) -> None:
    """Expected four, found five: nothing is written, and the words say both."""
    async with cluster() as c:
        actions = shape.make(c)
        scaled_by_somebody(c, 5)
        before = c.looks()
        done = await c.deliver(act(*actions))

        assert done.result is StepResult.REFUSED
        assert "expected" in done.detail
        assert "4, found 5" in done.detail
        assert (c.looks(), c.events()) == (before, [])


@EACH_SHAPE
async def test_a_refusal_in_the_middle_takes_back_what_had_begun(shape: Shape) -> None:
    """Refused means that nothing was changed, whichever request it is that is refused."""
    async with cluster() as c:
        actions = shape.make(c)
        before = c.looks()
        await c.deliver(act(*actions, purpose=Purpose.DRY_RUN))
        for number in range(len(patches(c))):
            fault = Nth(number, status=403, reason="Forbidden", message='admission webhook "w" denied the request: no')
            c.server.faults.add(fault)
            done = await c.deliver(act(*actions))
            c.server.faults.remove(fault)

            assert done.result is StepResult.REFUSED
            assert "admission refuses" in done.detail
            assert "denied the request: no" in done.detail
            assert without_empty(c.looks()) == without_empty(before), f"patch {number}"


@EACH_SHAPE
async def test_read_back_tells_done_from_not_done(shape: Shape) -> None:
    """Before apply it is surely not done, after it surely is; looking writes nothing."""
    async with cluster() as c:
        actions = shape.make(c)
        look = act(*actions, purpose=Purpose.READ_BACK, number=3)
        assert (await c.deliver(look)).result is StepResult.REFUSED
        await c.deliver(act(*actions))
        revision = c.store.revision
        assert ((await c.deliver(look)).result, c.store.revision) == (StepResult.DONE, revision)
        scaled_by_somebody(c, 9)
        assert (await c.deliver(look)).result is StepResult.UNKNOWN


async def test_read_back_sees_a_mark_without_its_change() -> None:
    """A crash between the mark and the number is neither done nor not done."""
    async with cluster() as c:
        actions = scene.deployment(c)
        executor, _ = c.executor(dies_after=1)
        with pytest.raises(scene.KilledError):
            await executor.deliver(act(*actions), uncertain=False, permit=leave(act(*actions)))
        done = await c.deliver(act(*actions, purpose=Purpose.READ_BACK, number=3))

        assert (done.result, "not changed yet" in done.detail) == (StepResult.UNKNOWN, True)
