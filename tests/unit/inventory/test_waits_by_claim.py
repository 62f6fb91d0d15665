"""Who waits for GPUs by ResourceClaims: for which pool, and how many, as the devices themselves answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from sevenhop.core.facts.schema import Unknown
from sevenhop.core.gpu_views import pools
from sevenhop.core.incidents.message_parts import waiting_texts
from sevenhop.core.inventory.capacity import Waiting
from sevenhop.core.inventory.pools import capacity
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.plan import Answer, NoPlanReason
from sevenhop.core.remediation.planning.need import need_of
from tests import builders as b
from tests.builders import H100, NOON, at, meta, node
from tests.unit.engine.machines import Machine
from tests.unit.inventory.scenes import Scene

DRIVER = "gpu.nvidia.com"
DRA = f"{H100}/{DRIVER}"
L4 = f"NVIDIA-L4/{DRIVER}"
ENGINE = b.deployment("engine", replicas=2, annotations={"sevenhop.dev/tier": "critical"})
MADE = b.replicaset(ENGINE)

Request = dict[str, Any]


def device(number: int, product: str = "NVIDIA H100 80GB HBM3", **more: Any) -> dict[str, Any]:
    attributes = {"productName": {"string": product}, "type": {"string": "gpu"}, "uuid": {"string": f"GPU-{number}"}}
    return {"name": f"gpu-{number}", "attributes": attributes, **more}


def publish(on: str, devices: Sequence[dict[str, Any]], *, driver: str = DRIVER) -> ResourceSlice:
    spec = {"driver": driver, "nodeName": on, "pool": {"name": on, "generation": 1}, "devices": list(devices)}
    return ResourceSlice(metadata=meta(f"{on}-{driver}", ""), spec=spec)


def many(on: str, count: int, product: str = "NVIDIA H100 80GB HBM3") -> ResourceSlice:
    return publish(on, [device(number, product) for number in range(count)])


def device_class(name: str = DRIVER, driver: str = DRIVER, **more: Any) -> DeviceClass:
    spec = {"selectors": [{"cel": {"expression": f"device.driver == '{driver}'"}}], **more}
    built = msgspec.convert({"spec": spec}, DeviceClass)
    built.metadata = meta(name, "")
    return built


def exactly(count: int = 1, *, name: str = "gpu", of: str = DRIVER, select: str = "", **more: Any) -> Request:
    chosen = [{"cel": {"expression": select}}] if select else []
    return {"name": name, "exactly": {"deviceClassName": of, "count": count, "selectors": chosen, **more}}


def first_of(*alternatives: Request) -> Request:
    named = [{"name": f"a{number}", **each["exactly"]} for number, each in enumerate(alternatives)]
    return {"name": "gpu", "firstAvailable": named}


def template(*requests: Request) -> ResourceClaimTemplate:
    built = msgspec.convert({"spec": {"spec": {"devices": {"requests": list(requests)}}}}, ResourceClaimTemplate)
    built.metadata = meta("gpus")
    return built


def claim(name: str, *requests: Request, on: str = "", devices: Sequence[str] = (), user: str = "") -> ResourceClaim:
    """Allocated where it names devices."""
    results = [{"driver": DRIVER, "pool": on, "device": each} for each in devices]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [{"resource": "pods", "name": user}]}
    spec = {"devices": {"requests": list(requests)}}
    built = msgspec.convert({"spec": spec, "status": status if devices else {}}, ResourceClaim)
    built.metadata = meta(name)
    return built


def with_claims(built: Pod, *, templates: Sequence[str] = (), claims: Sequence[str] = ()) -> Pod:
    wants = [{"name": each, "resourceClaimTemplateName": each} for each in templates]
    wants += [{"name": each, "resourceClaimName": each} for each in claims]
    spec = msgspec.convert({"resourceClaims": wants}, type(built.spec)).resource_claims
    return msgspec.structs.replace(built, spec=msgspec.structs.replace(built.spec, resource_claims=spec))


def waits(suffix: str = "0", **changes: Any) -> Pod:
    said = "0/2 nodes are available: 2 cannot allocate all claims."
    return with_claims(b.pod_of(MADE, suffix, unschedulable=said, **changes), templates=["gpus"])


def taken(on: str, count: int) -> tuple[Object, ...]:
    """All devices of a node, in the hands of a stranger."""
    devices = [f"gpu-{number}" for number in range(count)]
    busy = with_claims(b.pod(f"busy-{on}", "prod", node=on, image="org/other:1", args=()), claims=[f"held-{on}"])
    return claim(f"held-{on}", on=on, devices=devices, user=f"busy-{on}"), busy


def scene_of(*objects: Object) -> Scene:
    scene = Scene(device_class(), ENGINE, MADE, *objects)
    scene.wait(scene.seconds + 1)
    return scene


def waiting(scene: Scene, pool: str = DRA) -> tuple[int, int]:
    """(GPUs, those of them that wait for repair)"""
    return scene.fact(f"pool:{pool}", "waiting_gpus"), scene.fact(f"pool:{pool}", "waiting_on_repair")  # type: ignore[return-value]


FULL = (node("a"), many("a", 4), *taken("a", 4))


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        pytest.param([exactly(2)], 2, id="a count"),
        pytest.param([exactly(1, name="x"), exactly(2, name="y")], 3, id="two requests"),
        pytest.param([{"name": "gpu", "deviceClassName": DRIVER, "count": 2}], 2, id="as before v1beta2"),
        pytest.param([exactly(allocationMode="All")], 4, id="all of a node, and all nodes have four"),
        pytest.param([first_of(exactly(2), exactly(2, select="true"))], 2, id="alternatives of one size"),
        pytest.param([exactly(1), exactly(1, name="watch", adminAccess=True)], 1, id="what it only watches"),
    ],
)
def test_what_claims_ask_for_is_waited_for(asked: Sequence[Request], gpus: int) -> None:
    """A pod whose claims everybody else's devices would satisfy waits for the pool; facts and listing say the same."""
    scene = scene_of(*FULL, template(*asked), waits())

    assert waiting(scene) == (gpus, 0)
    (queued,) = capacity(scene.inventory.state, DRA).waiting
    assert (queued.workload, queued.component, queued.gpus, queued.pods) == (("prod", "engine"), "engine", gpus, 1)


def test_every_pod_that_waits_is_counted() -> None:
    """Requests by pods: the template makes each of them a claim."""
    assert waiting(scene_of(*FULL, template(exactly(2)), waits("0"), waits("1"))) == (4, 0)


def test_a_claim_that_pods_share_is_asked_once() -> None:
    """Two pods name one claim: its devices are wanted once."""
    said = "0/1 nodes are available: 1 cannot allocate all claims."
    both = [with_claims(b.pod_of(MADE, each, unschedulable=said), claims=["ours"]) for each in "01"]
    scene = scene_of(*FULL, claim("ours", exactly(2)), *both)

    (queued,) = capacity(scene.inventory.state, DRA).waiting
    assert (queued.gpus, queued.pods) == (2, 2)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param([exactly(5)], id="more than any node has"),
        pytest.param([exactly(1, select="device.attributes['gpu.nvidia.com'].productName == 'B200'")], id="none such"),
    ],
)
def test_a_request_that_nobody_could_meet_waits_for_no_pool(asked: Sequence[Request]) -> None:
    """Were all devices free, it would get nothing: nobody's giving up helps."""
    scene = scene_of(*FULL, template(*asked), waits())

    assert scene.fact("component:prod/engine/engine", "waiting.cause") == "dra-unsatisfiable"
    assert waiting(scene) == (0, 0)


def test_what_else_keeps_it_is_no_wait_for_gpus() -> None:
    """Its nodes are barred by its own selector: devices there are none of its business."""
    scene = scene_of(*FULL, template(exactly(1)), waits(selector={"zone": "b"}))

    assert waiting(scene) == (0, 0)


def test_nodes_that_it_may_not_run_on_have_nothing_for_it() -> None:
    """The larger pool is on nodes of another zone: it waits for what it could get where it may run."""
    here = (node("a", labels={"zone": "a"}), many("a", 2, "NVIDIA L4"), *taken("a", 2))
    there = (node("b", labels={"zone": "b"}), many("b", 8), *taken("b", 8))
    scene = scene_of(*here, *there, template(exactly(2)), waits(selector={"zone": "a"}))

    assert (waiting(scene, L4), waiting(scene, DRA)) == ((2, 0), (0, 0))


def test_devices_that_are_broken_are_waited_for_as_repair() -> None:
    """Whoever holds the others, it is the tainted ones that it lacks."""
    bad: dict[str, Any] = {"taints": [{"key": "health", "value": "bad", "effect": "NoSchedule"}]}
    scene = scene_of(node("a"), publish("a", [device(0, **bad), device(1, **bad)]), template(exactly(2)), waits())

    assert waiting(scene) == (2, 2)
    assert not capacity(scene.inventory.state, DRA).waiting[0].helped_by_others


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        pytest.param([exactly(allocationMode="All")], "2 to 4 devices", id="all, and nodes differ"),
        pytest.param([first_of(exactly(2), exactly(1))], "1 to 2 devices", id="alternatives of two sizes"),
    ],
)
def test_a_number_that_nothing_tells_is_unknown(asked: Sequence[Request], words: str) -> None:
    """It waits, and for how many hangs on the node or the alternative: the reason is told instead of a number."""
    scene = scene_of(*FULL, node("b"), many("b", 2), *taken("b", 2), template(*asked), waits())

    gpus, on_repair = waiting(scene)
    assert isinstance(gpus, Unknown)
    assert gpus.detail.startswith(f"prod/engine engine asks for {words}")
    assert on_repair == 0


@pytest.mark.parametrize(
    ("asked", "pool"),
    [
        pytest.param([exactly(2)], DRA, id="any: where there is most"),
        pytest.param([exactly(2, select="device.attributes['gpu.nvidia.com'].productName == 'NVIDIA L4'")], L4,
                     id="the product that its selector names"),
    ],
)  # fmt: skip
def test_of_which_pool_its_devices_would_be(asked: Sequence[Request], pool: str) -> None:
    """Selectors choose devices, and devices are of a pool; who takes any waits for one, and is told once."""
    scene = scene_of(*FULL, node("b"), many("b", 2, "NVIDIA L4"), *taken("b", 2), template(*asked), waits())

    assert {name: waiting(scene, name)[0] for name in (DRA, L4)} == {DRA: 0, L4: 0, pool: 2}


def test_other_devices_of_a_claim_are_no_gpus() -> None:
    """A network card that a claim wants beside its GPU is allocated, and not counted."""
    cards = publish("a", [{"name": "nic-0", "attributes": {}}], driver="dra.net")
    asked = template(exactly(2), exactly(1, name="nic", of="nics"))
    scene = scene_of(*FULL, cards, device_class("nics", "dra.net"), asked, waits())

    assert waiting(scene) == (2, 0)


def test_an_extended_resource_that_a_class_serves() -> None:
    """The pod asks for nvidia.com/gpu, no device plugin offers it, and a device class does: it waits for devices."""
    served = device_class(extendedResourceName="nvidia.com/gpu")
    asking = b.pod_of(MADE, "0", gpus=2, unschedulable="0/1 nodes are available: 1 cannot allocate all claims.")
    scene = scene_of(*FULL, served, asking)

    assert scene.fact("component:prod/engine/engine", "waiting.cause") == "dra-extended-resource"
    assert waiting(scene) == (2, 0)


def test_devices_that_are_published_later() -> None:
    """The verdict stays the same, word for word, and what there is to wait for becomes another thing."""
    ten = [node(f"n-{number}") for number in range(10)]
    scene = scene_of(*ten, *(many(f"n-{n}", 1) for n in range(9)), template(exactly(2)), waits())
    (row,) = scene.inventory.state.rows.values()
    before = row.pending
    assert scene.inventory.state.waiting_in == {}

    scene.put(many("n-9", 2), *taken("n-9", 2))
    scene.wait(scene.seconds + 5)

    rows = scene.inventory.state.rows
    assert rows[row.key].pending == before
    assert waiting(scene) == (2, 0)


def test_it_waits_no_longer_once_it_has_them() -> None:
    """The claim is allocated and the pod bound: it is a holder of the pool now."""
    scene = scene_of(*FULL, template(exactly(2)), waits())
    scene.delete(*taken("a", 4))
    got = with_claims(b.pod_of(MADE, "0", node="a"), claims=["mine"])
    scene.put(claim("mine", on="a", devices=["gpu-0", "gpu-1"], user=got.metadata.name), got)
    scene.wait(scene.seconds + 5)

    assert waiting(scene) == (0, 0)
    assert capacity(scene.inventory.state, DRA).holdings[0].workload == ("prod", "engine")


def test_the_listing_shows_no_number_where_there_is_none() -> None:
    """`get capacity` says why, and does not add up what it does not know."""
    machine = Machine()
    cluster = (*FULL, node("b"), many("b", 2), *taken("b", 2), template(exactly(allocationMode="All")), waits())
    machine.tell(machine.feed.synced())
    machine.put(device_class(), ENGINE, MADE, *cluster, seconds=1)
    machine.until(5)
    (row,) = [each for each in pools(machine.engine, at(5)) if each["product"] == DRA]

    assert row["waiting_gpus"] is None
    assert [each["gpus"] for each in row["waiting"]] == [None]
    assert "asks for 2 to 4 devices" in row["unknown"]
    assert row["free"] == 0


def test_a_plan_does_not_say_that_nobody_waits() -> None:
    """Whom to take devices of claims from is not worked out: that is the answer, and no plan."""
    scene = scene_of(*FULL, template(exactly(2)), waits())

    answer = need_of(scene.inventory.state, DRA, at(5))

    assert isinstance(answer, Answer)
    assert (answer.reason, "by ResourceClaims" in answer.text) == (NoPlanReason.UNKNOWN, True)


def test_the_message_names_who_waits_without_a_number() -> None:
    """Two wait, one for as many as a node has: the list names both, and counts what can be counted."""
    other = Waiting(workload=("prod", "other"), component="engine", tier="batch", pods=1, gpus=2)
    unclear = Waiting(workload=("prod", "engine"), component="engine", tier="batch", pods=1, gpus=0, unclear="2 to 4")

    ((_, text),) = waiting_texts([unclear, other], NOON)

    assert text == "engine/engine GPUs, how many is not known · other/engine 2 GPUs"
