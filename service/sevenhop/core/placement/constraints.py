"""
The constraints that can keep a pod from a node, as bits of a mask, in the order in which the scheduler asks them.

The order is that of kube-scheduler 1.36's default filter plugins; the texts are theirs.
"""

from __future__ import annotations

CORDONED = 1 << 0
TAINT = 1 << 1
NOT_READY = 1 << 2
SELECTOR = 1 << 3
NODE_AFFINITY = 1 << 4
PORTS = 1 << 5
TOO_MANY_PODS = 1 << 6
# Resources stand here in the scheduler's order; their bits begin at FIRST_RESOURCE.
IN_USE = 1 << 7
VOLUME_AFFINITY = 1 << 8
VOLUME_BINDING = 1 << 9
ZONE = 1 << 10
SPREAD = 1 << 11
SPREAD_LABEL = 1 << 12
AFFINITY = 1 << 13
ANTI_AFFINITY = 1 << 14
REPELLED = 1 << 15
DEVICES = 1 << 16

TAINTED = 1 << 30
"""Helper bit of the static part: some taint is not tolerated, the cordon's own included.  Never in a result."""

RESOURCE_SHIFT = 32
"""The resource with index i of a demand's needs has bit ``1 << (RESOURCE_SHIFT + i)``."""

NAMES: tuple[tuple[int, str, str], ...] = (
    (CORDONED, "cordoned", "node(s) were unschedulable"),
    (TAINT, "untolerated-taint", "node(s) had untolerated taint(s)"),
    (NOT_READY, "node-not-ready", "node(s) had untolerated taint(s)"),
    (SELECTOR, "node-selector", "node(s) didn't match Pod's node affinity/selector"),
    (NODE_AFFINITY, "node-affinity", "node(s) didn't match Pod's node affinity/selector"),
    (PORTS, "host-port", "node(s) didn't have free ports for the requested pod ports"),
    (TOO_MANY_PODS, "too-many-pods", "Too many pods"),
    (
        IN_USE,
        "pvc-in-use",
        (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
            " already in-use by another pod"
        ),
    ),
    (VOLUME_AFFINITY, "volume-zone", "node(s) didn't match PersistentVolume's node affinity"),
    (VOLUME_BINDING, "pv-unavailable", "node(s) didn't find available persistent volumes to bind"),
    (ZONE, "volume-zone", "node(s) had no available volume zone"),
    (SPREAD, "topology-spread", "node(s) didn't match pod topology spread constraints"),
    (
        SPREAD_LABEL,
        "topology-spread",
        "node(s) didn't match pod topology spread constraints (missing required label)",
    ),
    (AFFINITY, "pod-affinity", "node(s) didn't match pod affinity rules"),
    (ANTI_AFFINITY, "pod-anti-affinity", "node(s) didn't match pod anti-affinity rules"),
    (REPELLED, "pod-anti-affinity", "node(s) didn't satisfy existing pods anti-affinity rules"),
    (DEVICES, "dra-unsatisfiable", "cannot allocate all claims"),
)

UP_TO_FIT = CORDONED | TAINT | NOT_READY | SELECTOR | NODE_AFFINITY | PORTS
"""What the scheduler asks before resources."""

ELIGIBILITY = CORDONED | TAINT | NOT_READY | SELECTOR | NODE_AFFINITY
"""What makes a node eligible at all: a node it excludes says nothing about a shortage."""

UNRESOLVABLE = ELIGIBILITY | VOLUME_AFFINITY | VOLUME_BINDING | ZONE | SPREAD_LABEL | AFFINITY | DEVICES
"""What no preemption can change: the plugins answer UnschedulableAndUnresolvable."""

_SLUGS = {bit: slug for bit, slug, _ in NAMES}


def resource_bit(index: int) -> int:
    return 1 << (RESOURCE_SHIFT + index)


def slug(bit: int) -> str:
    """Slug of one bit that is no resource."""
    return _SLUGS[bit]


def resource_indexes(mask: int) -> list[int]:
    """Indexes of the resources that the mask names, in order."""
    rest, out, index = mask >> RESOURCE_SHIFT, [], 0
    while rest:
        if rest & 1:
            out.append(index)
        rest >>= 1
        index += 1
    return out


def first_reasons(mask: int, resources: tuple[str, ...]) -> list[str]:
    """
    What the scheduler would say of a node with this mask: the texts of the first plugin that refuses it.

    Only NodeResourcesFit gives several.
    """
    early = mask & UP_TO_FIT
    if early:
        return [next(text for bit, _, text in NAMES if early & bit)]
    out = ["Too many pods"] if mask & TOO_MANY_PODS else []
    out += [f"Insufficient {resources[i]}" for i in resource_indexes(mask)]
    if out:
        return out
    return [next(text for bit, _, text in NAMES if mask & bit)]


def first_slug(mask: int, resources: tuple[str, ...]) -> str:
    """The first constraint that refuses a node, in our words: a slug, or ``insufficient RESOURCE``."""
    early = mask & (UP_TO_FIT | TOO_MANY_PODS)
    if not early:
        indexes = resource_indexes(mask)
        if indexes:
            scarce = [resources[i] for i in indexes]
            # A GPU that is missing says more than the cpu that is missing beside it.
            return f"insufficient {next((r for r in scarce if '/' in r), scarce[0])}"
    return next(own for bit, own, _ in NAMES if mask & bit)
