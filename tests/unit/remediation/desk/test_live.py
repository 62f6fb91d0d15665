"""Live objects as the steps of a plan name them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sevenhop.core.effects import Borrow
from sevenhop.core.events import Applied, Deleted
from sevenhop.core.inventory.capacity import Waiting
from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.base import Custom
from sevenhop.core.remediation.action import Edit, ObjectRef, Scale
from sevenhop.core.remediation.action import Test as Condition
from sevenhop.core.remediation.borrowed import BORROWED, encode_borrow
from sevenhop.core.remediation.live import UNSEEN, done_of, held, marked_by, value_at
from sevenhop.core.remediation.plan import Plan
from sevenhop.core.remediation.room import room_for
from sevenhop.frameworks import FRAMEWORKS
from tests.builders import Feed, at, deployment, meta, node, pod_of, replicaset

RAY = "RayCluster.ray.io"
POINTER = "/spec/workerGroupSpecs/0/replicas"


def ray(replicas: int, *, group: str = "gpu", delete: tuple[str, ...] = (), mark: str = "") -> Custom:
    worker: dict[str, Any] = {"groupName": group, "replicas": replicas, "scaleStrategy": {"workersToDelete": [*delete]}}
    return Custom(
        kind="RayCluster",
        api_version="ray.io/v1",
        metadata=meta("ray", annotations={BORROWED: mark} if mark else {}),
        spec={"workerGroupSpecs": [worker]},
    )


def plan(**more: Any) -> Plan:
    target = ObjectRef(RAY, "prod", "ray", "uid-prod-ray")
    delete = Edit("/spec/workerGroupSpecs/0/scaleStrategy/workersToDelete/0", None, "ray-w-3")
    scale = Scale(
        target=target,
        marked=target,
        edits=(Edit(POINTER, 4, 3), delete),
        tests=(Condition("/spec/workerGroupSpecs/0/groupName", "gpu"),),
        workload=("prod", "ray"),
        component="gpu",
        before=4,
        after=3,
        **more,
    )
    return Plan(
        cluster="test", playbook="p", incident="i", actions=(scale,), title="t", proposed_at=at(0), expires_at=at(60)
    )


def seen(*objects: Custom) -> Inventory:
    feed = Feed()
    made = Inventory("test", FRAMEWORKS, Policy())
    for event in [*feed.synced(), *feed.applied(*objects)]:
        made.apply(event)
    made.settle(at(0))
    return made


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/spec/replicas", 2),
        ("/metadata/annotations/a~1b", "c"),
        ("/metadata/annotations/absent", None),
        ("/metadata/creationTimestamp", UNSEEN),
        ("/spec/somethingWeDoNotKeep", UNSEEN),
        ("/spec/template/spec/containers/0/name", "main"),
        ("/spec/template/spec/containers/9/name", None),
    ],
)
def test_values_at_pointers_of_typed_objects(pointer: str, value: object) -> None:
    """What is held is read, what is absent is None, and what our structs do not hold is not guessed."""
    assert value_at(deployment("d", replicas=2, annotations={"a/b": "c"}), pointer) == value


@pytest.mark.parametrize(
    ("obj", "numbers"),
    [
        pytest.param(ray(3, delete=("ray-w-3",)), (1, 0, 0, 0), id="ours"),
        pytest.param(ray(3), (1, 0, 0, 0), id="ours-and-the-list-cleared-by-the-operator"),
        pytest.param(ray(4, delete=("ray-w-3",)), (0, 1, 0, 0), id="before"),
        pytest.param(ray(7), (0, 0, 1, 0), id="others"),
        pytest.param(ray(3, group="other"), (0, 0, 0, 1), id="the-list-was-reordered"),
    ],
)
def test_how_the_edited_places_stand(obj: Custom, numbers: tuple[int, int, int, int]) -> None:
    """The number decides; what only goes with it may be cleared, and a moved list is not read by its old index."""
    found = held(seen(obj).state, plan())
    assert (found.ours, found.before, len(found.others), found.unseen) == numbers


def test_gone_is_the_incarnation() -> None:
    """A target of the same name with another uid is not the one that gave."""
    made = seen(ray(3))
    key = ("prod", "ray")
    made.apply(Deleted(at=at(1), epoch=1, seq=900, kind=RAY, namespace=key[0], name=key[1]))
    assert held(made.state, plan()).gone
    again = ray(4)
    again.metadata = meta("ray", uid="another")
    made.apply(Applied(at=at(2), epoch=1, seq=901, kind=RAY, obj=again))
    assert held(made.state, plan()).gone


@pytest.mark.parametrize(("replicas", "is_over"), [(3, False), (4, True), (9, True)])
def test_what_is_made_anew_is_made_from_what_we_set(replicas: int, is_over: bool) -> None:
    """An upgrade replaced the RayCluster that gave: the RayService above it still holds our number."""
    worker = {"groupName": "gpu", "replicas": replicas}
    service = Custom(
        kind="RayService",
        api_version="ray.io/v1",
        metadata=meta("chat"),
        spec={"rayClusterConfig": {"workerGroupSpecs": [worker]}},
    )
    where = "/spec/rayClusterConfig/workerGroupSpecs/0"
    ref = ObjectRef("RayService.ray.io", "prod", "chat", "uid-prod-chat")
    also = ((ref, (Edit(f"{where}/replicas", 4, 3),), (Condition(f"{where}/groupName", "gpu"),)),)
    found = held(seen(service).state, plan(also=also))
    assert (found.ours, bool(found.gone)) == ((0, True) if is_over else (1, False))


def test_a_mark_is_of_one_plan() -> None:
    """Only the mark of this very plan counts, and with it the number of steps that hold."""
    ours = plan()
    borrow = Borrow(
        plan=ours.id, hash=ours.hash, incident="i", workload="prod/ray", component="gpu", before=4, after=3,
        until=at(0) + timedelta(hours=1), by="ann",
    )  # fmt: skip
    marked = seen(ray(3, mark=encode_borrow(borrow)))
    assert marked_by(marked.state, ours)
    assert done_of(marked.state, ours) == 1
    begun = seen(ray(4, mark=encode_borrow(borrow)))
    assert done_of(begun.state, ours) == 0
    assert not marked_by(seen(ray(3)).state, ours)
    assert done_of(seen(ray(3)).state, ours) == 0


@pytest.mark.parametrize(
    ("free", "higher", "room"),
    [
        pytest.param(2, False, True, id="fits"),
        pytest.param(1, False, False, id="would-wait"),
        pytest.param(2, True, False, id="somebody-who-is-worth-more-waits"),
        pytest.param(2, None, False, id="promised-to-somebody-by-another-plan"),
    ],
)
def test_room_for_what_was_taken(free: int, higher: bool | None, room: bool) -> None:
    """Whether the donor's pod would run again is simulated on the live cluster, which is left as it was."""
    donor = deployment("donor", replicas=1, gpus=2, annotations={"sevenhop.dev/tier": "batch"})
    critical = deployment("critical", gpus=1, annotations={"sevenhop.dev/tier": "critical"})
    replicas = replicaset(donor)
    feed = Feed()
    made = Inventory("test", FRAMEWORKS, Policy())
    objects = [node("gpu-0", gpus=2 + free), donor, critical, replicas, pod_of(replicas, "0", node="gpu-0")]
    for event in [*feed.synced(), *feed.applied(*objects)]:
        made.apply(event)
    made.settle(at(0))
    target = ObjectRef("Deployment.apps", "prod", "donor", "uid-prod-donor")
    workload = made.state.workloads[("prod", "donor")]
    (part,) = workload.components
    scale = Scale(
        target=target, marked=target, edits=(Edit("/spec/replicas", 2, 1),), workload=workload.key,
        component=part.name, before=2, after=1, unit_gpus=2,
    )  # fmt: skip
    lent = Plan(
        cluster="test", playbook="p", incident="i", actions=(scale,), title="t", proposed_at=at(0), expires_at=at(60)
    )
    if higher is None:
        made.state.reserved = {made.state.pool_of[(workload.key, part.name)]: 2}
    if higher:
        slot = ((critical.metadata.namespace, "critical"), "engine")
        pool = made.state.pool_of[(workload.key, part.name)]
        made.state.waiting_in[pool] = {
            slot: Waiting(workload=slot[0], component=slot[1], tier="critical", pods=1, gpus=1)
        }
    before = (len(made.state.placement.log), made.state.placement.epoch, dict(made.state.placement.pending))
    assert room_for(made.state, lent) is room
    assert (len(made.state.placement.log), made.state.placement.epoch, made.state.placement.pending) == before
