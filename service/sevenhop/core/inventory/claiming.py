"""Does this root serve a model, and which framework takes it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from sevenhop.core.inventory.framework import CLAIMABLE, Candidate, Claim, FrameworkSpec, RootRef
from sevenhop.core.inventory.roots import Roots
from sevenhop.core.inventory.serving_pools import ServingPools
from sevenhop.core.inventory.templates import template_of


class Claiming:
    """
    Attributes:
        rank: Root kinds to their precedence: a lower number is the more telling root.
        spec_of: Root kind to its framework.
        claims: Roots of a claimable kind that a framework takes.
        unclaimed: Those that none takes, and why.
        refused: Roots that are no workload after all, and why.
    """

    def __init__(self, frameworks: Sequence[FrameworkSpec], roots: Roots, pools: ServingPools) -> None:
        self._roots = roots
        self._pools = pools
        self.spec_of: Mapping[str, FrameworkSpec] = {kind: spec for spec in reversed(frameworks) for kind in spec.roots}
        self.rank: Mapping[str, int] = {
            kind: rank for rank, kind in enumerate(kind for spec in frameworks for kind in spec.roots)
        }
        self._claimers = {
            kind: tuple(s for s in frameworks if kind in s.claims and s.claim is not None) for kind in CLAIMABLE
        }
        self.claims: dict[RootRef, tuple[FrameworkSpec, Claim]] = {}
        self.unclaimed: dict[RootRef, str] = {}
        self.refused: dict[RootRef, str] = {}

    def __len__(self) -> int:
        """Of everything remembered."""
        return len(self.claims) + len(self.unclaimed) + len(self.refused)

    def sure(self, namespace: str) -> list[tuple[RootRef, FrameworkSpec]]:
        """Roots of a namespace that are workloads by their kind."""
        return [
            (root, self.spec_of[root.kind])
            for root in self._roots.in_namespace(namespace)
            if root.kind in self.rank and root not in self.refused
        ]

    def claimed(self, namespace: str) -> dict[RootRef, tuple[FrameworkSpec, Claim]]:
        """Roots of a namespace that some framework takes."""
        return {root: self.claims[root] for root in self._roots.in_namespace(namespace) if root in self.claims}

    def forget(self, root: RootRef) -> bool:
        """It is gone; returns whether it was claimed."""
        self.refused.pop(root, None)
        self.unclaimed.pop(root, None)
        return self.claims.pop(root, None) is not None

    def ask(self, root: RootRef, *, was_grouped: bool) -> bool:
        """Who, if anybody, takes this root now; returns whether its namespace must be grouped anew."""
        if root.kind in self.rank:
            return self._accept(root, was_grouped=was_grouped)
        before = self.claims.get(root)
        said = self._claim(root)
        if isinstance(said, str):
            self.claims.pop(root, None)
            self.unclaimed[root] = said
        else:
            self.unclaimed.pop(root, None)
            self.claims[root] = said
        after = self.claims.get(root)
        return before != after or (after is not None and after[1].serves and not was_grouped)

    def _accept(self, root: RootRef, *, was_grouped: bool) -> bool:
        obj = self._roots.object(root)
        why_not = self.spec_of[root.kind].refuse(root, obj) if obj is not None else ""
        before = self.refused.get(root, "")
        if why_not:
            self.refused[root] = why_not
        else:
            self.refused.pop(root, None)
        return before != why_not or was_grouped == bool(why_not)

    def _claim(self, root: RootRef) -> tuple[FrameworkSpec, Claim] | str:
        obj = self._roots.object(root)
        template = template_of(root.kind, obj) if obj is not None else None
        if template is None:
            template = self._roots.template_from_pods(root)
        if template is None:
            return "no pod template"
        labels = obj.metadata.labels if obj is not None else template.metadata.labels
        pools = self._pools.selecting(root.namespace, template.metadata)
        candidate = Candidate(root, labels, template, pools, obj)
        reasons: list[str] = []
        for spec in self._claimers.get(root.kind, ()):
            assert spec.claim is not None  # by construction of the table
            said = spec.claim(candidate)
            if isinstance(said, Claim):
                return spec, _with_pools(said, pools)
            if said:
                reasons.append(said)
        return reasons[-1] if reasons else "no inference engine recognised by image, command or labels"


def _with_pools(claim: Claim, pools: Sequence[str]) -> Claim:
    if not pools or not claim.serves:
        return claim
    words = tuple(f"pool/{name}" for name in pools)
    return msgspec.structs.replace(claim, folds=(*claim.folds, *words), handles=(*claim.handles, *words))
