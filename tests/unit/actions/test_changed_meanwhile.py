"""What others did before, meanwhile and since: it is seen, respected and told."""

from __future__ import annotations

import msgspec
import pytest

from sevenhop.actions._writer import Writer
from sevenhop.actions.errors import PermitError, UncertainActError
from sevenhop.actions.paths import Paths
from sevenhop.core.events import StepResult
from sevenhop.core.remediation.action import Edit, Scale
from sevenhop.core.remediation.permit import Purpose
from sevenhop.simulation.faults import Refuse
from tests.unit.actions import scene
from tests.unit.actions.interference import (
    Interferes,
    annotated,
    scaled_by_somebody,
)
from tests.unit.actions.scene import (
    COST,
    DEPLOYMENT,
    POD,
    RAY_CLUSTER,
    SERVICE,
    SHAPES,
    act,
    cluster,
    leave,
    mark,
)


async def test_a_list_that_was_reordered_is_followed_by_name() -> None:
    """The worker group is agreed on by its name; where it stands in the list may change."""
    async with cluster() as c:
        actions = scene.ray(c)
        c.change(
            RAY_CLUSTER,
            "ray-x",
            lambda d: {**d, "spec": {"workerGroupSpecs": list(reversed(d["spec"]["workerGroupSpecs"]))}},
        )
        done = await c.deliver(act(*actions))

        assert done.result is StepResult.DONE, done.detail
        groups = c.get(RAY_CLUSTER, "ray-x")["spec"]["workerGroupSpecs"]
        assert [(g["groupName"], g["replicas"]) for g in groups] == [("gpu", 3), ("cpu", 1)]


async def test_a_steered_pod_carries_the_cost_and_gets_its_own_back() -> None:
    """A cost that its owner had set is kept beside ours, and set back."""
    async with cluster() as c:
        c.change(POD, "donor-b", lambda d: annotated(d, {COST: "5"}))
        actions = scene.deployment(c)
        await c.deliver(act(*actions))
        assert c.annotations(POD, "donor-b")[COST] == "-2147483647"
        await c.deliver(act(*actions, purpose=Purpose.UNDO, number=2))
        assert c.annotations(POD, "donor-b") == {COST: "5"}


async def test_a_cost_that_somebody_set_since_is_kept() -> None:
    """Only our own goes, and our note beside it."""
    async with cluster() as c:
        actions = scene.deployment(c)
        await c.deliver(act(*actions))
        c.change(POD, "donor-b", lambda d: annotated(d, {**d["metadata"]["annotations"], COST: "7"}))
        await c.deliver(act(*actions, purpose=Purpose.UNDO, number=2))
        assert c.annotations(POD, "donor-b") == {COST: "7"}


async def test_a_pod_that_another_plan_steers_is_refused() -> None:
    """Two plans would take each other's victims."""
    async with cluster() as c:
        theirs = {"sevenhop.dev/steered": "other 5", COST: "-2147483647"}
        c.change(POD, "donor-b", lambda d: annotated(d, theirs))
        done = await c.deliver(act(*scene.deployment(c)))

        assert (done.result, "another plan" in done.detail) == (StepResult.REFUSED, True)
        assert (c.annotations(POD, "donor-b"), c.annotations(DEPLOYMENT, "donor")) == (theirs, {})


@pytest.mark.parametrize("status", [403, 422])
async def test_a_way_back_that_is_refused_says_so(status: int) -> None:
    """Admission may forbid to give back too: that is told with its words, and not tried for ever."""
    async with cluster() as c:
        actions = scene.deployment(c, steered=False)
        await c.deliver(act(*actions))
        words = 'admission webhook "w" denied the request: frozen'
        c.server.faults.add(Refuse(status=status, reason="Invalid", message=words, verbs=("patch",), times=None))
        done = await c.deliver(act(*actions, purpose=Purpose.RESTORE, number=2))

        assert (done.result, "frozen" in done.detail) == (StepResult.REFUSED, True)
        assert c.annotations(DEPLOYMENT, "donor") != {}


@pytest.mark.parametrize(("status", "is_over"), [(403, True), (503, False)])
async def test_one_donor_that_is_refused_does_not_keep_the_others(status: int, is_over: bool) -> None:
    """Two gave, and one cannot be written to: the other has its replicas back at the first attempt."""
    async with cluster() as c:
        both = (*scene.deployment(c, steered=False), *scene.kserve(c))
        await c.deliver(act(*both))
        c.server.faults.add(
            Refuse(
                status=status,
                message='admission webhook "w" denied',
                retry_after="1",
                verbs=("patch",),
                plural="inferenceservices",
                times=None,
            )
        )
        back = act(*both, purpose=Purpose.RESTORE, number=2)
        if is_over:
            done = await c.deliver(back)
            assert (done.result, "only in part" in done.detail) == (StepResult.UNKNOWN, True)
        else:
            with pytest.raises(UncertainActError):
                await c.deliver(back)

        assert c.get(DEPLOYMENT, "donor")["spec"]["replicas"] == 4
        assert c.get(SERVICE, "summarizer")["spec"]["predictor"]["minReplicas"] == 3


async def test_a_victim_that_is_gone_stops_the_plan() -> None:
    """Another pod would go in its place, so nothing goes."""
    async with cluster() as c:
        actions = scene.deployment(c)
        c.store.delete(POD, "chat", "donor-b", grace_s=0)
        done = await c.deliver(act(*actions))

        assert (done.result, c.get(DEPLOYMENT, "donor")["spec"]["replicas"]) == (StepResult.REFUSED, 4)
        assert "gone" in done.detail
        assert c.annotations(DEPLOYMENT, "donor") == {}


async def test_a_donor_of_another_plan_is_refused() -> None:
    """Who has given already gives no more, and the words name the plan."""
    async with cluster() as c:
        first = act(*scene.deployment(c))
        await c.deliver(first)
        c.change(DEPLOYMENT, "donor", lambda d: {**d, "spec": {"replicas": 4}})
        other = act(*scene.deployment(c, steered=False))
        assert other.plan.id != first.plan.id
        done = await c.deliver(other)

        assert done.result is StepResult.REFUSED
        assert first.plan.id in done.detail


async def test_an_object_made_anew_is_another_one() -> None:
    """The same name with another uid is not what was approved."""
    async with cluster() as c:
        actions = scene.deployment(c, steered=False)
        c.store.delete(DEPLOYMENT, "chat", "donor")
        c.store.create(DEPLOYMENT, {"metadata": {"name": "donor", "namespace": "chat"}, "spec": {"replicas": 4}})
        assert (await c.deliver(act(*actions))).result is StepResult.REFUSED
        back = await c.deliver(act(*actions, purpose=Purpose.RESTORE, number=2))

        assert (back.result, c.get(DEPLOYMENT, "donor")["spec"]["replicas"]) == (StepResult.DONE, 4)
        assert "nothing to give back" in back.detail


async def test_a_cluster_that_was_replaced_leaves_its_service_to_give_back_to() -> None:
    """The next cluster is made from the RayService: its number is set back, and the mark goes."""
    async with cluster() as c:
        actions = scene.ray(c)
        await c.deliver(act(*actions))
        c.store.delete(RAY_CLUSTER, "chat", "ray-x")
        done = await c.deliver(act(*actions, purpose=Purpose.RESTORE, number=2))

        config = c.get(scene.RAY_SERVICE, "ray")["spec"]["rayClusterConfig"]
        assert (done.result, config["workerGroupSpecs"][0]["replicas"]) == (StepResult.DONE, 4)
        assert scene.BORROWED not in c.annotations(scene.RAY_SERVICE, "ray")


async def test_without_other_knowledge_the_mark_has_to_stand() -> None:
    """A lease that is known by its mark alone ends with the mark: who took it off keeps the number."""
    async with cluster() as c:
        actions = scene.deployment(c, steered=False)
        await c.deliver(act(*actions))
        c.change(DEPLOYMENT, "donor", lambda d: annotated(d, None))
        back = act(*actions, purpose=Purpose.RESTORE, number=2)
        done = await c.deliver(msgspec.structs.replace(back, needs_mark=True))

        assert (done.result, c.get(DEPLOYMENT, "donor")["spec"]["replicas"]) == (StepResult.DONE, 3)


@pytest.mark.parametrize(
    ("purpose", "was_applied", "replicas"),
    [
        pytest.param(Purpose.RESTORE, False, 4, id="the store knows that it was lent"),
        pytest.param(Purpose.UNDO, False, 3, id="it may never have been ours"),
        pytest.param(Purpose.UNDO, True, 4, id="the store knows that it was done"),
    ],
)
async def test_an_annotation_that_somebody_took_away(purpose: Purpose, was_applied: bool, replicas: int) -> None:
    """What is known to be ours is given back without its annotation; an undo of who knows what needs it as proof."""
    async with cluster() as c:
        actions = scene.deployment(c, steered=False)
        await c.deliver(act(*actions))
        c.change(DEPLOYMENT, "donor", lambda d: annotated(d, None))
        back = act(*actions, purpose=purpose, number=2)
        await c.deliver(msgspec.structs.replace(back, was_applied=was_applied))

        assert c.get(DEPLOYMENT, "donor")["spec"]["replicas"] == replicas


async def test_pods_are_not_steered_for_ever_when_an_owner_is_gone() -> None:
    """All pods of a plan are steered before the first number: those of a donor that stays must not keep our cost."""
    async with cluster() as c:
        step = act(*scene.deployment(c))
        executor, _ = c.executor(dies_after=2)
        with pytest.raises(scene.KilledError):
            await executor.deliver(step, uncertain=False, permit=leave(step))
        assert COST in c.annotations(POD, "donor-b")
        back = act(*step.plan.actions, purpose=Purpose.UNDO, number=2)
        c.store.delete(DEPLOYMENT, "chat", "donor")
        done = await c.deliver(back)

        assert (done.result, "nothing to give back" in done.detail) == (StepResult.DONE, True)
        assert COST not in c.annotations(POD, "donor-b")


async def test_what_somebody_else_did_already_is_not_ours() -> None:
    """The number is there and the mark is not: it is no loan, and nothing would ever give it back."""
    async with cluster() as c:
        actions = scene.deployment(c)
        scaled_by_somebody(c, 3)
        done = await c.deliver(act(*actions))

        assert (done.result, "4, found 3" in done.detail) == (StepResult.REFUSED, True)


async def test_the_mark_of_another_plan_is_left_to_it() -> None:
    """An undo that comes late does not take back what a newer plan has borrowed since."""
    async with cluster() as c:
        late = act(*scene.deployment(c), purpose=Purpose.UNDO, number=2)
        newer = act(*scene.deployment(c, steered=False))
        await c.deliver(newer)
        before = c.looks()
        done = await c.deliver(late)

        assert (c.looks(), "another plan" in done.detail) == (before, True)


@pytest.mark.parametrize("skip", range(3))
async def test_somebody_writes_between_our_look_and_our_patch(skip: int) -> None:
    """The server's own tests hold: nothing of ours is left beside the number that moved, or that is set anew."""
    async with cluster() as c:
        actions = scene.deployment(c)
        before = c.looks()
        c.server.faults.add(Interferes(skip, lambda: scaled_by_somebody(c, 5)))
        done = await c.deliver(act(*actions))
        marked = [
            change
            for change in c.store.changes_since(DEPLOYMENT, 0)
            if scene.BORROWED in (change.data["metadata"].get("annotations") or {})
        ]

        assert (done.result, "4, found 5" in done.detail) == (StepResult.REFUSED, True)
        assert bool(marked) is (skip > 0)
        assert c.get(DEPLOYMENT, "donor")["spec"]["replicas"] == 5
        assert c.annotations(DEPLOYMENT, "donor") == {}
        assert c.looks()["Pod donor-b"] == before["Pod donor-b"]


async def test_who_may_only_look_cannot_write() -> None:
    """Not even by a mistake of ours: the writing client itself refuses."""
    async with cluster() as c:
        look = act(*scene.deployment(c), purpose=Purpose.READ_BACK)
        writer = Writer(c.transport, Paths(), look, leave(look), c.now)
        patch = [{"op": "replace", "path": "/spec/replicas", "value": 0}]
        with pytest.raises(PermitError, match="only look"):
            await writer.patch(c.ref(DEPLOYMENT, "donor"), patch)
        assert c.get(DEPLOYMENT, "donor")["spec"]["replicas"] == 4


async def test_what_was_set_back_meanwhile_is_not_done_again() -> None:
    """Done in one request, set back by somebody, and the answer was lost: doing it again would be a fight."""
    async with cluster() as c:
        step = act(*scene.kserve(c))
        executor, _ = c.executor(dies_after=1)
        with pytest.raises(scene.KilledError):
            await executor.deliver(step, uncertain=False, permit=leave(step))
        predictor = {"minReplicas": 4, "maxReplicas": 6}
        c.change(SERVICE, "summarizer", lambda d: {**d, "spec": {"predictor": predictor}})
        done = await c.deliver(step, uncertain=True)

        assert (done.result, "set back" in done.detail) == (StepResult.REFUSED, True)
        assert (c.get(SERVICE, "summarizer")["spec"]["predictor"], mark(c, SHAPES["KServe, steered"])) == (
            predictor,
            None,
        )


async def test_two_components_of_one_object_do_not_share_a_mark() -> None:
    """The second is refused, and the first is taken back: a plan is done as a whole or not at all."""
    async with cluster() as c:
        first = scene.kserve(c)[0]
        assert isinstance(first, Scale)
        second = msgspec.structs.replace(
            first, component="transformer", edits=(Edit("/spec/transformer/minReplicas", None, 1),)
        )
        before = c.looks()
        done = await c.deliver(act(first, second))

        assert (done.result, "one at a time" in done.detail) == (StepResult.REFUSED, True)
        assert c.looks() == before


async def test_a_copy_of_the_mark_goes_with_it() -> None:
    """The ReplicaSet keeps what the Deployment's controller copied to it, unless we take it away."""
    async with cluster() as c:
        actions = scene.deployment(c, steered=False)
        owner = c.ref(DEPLOYMENT, "donor")
        await c.deliver(act(*actions))
        copied = c.annotations(DEPLOYMENT, "donor")
        for name, uid in (("donor-1", owner.uid), ("stranger", "another")):
            reference = {"kind": "Deployment", "name": "donor", "uid": uid, "controller": True}
            meta = {"name": name, "namespace": "chat", "annotations": copied, "ownerReferences": [reference]}
            c.store.create("ReplicaSet.apps", {"metadata": meta})
        await c.deliver(act(*actions, purpose=Purpose.RESTORE, number=2))

        assert c.annotations("ReplicaSet.apps", "donor-1") == {}
        assert c.annotations("ReplicaSet.apps", "stranger") == copied


async def test_a_change_after_the_way_back_is_not_taken_back_again() -> None:
    """Given back, the answer lost, and its owner makes it three: a second delivery leaves that alone."""
    async with cluster() as c:
        actions = scene.deployment(c, steered=False)
        await c.deliver(act(*actions))
        back = act(*actions, purpose=Purpose.RESTORE, number=2)
        await c.deliver(back)
        scaled_by_somebody(c, 3)
        done = await c.deliver(back, uncertain=True)

        assert (done.result, c.get(DEPLOYMENT, "donor")["spec"]["replicas"]) == (StepResult.DONE, 3)
