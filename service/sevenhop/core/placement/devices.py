"""Dynamic resource allocation: which devices a node has, which are taken, and whether claims can be allocated there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, cast

import msgspec

from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.devices import ClaimSpec, DeviceClass, DeviceRequest, ResourceClaim, ResourceSlice
from sevenhop.core.objects.pod import NodeSelector
from sevenhop.core.objects.quantity import parse as parse_quantity
from sevenhop.core.placement.device_cel import Device, UnreadableExpressionError, Version, selects
from sevenhop.core.placement.selectors import NodeTerms, compile_node_selector, node_matches
from sevenhop.core.placement.taints import Tolerance, tolerances, tolerates

CLASSES = "DeviceClass.resource.k8s.io"
SLICES = "ResourceSlice.resource.k8s.io"
CLAIMS = "ResourceClaim.resource.k8s.io"
TEMPLATES = "ResourceClaimTemplate.resource.k8s.io"

DeviceKey = tuple[str, str, str]
"""(driver, pool, device)"""

_IMPLICIT = "deviceclass.resource.kubernetes.io/"

_MOST_CHOICES = 64
"""Among alternatives of all requests: more are not looked through, and the first are the preferred ones."""


class Ask(msgspec.Struct, frozen=True, gc=False):
    """
    One request for devices, compiled.

    Attributes:
        name: As constraints refer to it.
        count: Devices wanted; None for all that match.
        expressions: CEL selectors of class and request, all of which must hold.
        admin: Monitors devices that others hold, and takes none.
        problem: Why this cannot be evaluated; empty if it can.
    """

    name: str
    count: int | None
    expressions: tuple[str, ...]
    tolerances: tuple[Tolerance, ...] = ()
    admin: bool = False
    problem: str = ""


class ClaimNeed(msgspec.Struct, frozen=True, gc=False):
    """
    One claim that is still to be allocated.

    Attributes:
        choices: Alternatives of each request, the preferred one first.
        same: (request names or none for all, attribute): devices must agree on it.
        problem: Constraints that are not modelled.
    """

    choices: tuple[tuple[Ask, ...], ...]
    same: tuple[tuple[tuple[str, ...], str], ...] = ()
    problem: str = ""


class MissingClassError(Exception):
    """A device class that does not exist; the argument is its name."""


class DeviceLedger:
    """All devices of a cluster and who holds them; rebuilt when a slice or claim changes."""

    def __init__(self, objects: Objects) -> None:
        self._local: dict[str, list[Device]] = {}
        self._elsewhere: list[tuple[NodeTerms | None, list[Device]]] = []
        self._slices(cast("Mapping[Key, ResourceSlice]", objects.of(SLICES)).values())
        self._classes = cast("Mapping[Key, DeviceClass]", objects.of(CLASSES))
        self.holders: dict[DeviceKey, set[Key]] = {}
        self.by_claim: dict[Key, tuple[DeviceKey, ...]] = {}
        for key, claim in cast("Mapping[Key, ResourceClaim]", objects.of(CLAIMS)).items():
            if claim.status.allocation is not None:
                results = claim.status.allocation.devices.results
                # Whoever monitors a device with admin access takes it from nobody.
                self.take(key, tuple((r.driver, r.pool, r.device) for r in results if not r.admin_access))

    def take(self, claim: Key, devices: tuple[DeviceKey, ...]) -> None:
        """The claim holds these devices from now on."""
        self.by_claim[claim] = devices
        for device in devices:
            self.holders.setdefault(device, set()).add(claim)

    def release(self, claim: Key) -> tuple[DeviceKey, ...]:
        """The claim holds nothing any more; returns what it held."""
        devices = self.by_claim.pop(claim, ())
        for device in devices:
            holding = self.holders.get(device, set())
            holding.discard(claim)
            if not holding:
                self.holders.pop(device, None)
        return devices

    def on(self, node: str, labels: Mapping[str, str]) -> Iterator[Device]:
        """Devices that a pod on this node can reach."""
        yield from self._local.get(node, ())
        for terms, devices in self._elsewhere:
            if terms is None or node_matches(terms, node, labels):
                yield from devices

    def class_for_resource(self, resource: str) -> str | None:
        """
        Name of the device class that serves an extended resource, the newest if several do.

        Explicit by `extendedResourceName`, or implicit as ``deviceclass.resource.kubernetes.io/NAME``.
        """
        if resource.startswith(_IMPLICIT) and ("", resource.removeprefix(_IMPLICIT)) in self._classes:
            return resource.removeprefix(_IMPLICIT)
        named = [c for c in self._classes.values() if c.spec.extended_resource_name == resource]
        newest = max(named, key=lambda c: (str(c.metadata.creation_timestamp or ""), c.metadata.name), default=None)
        return newest.metadata.name if newest else None

    def need(self, spec: ClaimSpec) -> ClaimNeed:
        """
        Compile a claim's spec.

        Raises:
            MissingClassError: A request names a device class that does not exist.
        """
        choices = tuple(tuple(self._asks(request)) for request in spec.devices.requests)
        same: list[tuple[tuple[str, ...], str]] = []
        problem = ""
        for constraint in spec.devices.constraints:
            attribute = constraint.get("matchAttribute")
            if isinstance(attribute, str):
                same.append((tuple(constraint.get("requests", ())), attribute))
            else:
                problem = f"constraint {', '.join(k for k in constraint if k != 'requests') or 'of a claim'}"
        return ClaimNeed(choices, tuple(same), problem)

    def need_of_resource(self, device_class: str, resource: str, count: int) -> ClaimNeed:
        """What the scheduler claims for an extended resource that DRA serves."""
        return ClaimNeed(((self._ask(DeviceRequest(name=resource, device_class_name=device_class, count=count)),),))

    def _asks(self, request: DeviceRequest) -> Iterator[Ask]:
        if request.first_available:
            for alternative in request.first_available:
                yield self._ask(alternative, parent=request.name)
            return
        exact = request.exactly or request
        yield self._ask(exact, name=request.name)

    def _ask(self, request: DeviceRequest, *, name: str = "", parent: str = "") -> Ask:
        device_class = self._classes.get(("", request.device_class_name))
        if device_class is None:
            raise MissingClassError(request.device_class_name)
        expressions = [s.cel.expression for s in (*device_class.spec.selectors, *request.selectors) if s.cel]
        other = any(s.cel is None for s in (*device_class.spec.selectors, *request.selectors))
        own = name or request.name
        return Ask(
            f"{parent}/{own}" if parent else own,
            None if request.allocation_mode == "All" else request.count,
            tuple(expressions),
            tolerances(request.tolerations),
            request.admin_access,
            "a device selector that is not CEL" if other else "",
        )

    def _slices(self, slices: Iterable[ResourceSlice]) -> None:
        newest: dict[tuple[str, str], int] = {}
        read: list[tuple[tuple[str, str], int, dict[str, Any]]] = []
        for each in slices:
            pool = each.spec.get("pool") or {}
            key = (str(each.spec.get("driver", "")), str(pool.get("name", "")))
            generation = int(pool.get("generation", 0))
            newest[key] = max(newest.get(key, generation), generation)
            read.append((key, generation, each.spec))
        for key, generation, spec in read:
            if generation < newest[key]:
                continue  # the driver has published this pool anew
            devices = [_device(key, d) for d in spec.get("devices") or ()]
            if spec.get("nodeName"):
                self._local.setdefault(str(spec["nodeName"]), []).extend(devices)
            elif spec.get("perDeviceNodeSelection"):
                for device, raw in zip(devices, spec.get("devices") or (), strict=True):
                    self._place(device, raw.get("basic") or raw)
            else:
                self._elsewhere.append((_terms(spec), devices))

    def _place(self, device: Device, raw: Mapping[str, Any]) -> None:
        if raw.get("nodeName"):
            self._local.setdefault(str(raw["nodeName"]), []).append(device)
        else:
            self._elsewhere.append((_terms(raw), [device]))


def _terms(spec: Mapping[str, Any]) -> NodeTerms | None:
    if spec.get("allNodes") or not spec.get("nodeSelector"):
        return None if spec.get("allNodes") else ()
    return compile_node_selector(msgspec.convert(spec["nodeSelector"], NodeSelector))


def _device(pool: tuple[str, str], raw: Mapping[str, Any]) -> Device:
    driver, pool_name = pool
    body: Mapping[str, Any] = raw.get("basic") or raw  # flat since v1beta2
    attributes: dict[str, dict[str, Any]] = {}
    for name, typed in (body.get("attributes") or {}).items():
        domain, _, own = name.rpartition("/")
        value = next(iter(typed.values()), None) if isinstance(typed, dict) else typed
        is_version = isinstance(typed, dict) and "version" in typed
        attributes.setdefault(domain or driver, {})[own] = Version(str(value)) if is_version else value
    capacity: dict[str, dict[str, Any]] = {}
    for name, amount in (body.get("capacity") or {}).items():
        domain, _, own = name.rpartition("/")
        text = amount.get("value", 0) if isinstance(amount, dict) else amount
        try:
            capacity.setdefault(domain or driver, {})[own] = parse_quantity(text)
        except ValueError:
            continue
    return Device(
        (driver, pool_name, str(raw.get("name", ""))),
        attributes,
        capacity,
        tuple(
            (str(t.get("key", "")), str(t.get("value", "")), str(t.get("effect", "")))
            for t in body.get("taints") or ()
            if t.get("effect") in ("NoSchedule", "NoExecute")
        ),
        bool(body.get("consumesCounters") or body.get("allowMultipleAllocations")),
    )


def device_classes(spec: ClaimSpec) -> list[str]:
    """Names of the device classes that a claim asks for."""
    out: list[str] = []
    for request in spec.devices.requests:
        choices = request.first_available or (request.exactly or request,)
        out += [choice.device_class_name for choice in choices if choice.device_class_name]
    return out


class Allocation(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        devices: What the claims would get, in the order of the claims; None if they cannot be allocated.
        problems: What was not modelled on the way; the answer then holds only as far as these do not matter.
    """

    devices: tuple[tuple[DeviceKey, ...], ...] | None
    problems: tuple[str, ...] = ()


def allocate(ledger: DeviceLedger, node: str, labels: Mapping[str, str], needs: Sequence[ClaimNeed]) -> Allocation:
    """
    Try to give every claim its devices on one node.

    Exact for counts and for `matchAttribute` (each value is tried); alternatives are tried in their order.
    """
    free = list(ledger.on(node, labels))
    problems: set[str] = set()
    if any(d.shares for d in free):
        problems.add("partitionable or shared devices")
    problems.update(n.problem for n in needs if n.problem)
    for chosen in product(*(product(*need.choices) for need in needs)):
        got = _allocate_choice(free, set(ledger.holders), needs, chosen, problems)
        if got is not None:
            return Allocation(got, tuple(sorted(problems)))
    return Allocation(None, tuple(sorted(problems)))


def could_allocate(
    ledger: DeviceLedger, node: str, labels: Mapping[str, str], needs: Sequence[ClaimNeed], *, healed: bool = False
) -> Iterator[tuple[DeviceKey, ...]]:
    """
    What the claims would take on one node if nobody held a device there: once for each choice among alternatives that
    could be met at all.  Devices that are only watched are not among them.

    Args:
        healed: As if no device had a taint.
    """
    devices = [msgspec.structs.replace(d, taints=()) if healed and d.taints else d for d in ledger.on(node, labels)]
    every = product(*(product(*need.choices) for need in needs))
    for chosen in islice(every, _MOST_CHOICES):
        got = _allocate_choice(devices, set(), needs, chosen, set(), watched=False)
        if got is not None:
            yield tuple(key for keys in got for key in keys)


def _allocate_choice(
    devices: Sequence[Device],
    taken: set[DeviceKey],
    needs: Sequence[ClaimNeed],
    chosen: Sequence[Sequence[Ask]],
    problems: set[str],
    *,
    watched: bool = True,
) -> tuple[tuple[DeviceKey, ...], ...] | None:
    """`taken` is added to; devices of admin access are left out of the answer where it is not `watched`."""
    out: list[tuple[DeviceKey, ...]] = []
    for need, asks in zip(needs, chosen, strict=True):
        matching: list[list[Device]] = []
        for ask in asks:
            if ask.problem:
                problems.add(ask.problem)
            matching.append([d for d in devices if _suits(ask, d, problems)])
        got = _allocate_claim(need, asks, matching, taken)
        if got is None:
            return None
        taken.update(key for ask, keys in zip(asks, got, strict=True) if not ask.admin for key in keys)
        told = got if watched else [keys for ask, keys in zip(asks, got, strict=True) if not ask.admin]
        out.append(tuple(key for keys in told for key in keys))
    return tuple(out)


def _suits(ask: Ask, device: Device, problems: set[str]) -> bool:
    for key, value, effect in device.taints:
        if not tolerates(ask.tolerances, key, value, effect):
            return False
    try:
        return all(selects(expression, device) for expression in ask.expressions)
    except UnreadableExpressionError as error:
        problems.add(f"device selector: {error}")
        return False


def _allocate_claim(
    need: ClaimNeed, asks: Sequence[Ask], matching: Sequence[Sequence[Device]], taken: set[DeviceKey]
) -> list[list[DeviceKey]] | None:
    values = [sorted({repr(_value(d, attribute)) for ds in matching for d in ds}) for _, attribute in need.same]
    for combination in product(*values):
        usable: list[list[Device]] = []
        for ask, devices in zip(asks, matching, strict=True):
            keep = list(devices)
            for (names, attribute), value in zip(need.same, combination, strict=True):
                if not names or ask.name in names or ask.name.partition("/")[0] in names:
                    keep = [d for d in keep if repr(_value(d, attribute)) == value != "None"]
            usable.append(keep)
        got = _match(asks, usable, taken)
        if got is not None:
            return got
    return None


def _value(device: Device, attribute: str) -> Any:
    domain, _, name = attribute.rpartition("/")
    return device.attributes.get(domain or device.key[0], {}).get(name)


def _match(
    asks: Sequence[Ask], usable: Sequence[Sequence[Device]], taken: set[DeviceKey]
) -> list[list[DeviceKey]] | None:
    """Bipartite matching of wanted slots to free devices (augmenting paths), so that no order of requests matters."""
    out: list[list[DeviceKey]] = [[] for _ in asks]
    slots: list[int] = []
    options: list[list[DeviceKey]] = []
    for i, (ask, devices) in enumerate(zip(asks, usable, strict=True)):
        keys = [d.key for d in devices]
        if ask.admin:
            wanted = len(keys) if ask.count is None else ask.count
            if not keys or wanted > len(keys):
                return None
            out[i] = keys[:wanted]
            options.append([])
            continue
        free = [k for k in keys if k not in taken]
        if ask.count is None and not keys:
            return None  # "All" of none is not enough; of those there are, the taken ones count as wanted too
        wanted = len(keys) if ask.count is None else ask.count
        if wanted > len(free):
            return None
        options.append(free)
        slots.extend([i] * wanted)
    owner: dict[DeviceKey, int] = {}
    for slot in range(len(slots)):
        if not _augment(slot, slots, options, owner, set()):
            return None
    for device, slot in owner.items():
        out[slots[slot]].append(device)
    return out


def _augment(
    slot: int,
    slots: Sequence[int],
    options: Sequence[Sequence[DeviceKey]],
    owner: dict[DeviceKey, int],
    seen: set[DeviceKey],
) -> bool:
    for device in options[slots[slot]]:
        if device in seen:
            continue
        seen.add(device)
        if device not in owner or _augment(owner[device], slots, options, owner, seen):
            owner[device] = slot
            return True
    return False
