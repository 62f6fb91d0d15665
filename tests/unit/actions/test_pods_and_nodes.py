"""Evicting a pod, cordoning a node, and who may not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sevenhop.core.events import StepResult
from sevenhop.core.remediation.action import Action
from sevenhop.core.remediation.permit import Purpose
from tests.unit.actions import scene
from tests.unit.actions.scene import (
    NODE,
    POD,
    act,
    cluster,
    leave,
)


async def test_evict_removes_that_pod_only_once() -> None:
    """The incarnation that was meant goes; one of the same name made meanwhile stays."""
    async with cluster() as c:
        actions = scene.evict(c)
        assert (await c.deliver(act(*actions, lends=False))).result is StepResult.DONE
        assert c.get(POD, "donor-a")["metadata"].get("deletionTimestamp")
        c.store.delete(POD, "chat", "donor-a", grace_s=0)
        c.store.create(POD, {"metadata": {"name": "donor-a", "namespace": "chat"}, "spec": {"nodeName": "gpu-1"}})
        done = await c.deliver(act(*actions, lends=False), uncertain=True)

        assert done.result is StepResult.DONE
        assert not c.get(POD, "donor-a")["metadata"].get("deletionTimestamp")


@pytest.mark.parametrize("make", [scene.evict, scene.cordon])
async def test_trying_out_removes_no_pod_and_cordons_no_node(
    make: Callable[[scene.Cluster], tuple[Action, ...]],
) -> None:
    """A dry run of either leaves no trace, an Event neither."""
    async with cluster() as c:
        actions, revision = make(c), c.store.revision
        done = await c.deliver(act(*actions, purpose=Purpose.DRY_RUN, lends=False))

        assert (done.result, c.store.revision) == (StepResult.DONE, revision)


async def test_a_pod_that_is_going_is_done() -> None:
    """It takes its grace period to end, and is not asked to go again."""
    async with cluster() as c:
        actions = scene.evict(c)
        look = act(*actions, purpose=Purpose.READ_BACK, number=3, lends=False)
        assert (await c.deliver(look)).result is StepResult.REFUSED
        await c.deliver(act(*actions, lends=False))
        assert (await c.deliver(look)).result is StepResult.DONE
        executor, mortal = c.executor()
        step = act(*actions, number=2, lends=False)
        assert (await executor.deliver(step, uncertain=True, permit=leave(step))).result is StepResult.DONE
        assert [path for _, path in mortal.writes if path.endswith("/eviction")] == []


async def test_a_budget_keeps_its_pod() -> None:
    """429 of a PodDisruptionBudget is a refusal that names the budget, not a reason to try again."""
    async with cluster() as c:
        c.change(POD, "donor-a", lambda d: {**d, "metadata": {**d["metadata"], "labels": {"app": "x"}}})
        c.store.create(
            "PodDisruptionBudget.policy",
            {
                "metadata": {"name": "keep-one", "namespace": "chat"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
            },
        )
        for purpose in (Purpose.DRY_RUN, Purpose.APPLY):
            done = await c.deliver(act(*scene.evict(c), purpose=purpose, lends=False))
            assert done.result is StepResult.REFUSED
            assert "keep-one" in done.detail


async def test_cordon_and_back() -> None:
    """Only who cordoned uncordons."""
    async with cluster() as c:
        actions = scene.cordon(c)
        before = c.looks()
        await c.deliver(act(*actions, lends=False))
        assert c.get(NODE, "gpu-1")["spec"]["unschedulable"] is True
        await c.deliver(act(*actions, purpose=Purpose.UNDO, lends=False, number=2))
        assert c.looks() == before


async def test_a_node_that_somebody_else_cordoned_stays_so() -> None:
    """It is refused to begin with, and an undo leaves it alone."""
    async with cluster() as c:
        c.change(NODE, "gpu-1", lambda d: {**d, "spec": {"unschedulable": True}})
        assert (await c.deliver(act(*scene.cordon(c), lends=False))).result is StepResult.REFUSED
        await c.deliver(act(*scene.cordon(c), purpose=Purpose.UNDO, lends=False, number=2))
        assert c.get(NODE, "gpu-1")["spec"]["unschedulable"] is True
