"""What a pod's ResourceClaims ask of a node."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import cast

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.devices import ClaimSpec, ResourceClaim, ResourceClaimTemplate
from sevenhop.core.objects.pod import Pod, PodResourceClaim
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.devices import CLAIMS, CLASSES, TEMPLATES, ClaimNeed, MissingClassError
from sevenhop.core.placement.selectors import NodeTerms, compile_node_selector

UNSEEN_HOLDERS = "ResourceClaims, which tell who has the devices, were not seen"
"""A problem of a pod that would fit; one that does not fit where all devices are free, fits nowhere."""


class ClaimTrouble(StrEnum):
    """Why claims keep a pod from every node."""

    CLAIM_MISSING = "dra-claim-missing"
    CLASS_MISSING = "device-class-missing"


class ClaimsDemand(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        needs: Claims still to be allocated.
        nodes: Node terms of those that are allocated already; each must match.
        unseen: What was referred to and is not here, though its kind is not fully known.
    """

    needs: tuple[ClaimNeed, ...] = ()
    nodes: tuple[NodeTerms, ...] = ()
    trouble: ClaimTrouble | None = None
    trouble_text: str = ""
    unseen: tuple[str, ...] = ()


NO_CLAIMS = ClaimsDemand()


def claims_demand(cluster: Cluster, pod: Pod) -> tuple[ClaimsDemand, tuple[Key, ...]]:
    """The demand, and the keys of the claims in `needs`, in the same order."""
    if not pod.spec.resource_claims:
        return NO_CLAIMS, ()
    needs: list[ClaimNeed] = []
    keys: list[Key] = []
    nodes: list[NodeTerms] = []
    unseen: list[str] = []
    for reference in pod.spec.resource_claims:
        key, claim = _claim(cluster, pod, reference)
        if claim is not None and key in cluster.ledger.by_claim and claim.status.allocation is not None:
            if claim.status.allocation.node_selector is not None:
                nodes.append(compile_node_selector(claim.status.allocation.node_selector))
            continue
        spec = claim.spec if claim is not None else _template(cluster, pod, reference)
        if spec is None:
            kind = CLAIMS if reference.resource_claim_name else TEMPLATES
            name = reference.resource_claim_name or reference.resource_claim_template_name or key[1]
            if cluster.absence.counts(kind):
                text = f"{kind.partition('.')[0]} {name} does not exist in namespace {key[0]}"
                return ClaimsDemand(trouble=ClaimTrouble.CLAIM_MISSING, trouble_text=text), ()
            unseen.append(f"{kind.partition('.')[0]} {key[0]}/{name} was not seen")
            continue
        try:
            needs.append(cluster.ledger.need(spec))
            keys.append(key)
        except MissingClassError as error:
            if cluster.absence.counts(CLASSES):
                text = f"device class {error} does not exist"
                return ClaimsDemand(trouble=ClaimTrouble.CLASS_MISSING, trouble_text=text), ()
            unseen.append(f"DeviceClass {error} was not seen")
    if needs and not cluster.objects.of(CLAIMS) and not cluster.absence.counts(CLAIMS):
        unseen.append(UNSEEN_HOLDERS)
    return ClaimsDemand(tuple(needs), tuple(nodes), unseen=tuple(unseen)), tuple(keys)


def _claim(cluster: Cluster, pod: Pod, reference: PodResourceClaim) -> tuple[Key, ResourceClaim | None]:
    claims = cast("Mapping[Key, ResourceClaim]", cluster.objects.of(CLAIMS))
    namespace = pod.metadata.namespace
    if reference.resource_claim_name:
        key = (namespace, reference.resource_claim_name)
        return key, claims.get(key)
    generated = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
    name = generated.get(reference.name)
    if name:
        return (namespace, name), claims.get((namespace, name))
    return (namespace, f"{pod.metadata.name}-{reference.name}"), None


def _template(cluster: Cluster, pod: Pod, reference: PodResourceClaim) -> ClaimSpec | None:
    """The claim that the controller is about to make."""
    if not reference.resource_claim_template_name:
        return None
    found = cluster.objects.of(TEMPLATES).get((pod.metadata.namespace, reference.resource_claim_template_name))
    return found.spec.spec if isinstance(found, ResourceClaimTemplate) else None
