"""
GPUs that drivers publish for dynamic resource allocation: how many a node has, and which pods hold them.

A device plugin's GPUs are extended resources of a node; those of a DRA driver are devices in ResourceSlices, held by
ResourceClaims.  They are counted apart: in pools of the driver's name, such as
``NVIDIA-H100-80GB-HBM3/gpu.nvidia.com``, because who asks for the one cannot be given the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.inventory.products import normalise
from sevenhop.core.objects.devices import ResourceClaim, ResourceSlice
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.absence import resource_claims
from sevenhop.core.placement.devices import CLAIMS, SLICES, DeviceKey

_GPU_DRIVER = re.compile(r"(^|[.-])(gpus?|gaudi|tpus?|npus?|neuron)[.-]")
_PRODUCT_ATTRIBUTES = ("productName", "model", "product")
_PASSTHROUGH = "vfio"

Pool = tuple[str, str]
"""(driver, pool), as a ResourceSlice names them"""


class NodeDevices(msgspec.Struct, frozen=True, gc=False):
    """
    Devices of one sort on one node.

    Attributes:
        resource: The driver, and for slices of a GPU their profile: ``gpu.nvidia.com``,
            ``gpu.nvidia.com/mig-1g.10gb``.  What pods hold is counted under the same name.
        product: In NVIDIA's label spelling; empty where the driver names none.
        total: Devices that the driver publishes.
        usable: Those without a taint that keeps pods away.
        cut: Usable ones that no pod can have as a whole, because a part of them is allocated.
    """

    resource: str
    product: str
    total: int
    usable: int
    cut: int = 0


class _Device(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        body: Whose counters it draws on: a GPU and the ways to cut it share them; empty without counters.
        is_part: A way to cut a GPU, which exists only once it is allocated.
        is_alias: Another way to pass the same GPU on.
    """

    node: str
    resource: str
    product: str
    body: str
    is_usable: bool
    is_part: bool
    is_alias: bool


class Touched(msgspec.Struct, gc=False):
    """Nodes whose devices have to be counted again, and pods whose holds have to be."""

    nodes: set[str] = set()
    pods: set[Key] = set()


class GpuDevices:
    """Mutable, owned by one inventory: slices and claims go in, what they touch comes out."""

    def __init__(self) -> None:
        self._slices: dict[Pool, dict[Key, ResourceSlice]] = {}
        self._devices: dict[Pool, dict[str, _Device]] = {}
        self._on: dict[str, set[Pool]] = {}
        self._claims: dict[Key, tuple[DeviceKey, ...]] = {}
        self._first: dict[Key, Key | None] = {}
        self._users: dict[Key, tuple[Key, ...]] = {}
        self._taken: dict[Pool, dict[str, set[Key]]] = {}

    # What it answers

    def on(self, node: str) -> tuple[NodeDevices, ...]:
        """Sorted by resource and product."""
        counts: dict[tuple[str, str], list[int]] = {}
        for pool in self._on.get(node, ()):
            cut, taken = self._cut(pool), self._taken.get(pool, {})
            for name, device in self._devices[pool].items():
                if device.node != node or device.is_part or device.is_alias:
                    continue
                row = counts.setdefault((device.resource, device.product), [0, 0, 0])
                row[0] += 1
                row[1] += device.is_usable
                row[2] += device.is_usable and name not in taken and device.body in cut
        return tuple(NodeDevices(*key, *row) for key, row in sorted(counts.items()))

    def held(self, pod: Pod) -> dict[str, int]:
        """
        Devices by `NodeDevices.resource` that a pod holds on its node.

        A claim that several pods share counts for the first that it is reserved for.
        """
        found: dict[str, int] = {}
        if not self._claims:
            return found  # as on most clusters, and this is asked at every change of a pod
        for claim in resource_claims(pod):
            first = self._first.get(claim)
            if first is not None and first != pod.metadata.key:
                continue
            for driver, pool, name in self._claims.get(claim, ()):
                device = self._devices.get((driver, pool), {}).get(name)
                if device is not None and device.node == pod.spec.node_name:
                    found[device.resource] = found.get(device.resource, 0) + 1
        return found

    def resource_of(self, device: DeviceKey) -> str:
        """`NodeDevices.resource` of a device; empty for what is no GPU, or is not published."""
        driver, pool, name = device
        found = self._devices.get((driver, pool), {}).get(name)
        return found.resource if found is not None else ""

    # What changes it

    def put_slice(self, key: Key, before: ResourceSlice | None, after: ResourceSlice | None) -> Touched:
        """A slice came, changed, or went (`after` is None)."""
        touched = Touched()
        if before is not None:
            here = self._slices.get(_pool(before), {})
            here.pop(key, None)
        if after is not None and _GPU_DRIVER.search(_pool(after)[0]):
            self._slices.setdefault(_pool(after), {})[key] = after
        for pool in {_pool(each) for each in (before, after) if each is not None}:
            self._recount(pool, touched)
        return touched

    def put_claim(self, key: Key, after: ResourceClaim | None) -> Touched:
        """A claim came, changed, or went."""
        touched = Touched()
        for driver, pool, name in self._claims.pop(key, ()):
            holders = self._taken[driver, pool]
            holders[name].discard(key)
            if not holders[name]:
                del holders[name]
            self._touch(driver, pool, name, touched)
        touched.pods.update(self._users.pop(key, ()))
        self._first.pop(key, None)
        if after is None or after.status.allocation is None:
            return touched
        devices = tuple(
            (each.driver, each.pool, each.device)
            for each in after.status.allocation.devices.results
            if not each.admin_access and _GPU_DRIVER.search(each.driver)
        )
        if not devices:
            return touched
        users = tuple(_users(key[0], after))
        self._claims[key], self._users[key] = devices, users
        self._first[key] = users[0] if users else None
        for driver, pool, name in devices:
            self._taken.setdefault((driver, pool), {}).setdefault(name, set()).add(key)
            self._touch(driver, pool, name, touched)
        touched.pods.update(users)
        return touched

    def _touch(self, driver: str, pool: str, name: str, touched: Touched) -> None:
        device = self._devices.get((driver, pool), {}).get(name)
        if device is not None and device.body:
            touched.nodes.add(device.node)

    def _recount(self, pool: Pool, touched: Touched) -> None:
        before = self._devices.pop(pool, {})
        slices = self._slices.get(pool, {})
        if not slices:
            self._slices.pop(pool, None)
        newest = max((_generation(each) for each in slices.values()), default=0)
        current = [each for _, each in sorted(slices.items()) if _generation(each) == newest]
        after: dict[str, _Device] = {}
        for each in current:
            for name, device in _devices(each):
                after.setdefault(name, device)
        after = _told_apart(after)
        if after:
            self._devices[pool] = after
        nodes = {device.node for device in (*before.values(), *after.values())}
        for node in nodes:
            here = self._on.setdefault(node, set())
            here.discard(pool)
            if any(device.node == node for device in after.values()):
                here.add(pool)
            if not here:
                del self._on[node]
        if before != after:
            touched.nodes |= nodes
            for holders in self._taken.get(pool, {}).values():
                for claim in holders:
                    touched.pods.update(self._users.get(claim, ()))

    def _cut(self, pool: Pool) -> set[str]:
        """Bodies of which a part is allocated."""
        devices = self._devices.get(pool, {})
        found = (devices.get(name) for name in self._taken.get(pool, ()))
        return {device.body for device in found if device is not None and device.is_part}


def gpu_devices(objects: Objects) -> GpuDevices:
    """Those of a set of objects: for a file of objects."""
    built = GpuDevices()
    for key, each in cast("Mapping[Key, ResourceSlice]", objects.of(SLICES)).items():
        built.put_slice(key, None, each)
    for key, claim in cast("Mapping[Key, ResourceClaim]", objects.of(CLAIMS)).items():
        built.put_claim(key, claim)
    return built


def _pool(slice_: ResourceSlice) -> Pool:
    pool = slice_.spec.get("pool") or {}
    return str(slice_.spec.get("driver", "")), str(pool.get("name", ""))


def _generation(slice_: ResourceSlice) -> int:
    return int((slice_.spec.get("pool") or {}).get("generation", 0))


def _users(namespace: str, claim: ResourceClaim) -> Iterator[Key]:
    for each in claim.status.reserved_for:
        if each.get("resource", "pods") == "pods" and each.get("name"):
            yield namespace, str(each["name"])


def _devices(slice_: ResourceSlice) -> Iterator[tuple[str, _Device]]:
    """
    Those of a slice that are on one node; devices that several nodes reach are nobody's capacity.
    """
    spec = slice_.spec
    read = [(str(raw.get("name", "")), raw.get("basic") or raw) for raw in spec.get("devices") or ()]
    whole = {_text(body, "uuid") for _, body in read if _text(body, "type") not in (_PASSTHROUGH, "mig")}
    for name, body in read:
        node = str(spec.get("nodeName") or body.get("nodeName") or "")
        if node:
            yield name, _device(str(spec.get("driver", "")), node, body, whole)


def _device(driver: str, node: str, body: Mapping[str, Any], whole: Iterable[str]) -> _Device:
    sort, profile, uuid = (_text(body, name) for name in ("type", "profile", "uuid"))
    counters = [str(each.get("counterSet", "")) for each in _dicts(body.get("consumesCounters"))]
    is_mig = sort == "mig" or bool(profile)
    product = next((found for name in _PRODUCT_ATTRIBUTES if (found := normalise(_text(body, name)))), "")
    return _Device(
        node=node,
        resource=f"{driver}/mig-{profile.replace('+', '.')}" if is_mig and profile else driver,
        product=product,
        body=counters[0] if counters else "",
        is_usable=not any(taint.get("effect") in ("NoSchedule", "NoExecute") for taint in _dicts(body.get("taints"))),
        is_part=is_mig and bool(counters),
        is_alias=sort == _PASSTHROUGH and bool(uuid) and uuid in whole,
    )


def _told_apart(devices: dict[str, _Device]) -> dict[str, _Device]:
    """Where a node has several products of one driver, what pods hold must say of which: the resource names it."""
    products: dict[tuple[str, str], set[str]] = {}
    for device in devices.values():
        products.setdefault((device.node, device.resource), set()).add(device.product)
    return {
        name: msgspec.structs.replace(device, resource=f"{device.resource}/{device.product}")
        if len(products[device.node, device.resource]) > 1
        else device
        for name, device in devices.items()
    }


def _text(body: Mapping[str, Any], name: str) -> str:
    """A device's attribute, whether or not it is written with the driver's domain."""
    for key, typed in (body.get("attributes") or {}).items():
        if str(key).rpartition("/")[2] == name and isinstance(typed, dict):
            value = typed.get("string")
            return value if isinstance(value, str) else ""
    return ""


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list | tuple) else []
