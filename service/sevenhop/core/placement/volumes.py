"""Where a pod's volumes let it run: bound volumes, volumes still to be bound, zones, and claims that exclude others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import cast

import msgspec

from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.pod import Pod
from sevenhop.core.objects.quantity import parse as parse_quantity
from sevenhop.core.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from sevenhop.core.placement.selectors import NodeTerms, compile_node_selector, compile_selector, node_matches

VOLUMES = "PersistentVolume"
VOLUME_CLAIMS = "PersistentVolumeClaim"
STORAGE_CLASSES = "StorageClass.storage.k8s.io"

_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"

_ZONE_LABELS = {
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}


class VolumeTrouble(StrEnum):
    """Why volumes keep a pod from every node."""

    MISSING = "pvc-missing"
    UNBOUND = "pvc-unbound"
    UNAVAILABLE = "pv-unavailable"


class Unbound(msgspec.Struct, frozen=True, gc=False):
    """A claim that is bound when its first consumer is placed."""

    claim: Key
    size: Decimal
    modes: tuple[str, ...]
    class_name: str
    block: str
    selected_node: str
    provisions: bool
    allowed: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...]


class VolumeDemand(msgspec.Struct, frozen=True, gc=False):
    """
    What volumes ask of a node.

    Attributes:
        affinity: Node terms of the bound volumes, each of which must match.
        zones: (label, accepted values) of the bound volumes.
        unbound: Claims to be bound on the way, the smallest first.
        exclusive: ReadWriteOncePod claims, which no other pod may use.
        trouble: Set if no node will do; `trouble_text` says which claim.
        unseen: Claims that are not here though their kind is not fully known.
    """

    affinity: tuple[NodeTerms, ...] = ()
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unbound: tuple[Unbound, ...] = ()
    exclusive: tuple[Key, ...] = ()
    trouble: VolumeTrouble | None = None
    trouble_text: str = ""
    unseen: tuple[str, ...] = ()


NO_VOLUMES = VolumeDemand()


def claims_of(pod: Pod) -> list[Key]:
    """Keys of the claims that the pod mounts, those of its ephemeral volumes too."""
    out: list[Key] = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            out.append((pod.metadata.namespace, volume.persistent_volume_claim.claim_name))
        elif volume.ephemeral is not None:
            out.append((pod.metadata.namespace, f"{pod.metadata.name}-{volume.name}"))
    return out


def volume_demand(objects: Objects, pod: Pod, *, absence_counts: bool, classes_count: bool) -> VolumeDemand:
    """
    Args:
        absence_counts: A claim that is not in `objects` does not exist, rather than was not seen.
        classes_count: The same of storage classes.
    """
    keys = claims_of(pod)
    if not keys:
        return NO_VOLUMES
    claims = cast("Mapping[Key, PersistentVolumeClaim]", objects.of(VOLUME_CLAIMS))
    volumes = cast("Mapping[Key, PersistentVolume]", objects.of(VOLUMES))
    affinity: list[NodeTerms] = []
    zones: list[tuple[str, tuple[str, ...]]] = []
    unbound: list[Unbound] = []
    exclusive: list[Key] = []
    unseen: list[str] = []
    for key in keys:
        claim = claims.get(key)
        if claim is None:
            if absence_counts:
                text = f"claim {key[1]} does not exist in namespace {key[0]}"
                return VolumeDemand(trouble=VolumeTrouble.MISSING, trouble_text=text)
            unseen.append(f"PersistentVolumeClaim {key[0]}/{key[1]} was not seen")
            continue
        if claim.metadata.deletion_timestamp is not None:
            text = f"claim {key[1]} is being deleted"
            return VolumeDemand(trouble=VolumeTrouble.MISSING, trouble_text=text)
        if "ReadWriteOncePod" in claim.spec.access_modes:
            exclusive.append(key)
        if not _is_bound(claim):
            name = claim.spec.storage_class_name
            if name and not classes_count and _storage_class(objects, claim) is None:
                unseen.append(f"StorageClass {name} was not seen")
                continue
            waiting = _unbound(objects, key, claim)
            if waiting is None:
                return VolumeDemand(trouble=VolumeTrouble.UNBOUND, trouble_text=_why_unbound(objects, key, claim))
            unbound.append(waiting)
            continue
        volume = volumes.get(("", claim.spec.volume_name))
        if volume is None:
            if claim.status.phase == "Lost" or (volumes and absence_counts):
                text = f"claim {key[1]} is bound to volume {claim.spec.volume_name}, which does not exist"
                return VolumeDemand(trouble=VolumeTrouble.UNAVAILABLE, trouble_text=text)
            unseen.append(f"PersistentVolume {claim.spec.volume_name} was not seen")
            continue
        if volume.spec.node_affinity is not None and volume.spec.node_affinity.required is not None:
            affinity.append(compile_node_selector(volume.spec.node_affinity.required))
        labels = volume.metadata.labels
        zones.extend((label, tuple(labels[label].split("__"))) for label in _ZONE_LABELS if label in labels)
    unbound.sort(key=lambda u: (u.size, u.claim))
    return VolumeDemand(tuple(affinity), tuple(zones), tuple(unbound), tuple(exclusive), unseen=tuple(unseen))


def zone_allows(zones: Iterable[tuple[str, tuple[str, ...]]], labels: Mapping[str, str]) -> bool:
    """VolumeZone: a node without any zone or region label is not asked."""
    if not any(label in labels for label in _ZONE_LABELS):
        return True
    for label, accepted in zones:
        value = labels.get(label, labels.get(_ZONE_LABELS[label]))
        if value not in accepted:
            return False
    return True


def can_bind(objects: Objects, unbound: Sequence[Unbound], node: str, labels: Mapping[str, str]) -> bool:
    """
    VolumeBinding: every claim finds a volume of its own for this node, or can have one provisioned here.

    As the scheduler does it: the smallest claim first, the smallest volume that is large enough.
    """
    volumes = cast("Mapping[Key, PersistentVolume]", objects.of(VOLUMES))
    taken: set[str] = set()
    for each in unbound:
        if each.selected_node and each.selected_node != node:
            return False
        best: tuple[Decimal, str] | None = None
        claim = cast("PersistentVolumeClaim", objects.of(VOLUME_CLAIMS)[each.claim])
        for volume in volumes.values():
            if volume.metadata.name not in taken and _volume_suits(volume, claim, each, node, labels):
                size = _size(volume)
                if best is None or (size, volume.metadata.name) < best:
                    best = (size, volume.metadata.name)
        if best is not None:
            taken.add(best[1])
        elif not (each.provisions and _topology_allows(each, labels)):
            return False
    return True


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    if not claim.spec.volume_name:
        return False
    return claim.status.phase in ("Bound", "Lost") or _BIND_COMPLETED in claim.metadata.annotations


def _storage_class(objects: Objects, claim: PersistentVolumeClaim) -> StorageClass | None:
    found = objects.of(STORAGE_CLASSES).get(("", claim.spec.storage_class_name or ""))
    return found if isinstance(found, StorageClass) else None


def _unbound(objects: Objects, key: Key, claim: PersistentVolumeClaim) -> Unbound | None:
    """None for a claim that should have been bound at once: then the pod waits wherever it could run."""
    storage_class = _storage_class(objects, claim)
    if storage_class is None or storage_class.volume_binding_mode != "WaitForFirstConsumer" or claim.spec.volume_name:
        return None
    return Unbound(
        key,
        parse_quantity(claim.spec.resources.requests.get("storage", 0)),
        tuple(claim.spec.access_modes),
        claim.spec.storage_class_name or "",
        claim.spec.volume_mode,
        claim.metadata.annotations.get(_SELECTED_NODE, ""),
        storage_class.provisioner not in ("", _NO_PROVISIONER),
        tuple(
            tuple((e.key, tuple(e.values)) for e in term.match_label_expressions)
            for term in storage_class.allowed_topologies
        ),
    )


def _why_unbound(objects: Objects, key: Key, claim: PersistentVolumeClaim) -> str:
    name = claim.spec.storage_class_name
    if not name:
        return f"claim {key[1]} is not bound and names no storage class"
    if _storage_class(objects, claim) is None:
        return f"claim {key[1]} is not bound: its storage class {name} does not exist"
    return f"claim {key[1]} (storage class {name}) is not bound to a volume yet"


def _volume_suits(
    volume: PersistentVolume, claim: PersistentVolumeClaim, each: Unbound, node: str, labels: Mapping[str, str]
) -> bool:
    spec = volume.spec
    reference = spec.claim_ref
    if reference is not None and (reference.namespace, reference.name) != each.claim:
        return False
    if reference is not None and reference.uid and reference.uid != claim.metadata.uid:
        return False
    if volume.metadata.deletion_timestamp is not None:
        return False
    if reference is None and volume.status.phase not in ("Available", ""):
        return False
    if spec.storage_class_name != each.class_name or spec.volume_mode != each.block:
        return False
    if not set(each.modes) <= set(spec.access_modes) or _size(volume) < each.size:
        return False
    if claim.spec.selector is not None and not compile_selector(claim.spec.selector).matches(volume.metadata.labels):
        return False
    if spec.node_affinity is None or spec.node_affinity.required is None:
        return True
    return node_matches(compile_node_selector(spec.node_affinity.required), node, labels)


def _size(volume: PersistentVolume) -> Decimal:
    return parse_quantity(volume.spec.capacity.get("storage", 0))


def _topology_allows(each: Unbound, labels: Mapping[str, str]) -> bool:
    if not each.allowed:
        return True
    return any(all(labels.get(key) in values for key, values in term) for term in each.allowed)
