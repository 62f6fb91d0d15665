"""Volume claims that are not bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.failures_quote import clean
from sevenhop.core.hops.finding import Finding, diagnosis_of, evidence_of
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.cluster import Event
from sevenhop.core.objects.storage import PersistentVolumeClaim, StorageClass
from sevenhop.core.placement.events_about import recency

_CLAIMS = "PersistentVolumeClaim"
_CLASSES = "StorageClass.storage.k8s.io"
TROUBLE = frozenset({"ProvisioningFailed", "FailedBinding", "VolumeMismatch", "ClaimLost", "ProvisioningCleanupFailed"})
"""Reasons of Events about a claim that cannot be bound; some are of type Normal."""


def claim_findings(objects: Objects) -> Iterator[Finding]:
    """
    Claims that wait and say why, or that nothing will ever bind.

    A claim whose class waits for its first consumer is well: its pod says what is wrong.
    """
    said = _newest_trouble(objects)
    for key, claim in objects.of(_CLAIMS).items():
        if not isinstance(claim, PersistentVolumeClaim) or claim.metadata.deletion_timestamp:
            continue
        diagnosis = _why_unbound(objects, key, claim, said)
        if diagnosis is not None:
            yield Finding(kind=_CLAIMS, namespace=key[0], name=key[1], diagnosis=diagnosis)


def _why_unbound(
    objects: Objects, key: Key, claim: PersistentVolumeClaim, said: Mapping[Key, Event]
) -> Diagnosis | None:
    name = claim.metadata.name
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name or "unnamed"
        text = f"the volume {volume} that it was bound to is gone"
        return diagnosis_of(
            "pv-unavailable", f"Claim {name}: {text}", (evidence_of("status.phase", "Lost"),), computed=True
        )
    if claim.status.phase != "Pending":
        return None
    event = said.get(key)
    if event is not None:
        source = f"event {event.reason}"
        summary = f"Claim {name} is not bound: {clean(event.text)}"
        return diagnosis_of("pvc-unbound", summary, (evidence_of(source, event.text),))
    class_name = claim.spec.storage_class_name
    found = objects.of(_CLASSES).get(("", class_name)) if class_name else None
    if class_name and found is None and objects.is_known(_CLASSES):
        text = f"storage class {class_name} does not exist"
    elif isinstance(found, StorageClass) and found.volume_binding_mode != "WaitForFirstConsumer":
        text = f"storage class {class_name} has not bound it"
    else:
        return None
    return diagnosis_of(
        "pvc-unbound", f"Claim {name} is not bound: {text}", (evidence_of(f"pvc/{name}", text),), computed=True
    )


def _newest_trouble(objects: Objects) -> dict[Key, Event]:
    found: dict[Key, Event] = {}
    for event in objects.of("Event").values():
        if not isinstance(event, Event) or event.about.kind != _CLAIMS or event.reason not in TROUBLE:
            continue
        key = (event.about.namespace, event.about.name)
        before = found.get(key)
        if before is None or recency(event) > recency(before):
            found[key] = event
    return found
