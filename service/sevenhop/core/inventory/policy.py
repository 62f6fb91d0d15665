"""What a workload is worth to its owner, and who the owner is."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec

from sevenhop.core.inventory.workloads import Tier
from sevenhop.core.objects.base import Meta

TIER = "sevenhop.dev/tier"
OWNER = "sevenhop.dev/owner"

OWNER_LABELS: tuple[str, ...] = ("team", "owner", "app.kubernetes.io/owner", "backstage.io/owner", "contact")
"""Labels and annotations that people use to say who is responsible, tried in this order after our own."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """
    What objects themselves do not say; from the settings.

    Attributes:
        namespaces: (shell pattern, tier); the first that matches counts.
        priority_classes: PriorityClass name to tier, tried after the namespaces.
        default: For all others; None leaves it open.
        priority_tiers: (least value of the pods' priority, tier), the highest value first, for what is left open.  A
            cluster without PriorityClasses has priority 0 everywhere.
        owners: (shell pattern on the namespace, owner), for workloads that name none.
        minimums: ``namespace/workload`` or ``namespace/workload/component``, as shell patterns, and the replicas below
            which the component counts as broken; the first that matches counts.
        ignored_namespaces: Shell patterns; what lives there counts in the ledger and is no workload.
    """

    namespaces: tuple[tuple[str, Tier], ...] = ()
    priority_classes: dict[str, Tier] = {}
    default: Tier | None = None
    priority_tiers: tuple[tuple[int, Tier], ...] = ((1_000_000, Tier.CRITICAL), (0, Tier.STANDARD))
    owners: tuple[tuple[str, str], ...] = ()
    minimums: tuple[tuple[str, int], ...] = ()
    ignored_namespaces: tuple[str, ...] = ()

    def tier(self, namespace: str, priority_class: str) -> Tier | None:
        for pattern, tier in self.namespaces:
            if fnmatchcase(namespace, pattern):
                return tier
        return self.priority_classes.get(priority_class, self.default)

    def tier_of_priority(self, priority: int) -> Tier:
        """
        The tier that a pod's priority stands for, where nothing else says; below every threshold it is batch.

        >>> Policy().tier_of_priority(0).value, Policy().tier_of_priority(-10).value
        ('standard', 'batch')
        """
        return next((tier for least, tier in self.priority_tiers if priority >= least), Tier.BATCH)

    def owner(self, namespace: str) -> str:
        """Empty where the settings name none."""
        return next((owner for pattern, owner in self.owners if fnmatchcase(namespace, pattern)), "")

    def minimum(self, namespace: str, workload: str, component: str) -> int | None:
        """None where the settings state no floor."""
        if not self.minimums:
            return None
        names = (f"{namespace}/{workload}/{component}", f"{namespace}/{workload}")
        return next((least for pattern, least in self.minimums for name in names if fnmatchcase(name, pattern)), None)

    def ignores(self, namespace: str) -> bool:
        return any(fnmatchcase(namespace, pattern) for pattern in self.ignored_namespaces)


def stated_tier(metas: Sequence[Meta]) -> Tier | None:
    """
    The first tier that annotations (or labels, for people who like these better) state.

    A word that is no tier is as good as none: guessing at it could let a critical workload be called batch.
    """
    for meta in metas:
        word = meta.annotations.get(TIER) or meta.labels.get(TIER) or ""
        if word in Tier.__members__.values():
            return Tier(word)
    return None


def stated_owner(metas: Sequence[Meta]) -> str:
    """The first owner that is stated, our own annotation of any of them before common labels of any; empty if none."""
    for key in (OWNER, *OWNER_LABELS):
        for meta in metas:
            owner = meta.annotations.get(key) or meta.labels.get(key)
            if owner:
                return owner
    return ""
