"""Taints and the tolerations that overcome them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sevenhop.core.objects.cluster import Taint
from sevenhop.core.objects.pod import Toleration

CORDON = "node.kubernetes.io/unschedulable"

CONDITION_TAINTS = frozenset(
    "node.kubernetes.io/" + name
    for name in (
        "not-ready",
        "unreachable",
        "memory-pressure",
        "disk-pressure",
        "pid-pressure",
        "network-unavailable",
    )
) | {"node.cloudprovider.kubernetes.io/uninitialized"}
"""Set by the node controller from the node's own conditions: they say that the node is not well, not that it is kept
for somebody (kubernetes.io/docs/reference/labels-annotations-taints)."""

BLOCKING = ("NoSchedule", "NoExecute")


class Tolerance(msgspec.Struct, frozen=True, order=True, gc=False):
    """A toleration as a value that can be compared and hashed."""

    key: str
    operator: str
    value: str
    effect: str

    def covers(self, key: str, value: str, effect: str) -> bool:
        """
        Whether it tolerates a taint.

        An empty key with `Exists` covers every key, an empty effect every effect; `Equal` without a value covers
        only a taint without a value.
        """
        if self.effect and self.effect != effect:
            return False
        if self.key and self.key != key:
            return False
        match self.operator:
            case "Exists":
                return True
            case "" | "Equal":
                return bool(self.key) and self.value == value
            case "Gt" | "Lt":
                return _compares(value, self.value, greater=self.operator == "Gt")
            case _:
                return False


def tolerances(tolerations: Iterable[Toleration]) -> tuple[Tolerance, ...]:
    return tuple(sorted({Tolerance(t.key, t.operator, t.value, t.effect) for t in tolerations}))


def tolerates(held: tuple[Tolerance, ...], key: str, value: str, effect: str) -> bool:
    return any(t.covers(key, value, effect) for t in held)


def untolerated(taints: Iterable[Taint], held: tuple[Tolerance, ...]) -> list[Taint]:
    """The taints that keep a pod with these tolerations away; PreferNoSchedule never does."""
    return [t for t in taints if t.effect in BLOCKING and not tolerates(held, t.key, t.value, t.effect)]


def _compares(taint_value: str, own_value: str, *, greater: bool) -> bool:
    # Kubernetes 1.35+ (TaintTolerationComparisonOperators): integers only.
    try:
        left, right = int(taint_value), int(own_value)
    except ValueError:
        return False
    return left > right if greater else left < right
