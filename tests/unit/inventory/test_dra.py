"""GPUs of dynamic resource allocation: counted by device, held by claim, apart from a device plugin's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.core.bundle import diagnose
from sevenhop.core.events import SyncState
from sevenhop.core.facts.schema import Unknown
from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.inventory.ledger import pools
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.pools import capacity
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.devices import ResourceClaim, ResourceSlice
from sevenhop.core.objects.pod import Pod
from sevenhop.core.subject import Subject, SubjectKind
from tests import builders as b
from tests.builders import H100, NOON, Feed, at, kind_name, meta, node, pod
from tests.scheduler_cases import cases, objects_of
from tests.unit.inventory.scenes import Scene

DRIVER = "gpu.nvidia.com"
DRA = f"{H100}/{DRIVER}"


def device(number: int, *, product: str = "NVIDIA H100 80GB HBM3", **more: Any) -> dict[str, Any]:
    attributes = {"productName": {"string": product}, "type": {"string": "gpu"}, "uuid": {"string": f"GPU-{number}"}}
    return {"name": f"gpu-{number}", "attributes": attributes, **more}


def part(number: int, of: str, profile: str = "1g.10gb") -> dict[str, Any]:
    """A way to cut a GPU that shares its counters."""
    made = device(number)
    made["name"] = f"mig-{number}"
    made["attributes"] |= {"type": {"string": "mig"}, "profile": {"string": profile}}
    return {**made, "consumesCounters": [{"counterSet": of, "counters": {}}]}


def slice_(on: str, devices: Sequence[dict[str, Any]], *, driver: str = DRIVER, generation: int = 1) -> ResourceSlice:
    spec = {"driver": driver, "nodeName": on, "pool": {"name": on, "generation": generation}, "devices": list(devices)}
    return ResourceSlice(metadata=meta(f"{on}-{driver}-{generation}", ""), spec=spec)


def claim(name: str, on: str, devices: Sequence[str], *users: str, admin: bool = False) -> ResourceClaim:
    results = [{"driver": DRIVER, "pool": on, "device": each, "adminAccess": admin} for each in devices]
    status = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": user} for user in users],
    }
    built = msgspec.convert({"status": status}, ResourceClaim)
    built.metadata = meta(name)
    return built


def holder(name: str, on: str, *claims: str, **more: Any) -> Pod:
    built = pod(name, node=on, **more)
    wants = [{"name": each, "resourceClaimName": each} for each in claims]
    spec = msgspec.convert({"resourceClaims": wants}, type(built.spec)).resource_claims
    return msgspec.structs.replace(built, spec=msgspec.structs.replace(built.spec, resource_claims=spec))


def objects(*found: Object) -> Objects:
    built = Objects()
    for each in found:
        built.put(kind_name(each), each)
    return built


def row(*found: Object, pool: str = DRA) -> tuple[int, int, int, int]:
    """(allocatable, bound, free, largest free block) of one pool."""
    (one,) = [each for each in pools(objects(*found)) if each.product == pool]
    return one.allocatable, one.bound, one.free, one.largest_free_block


def eight(on: str = "a") -> ResourceSlice:
    return slice_(on, [device(number) for number in range(8)])


def test_a_device_plugins_gpus_are_another_pool() -> None:
    """One product, offered in both ways on two nodes: who asks for the one cannot be given the other."""
    found = pools(objects(node("a"), eight("a"), node("b", gpus=4)))

    assert [(each.product, each.resource, each.allocatable) for each in found] == [
        (H100, "nvidia.com/gpu", 4),
        (DRA, DRIVER, 8),
    ]


def test_claims_hold_devices() -> None:
    """What is allocated to pods is bound; the largest block is on one node."""
    found = row(
        node("a"), eight("a"), node("b"), eight("b"),
        claim("c", "a", ["gpu-0", "gpu-1"], "p"), holder("p", "a", "c"),
        claim("d", "b", ["gpu-0"], "q"), holder("q", "b", "d"),
    )  # fmt: skip

    assert found == (16, 3, 13, 7)


def test_a_shared_claim_holds_its_devices_once() -> None:
    """Two pods that are reserved one claim have one GPU, not two."""
    shared = claim("c", "a", ["gpu-0"], "p", "q")

    assert row(node("a"), eight(), shared, holder("p", "a", "c"), holder("q", "a", "c")) == (8, 1, 7, 7)


@pytest.mark.parametrize(
    ("more", "bound"),
    [
        pytest.param({}, 1, id="running"),
        pytest.param({"deleted": NOON}, 1, id="terminating"),
        pytest.param({"phase": "Succeeded"}, 0, id="finished"),
    ],
)
def test_whoever_has_not_finished_holds(more: dict[str, Any], bound: int) -> None:
    """As with a device plugin's GPUs."""
    assert row(node("a"), eight(), claim("c", "a", ["gpu-0"], "p"), holder("p", "a", "c", **more))[1] == bound


def test_whoever_only_watches_holds_nothing() -> None:
    """Admin access takes a device from nobody."""
    watching = claim("c", "a", ["gpu-0"], "p", admin=True)

    assert row(node("a"), eight(), watching, holder("p", "a", "c")) == (8, 0, 8, 8)


def test_an_extended_resource_that_a_claim_serves_counts_once() -> None:
    """The pod asks for nvidia.com/gpu; the scheduler made a claim for it, and its devices are what it holds."""
    asking = pod("p", node="a", gpus=2)
    asking.status.extended_resource_claim_status = {
        "resourceClaimName": "c",
        "requestMappings": [{"containerName": "main", "requestName": "r", "resourceName": "nvidia.com/gpu"}],
    }
    inventory = Inventory("test", ())
    feed = Feed()
    for event in feed.synced() + feed.applied(node("a"), eight(), asking, claim("c", "a", ["gpu-0", "gpu-1"], "p")):
        inventory.apply(event)
    facts = inventory.settle(at(1)).changed

    assert facts[Subject(SubjectKind.POOL, "", DRA)]["pool.free"] == 6
    assert facts[Subject(SubjectKind.NODE, "", "a")]["node.gpu.bound"] == 2


def test_tainted_devices_are_there_and_nobody_gets_them() -> None:
    """Capacity, not allocatable: as GPUs that a device plugin calls unhealthy."""
    bad = device(1, taints=[{"key": "health", "value": "bad", "effect": "NoExecute"}])
    (found,) = pools(objects(node("a"), slice_("a", [device(0), bad])))

    assert (found.allocatable, found.unhealthy, found.free) == (1, 1, 1)


def test_what_was_published_anew_replaces_what_was_before() -> None:
    """Slices of an older generation of the pool say nothing any more."""
    assert row(node("a"), eight(), slice_("a", [device(0)], generation=2)) == (1, 0, 1, 1)


def test_two_ways_to_use_a_gpu_are_one_gpu() -> None:
    """A driver publishes the same GPU for passing through: whoever has that has the GPU."""
    through = {**device(0), "name": "gpu-0-vfio"}
    through["attributes"] = {**through["attributes"], "type": {"string": "vfio"}}
    has = (node("a"), slice_("a", [device(0), device(1), through]))

    assert row(*has) == (2, 0, 2, 2)
    assert row(*has, claim("c", "a", ["gpu-0-vfio"], "p"), holder("p", "a", "c"))[2] == 1


def test_a_gpu_that_is_cut_is_not_free() -> None:
    """Possible parts are no capacity of their own; one that is allocated takes its GPU from who wants it whole."""
    whole = [device(n, consumesCounters=[{"counterSet": f"set-{n}", "counters": {}}]) for n in range(2)]
    has = (node("a"), slice_("a", [*whole, part(2, "set-0"), part(3, "set-0"), part(4, "set-1")]))

    assert [each.product for each in pools(objects(*has))] == [DRA]
    assert row(*has) == (2, 0, 2, 2)
    assert row(*has, claim("c", "a", ["mig-2", "mig-3"], "p"), holder("p", "a", "c"))[2] == 1


def test_slices_that_were_cut_beforehand_are_a_pool_of_their_own() -> None:
    """MIG devices that exist are counted by profile."""
    sliced = {**part(0, ""), "consumesCounters": None}
    (found,) = pools(objects(node("a"), slice_("a", [sliced])))

    assert (found.product, found.resource) == (f"{H100}/{DRIVER}/mig-1g.10gb", f"{DRIVER}/mig-1g.10gb")


def test_two_products_on_one_node() -> None:
    """Each is a pool, and who holds one of the one holds none of the other."""
    both = slice_("a", [device(0), device(1, product="NVIDIA L4"), device(2, product="NVIDIA L4")])
    found = pools(objects(node("a"), both, claim("c", "a", ["gpu-1"], "p"), holder("p", "a", "c")))

    assert [(each.product.partition("/")[0], each.allocatable, each.bound, each.free) for each in found] == [
        (H100, 1, 0, 1),
        ("NVIDIA-L4", 2, 1, 1),
    ]


def test_other_devices_are_no_gpus() -> None:
    """Network interfaces and channels between nodes are devices too."""
    others = [slice_("a", [device(0)], driver=driver) for driver in ("dra.net", "compute-domain.nvidia.com")]

    assert pools(objects(node("a"), *others)) == []


def test_a_node_whose_driver_publishes_all_it_has_is_well() -> None:
    """Feature discovery counts 8 GPUs, no device plugin runs, and 8 devices are published: none is missing."""
    labelled = node("a", labels={"nvidia.com/gpu.count": "8"})
    facts = _node_facts(labelled, eight())

    assert (facts["node.gpu.allocatable"], facts["node.gpu.expected"]) == (8, 8)


def test_what_drivers_publish_may_not_be_seen() -> None:
    """Then a node without a device plugin is not called short of GPUs: it is unknown how many it offers."""
    labelled = node("a", labels={"nvidia.com/gpu.count": "8"})
    feed = Feed()
    facts = _node_facts(labelled, more=feed.synced("ResourceSlice.resource.k8s.io", state=SyncState.FORBIDDEN))

    assert isinstance(facts["node.gpu.allocatable"], Unknown)


def _node_facts(*found: Object, more: Sequence[Any] = ()) -> Any:
    inventory, feed = Inventory("test", ()), Feed()
    for event in (*feed.synced(), *feed.applied(*found), *more):
        inventory.apply(msgspec.structs.replace(event, epoch=2) if event in more else event)
    return inventory.settle(at(1)).changed[Subject(SubjectKind.NODE, "", "a")]


def test_the_capacity_of_a_file_names_product_and_driver() -> None:
    """`diagnose` shows them by the product, as the label would spell it, and the driver beside it."""
    found = diagnose(objects(node("a"), eight()), (), Policy(), now=None).capacity

    assert [(each.product, each.resource, each.allocatable) for each in found] == [(H100, DRIVER, 8)]


def test_holders_are_told_by_workload() -> None:
    """A model whose pods have claims is among those that hold the pool, and its component is in the pool."""
    of = b.deployment("chat")
    made = b.replicaset(of)
    one = b.pod_of(made, "p", node="a")
    wants = msgspec.convert({"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]}, type(one.spec))
    one = msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, resource_claims=wants.resource_claims))
    scene = Scene(node("a"), eight(), of, made, one, claim("c", "a", ["gpu-0", "gpu-1"], one.metadata.name))
    (held,) = capacity(scene.inventory.state, DRA).holdings

    assert (held.workload, held.gpus, held.pods) == (("prod", "chat"), 2, 1)


_CHANGES = st.one_of(
    st.builds(lambda on, count, generation: slice_(on, [device(n) for n in range(count)], generation=generation),
              st.sampled_from("ab"), st.integers(0, 3), st.integers(1, 2)),
    st.builds(lambda name, on, number, user: claim(name, on, [f"gpu-{number}"], *user),
              st.sampled_from("cd"), st.sampled_from("ab"), st.integers(0, 3),
              st.lists(st.sampled_from("pq"), unique=True)),
    st.builds(lambda name, on, held: holder(name, on, *held),
              st.sampled_from("pq"), st.sampled_from(["", "a", "b"]), st.lists(st.sampled_from("cd"), unique=True)),
    st.builds(lambda on, ready: node(on, ready=ready), st.sampled_from("ab"), st.booleans()),
)  # fmt: skip


@settings(max_examples=60)
@given(st.lists(st.tuples(_CHANGES, st.booleans()), max_size=14))
def test_kept_current_equals_counted_anew(steps: list[tuple[Object, bool]]) -> None:
    """Whatever comes, changes and goes in whatever order: the live sums are those of a count from nothing."""
    inventory, feed, known = Inventory("test", ()), Feed(), Objects()
    for event in feed.synced():
        inventory.apply(event)
    for each, stays in steps:
        known.put(kind_name(each), each)
        events = feed.applied(each)
        if not stays:
            known.drop(kind_name(each), each.metadata.key)
            events += feed.deleted(each)
        for event in events:
            inventory.apply(event)
        inventory.settle(at(1))

    ledger = inventory.state.ledger
    assert [ledger.capacity(name) for name in sorted(ledger.pools())] == pools(known)


def test_recorded_clusters_add_up() -> None:
    """In every recorded case with devices: what is offered is published, what is bound is allocated."""
    seen = 0
    for name in ("verdicts", "whatif"):
        for case in cases(name):
            if not case["objects"].get("resourceSlices"):
                continue
            seen += 1
            found = objects_of(case)
            published = sum(len(each["spec"]["devices"]) for each in case["objects"]["resourceSlices"])
            allocated = {
                tuple(result[key] for key in ("driver", "pool", "device"))
                for each in case["objects"].get("resourceClaims", [])
                if each.get("status", {}).get("reservedFor")
                for result in each["status"]["allocation"]["devices"]["results"]
            }
            rows = [each for each in pools(found) if each.resource == DRIVER]
            assert sum(each.allocatable + each.unhealthy for each in rows) == published, case["id"]
            assert sum(each.bound for each in rows) == len(allocated), case["id"]
            assert {each.product for each in rows} <= {f"{p}/{DRIVER}" for p in (H100, "NVIDIA-A100-SXM4-80GB")}
    print(f"{seen} recorded clusters with devices")
    assert seen
