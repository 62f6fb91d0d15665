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
    Tiers for what carries no annotation; from the settings.

    Attributes:
        namespaces: (shell pattern, tier); the first that matches counts.
        priority_classes: PriorityClass name to tier, tried after the namespaces.
        default: For all others; None leaves it open.
    """

    namespaces: tuple[tuple[str, Tier], ...] = ()
    priority_classes: dict[str, Tier] = {}
    default: Tier | None = None

    def tier(self, namespace: str, priority_class: str) -> Tier | None:
        for pattern, tier in self.namespaces:
            if fnmatchcase(namespace, pattern):
                return tier
        return self.priority_classes.get(priority_class, self.default)


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
