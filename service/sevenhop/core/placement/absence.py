"""Does what is not here not exist, or did nobody look?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.devices import ResourceClaim
from sevenhop.core.objects.pod import Pod
from sevenhop.core.objects.storage import PersistentVolumeClaim
from sevenhop.core.placement.devices import CLAIMS, CLASSES, TEMPLATES, device_classes
from sevenhop.core.placement.volumes import STORAGE_CLASSES, VOLUME_CLAIMS, claims_of


class Absence:
    """What was found out of each kind, until an object says otherwise."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._counts: dict[str, bool] = {}

    def counts(self, kind: str) -> bool:
        """
        Whether an object of this kind that is not here does not exist.

        Not so while the kind is not fully known; nor where none of the kind is here and yet a pod *runs* with one: then
        nobody collected them.
        """
        if not self._objects.is_known(kind):
            return False
        if kind not in self._counts:
            self._counts[kind] = not self._is_contradicted(kind)
        return self._counts[kind]

    def forget(self) -> None:
        """Objects of such kinds came or went."""
        self._counts = {}

    def pod_changed(self, pod: Pod | None) -> bool:
        """A pod that runs may prove that what it uses exists; one that ends takes its proof along.  Any of it?"""
        runs = pod is not None and _runs(pod)
        found = False
        for kind, is_absent in list(self._counts.items()):
            named = _REFERENCES.get(kind)
            if named is None or self._objects.of(kind):
                continue
            proves = pod is not None and runs and bool(named(pod))
            if proves if is_absent else not runs:
                del self._counts[kind]
                found = True
        return found

    def _is_contradicted(self, kind: str) -> bool:
        objects = self._objects
        there = objects.of(kind)
        if there:
            return False
        if kind == CLASSES:
            claims = cast("Mapping[Key, ResourceClaim]", objects.of(CLAIMS)).values()
            return any(("", n) not in there for c in claims if c.status.allocation for n in device_classes(c.spec))
        if kind == STORAGE_CLASSES:
            volumes = cast("Mapping[Key, PersistentVolumeClaim]", objects.of(VOLUME_CLAIMS)).values()
            names = {v.spec.storage_class_name for v in volumes if v.status.phase == "Bound"}
            return any(name and ("", name) not in there for name in names)
        named = _REFERENCES.get(kind)
        if named is None:
            return False
        return any(key not in there for pod in objects.pods().values() if _runs(pod) for key in named(pod))


def _runs(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and not pod.is_finished and not pod.is_terminating


def resource_claims(pod: Pod) -> list[Key]:
    """Keys of the ResourceClaims that a pod uses, as far as its status or spec name them."""
    generated = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
    names = [c.resource_claim_name or generated.get(c.name) for c in pod.spec.resource_claims]
    extended = pod.status.extended_resource_claim_status or {}
    names.append(cast("str | None", extended.get("resourceClaimName")))
    return [(pod.metadata.namespace, name) for name in names if name]


def claim_templates(pod: Pod) -> list[Key]:
    """Keys of the ResourceClaimTemplates that a pod names."""
    names = (c.resource_claim_template_name for c in pod.spec.resource_claims)
    return [(pod.metadata.namespace, name) for name in names if name]


_REFERENCES: dict[str, Callable[[Pod], list[Key]]] = {
    VOLUME_CLAIMS: claims_of,
    CLAIMS: resource_claims,
    TEMPLATES: claim_templates,
}
"""Kind to what a running pod proves to exist."""
