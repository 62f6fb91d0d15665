"""
Which roots of a namespace are one workload, and what it is called.

An object of a framework is a workload by itself.  Deployments and the like fold: variants behind one InferencePool,
prefill and decode of one model, the parts of one Helm release; a router belongs to what it routes to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from sevenhop.core.inventory.framework import CLAIMABLE, Claim, FrameworkSpec, Place, RootRef
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.workloads import Component, Framework, Registration
from sevenhop.core.words import counted

ObjectKey = tuple[str, Key]


class Unused(NamedTuple):
    """Something that might have been part of a workload, and why it is not."""

    kind: str
    key: Key
    reason: str


class Part(msgspec.Struct, frozen=True, gc=False):
    """One root of a workload; `component` and `role` are empty where its framework names its components itself."""

    root: RootRef
    spec: FrameworkSpec
    component: str = ""
    role: str = ""
    serves: bool = True


class Group(msgspec.Struct, frozen=True, gc=False):
    """The roots of one workload, the leading one first."""

    namespace: str
    name: str
    kind: str
    framework: Framework
    parts: tuple[Part, ...]
    registers: Registration

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)

    @property
    def roots(self) -> tuple[RootRef, ...]:
        return tuple(part.root for part in self.parts)

    def part(self, root: RootRef) -> Part:
        return next(part for part in self.parts if part.root == root)

    def spec_of(self, root: RootRef) -> FrameworkSpec:
        return self.part(root).spec

    def serves(self, root: RootRef) -> bool:
        return self.part(root).serves

    def named(self, root: RootRef, place: Place) -> tuple[str, str]:
        """(component, role) of a pod."""
        part = self.part(root)
        return (part.component, part.role) if part.component else (place.component, place.role)

    def renamed(self, root: RootRef, components: Iterable[Component]) -> list[Component]:
        """The components of one root under the names that they have in this workload."""
        part = self.part(root)
        if not part.component:
            return list(components)
        return [msgspec.structs.replace(c, name=part.component, role=part.role) for c in components]


class _Bundle(NamedTuple):
    """A group before it has its final name."""

    name: str
    kind: str
    parts: tuple[Part, ...]
    registers: Registration
    rank: int


def fold(
    sure: Sequence[tuple[RootRef, FrameworkSpec]],
    claimed: Mapping[RootRef, tuple[FrameworkSpec, Claim]],
    pools: Sequence[ObjectKey],
) -> tuple[dict[Key, Group], list[Unused]]:
    """
    Group the roots of one namespace.

    Args:
        sure: Roots that are workloads by their kind.
        claimed: Roots that some framework takes.
        pools: (kind, key) of the InferencePools of the namespace, sorted.
    """
    bundles = [_Bundle(root.name, root.kind, (Part(root, spec),), spec.registers, rank=0) for root, spec in sure]
    serving = {root: entry for root, entry in claimed.items() if entry[1].serves}
    routing = {root: entry for root, entry in claimed.items() if not entry[1].serves}
    sets = _united({root: claim.folds for root, (_, claim) in serving.items()})
    routers, unused = _attached(sets, serving, routing)
    bundles += [_bundle(roots, serving, routers.get(roots[0], ()), routing) for roots in sets]
    for root in sorted(set(routing) - {r for rs in routers.values() for r in rs}):
        spec, claim = routing[root]
        if claim.alone:
            part = Part(root, spec, claim.role, claim.role, serves=False)
            bundles.append(_Bundle(root.name, root.kind, (part,), spec.registers, rank=3))
    used = {f.removeprefix("pool/") for _, claim in serving.values() for f in claim.folds if f.startswith("pool/")}
    unused += [Unused(kind, key, "selects no model server seen here") for kind, key in pools if key[1] not in used]
    return _with_names(bundles), unused


def _united(folds: Mapping[RootRef, tuple[str, ...]]) -> list[tuple[RootRef, ...]]:
    """Roots that share any fold, directly or through others; each set sorted, the sets by their first."""
    parent: dict[str, str] = {}

    def top(word: str) -> str:
        while parent.setdefault(word, word) != word:
            word = parent[word]
        return word

    for root in sorted(folds):
        own = "/".join(("root", *root))
        for word in folds[root]:
            parent[top(own)] = top(word)
    sets: dict[str, list[RootRef]] = {}
    for root in sorted(folds):
        sets.setdefault(top("/".join(("root", *root))), []).append(root)
    return sorted(tuple(roots) for roots in sets.values())


def _attached(
    sets: Sequence[tuple[RootRef, ...]],
    serving: Mapping[RootRef, tuple[FrameworkSpec, Claim]],
    routing: Mapping[RootRef, tuple[FrameworkSpec, Claim]],
) -> tuple[dict[RootRef, tuple[RootRef, ...]], list[Unused]]:
    """First root of a set → routers of it; and the routers that nobody can place."""
    called: dict[str, set[RootRef]] = {}
    for roots in sets:
        for root in roots:
            for handle in serving[root][1].handles:
                called.setdefault(handle, set()).add(roots[0])
    attached: dict[RootRef, list[RootRef]] = {}
    unused: list[Unused] = []
    for root in sorted(routing):
        claim = routing[root][1]
        goals = set[RootRef]().union(*(called.get(route, set()) for route in claim.routes))
        if len(goals) == 1:
            attached.setdefault(next(iter(goals)), []).append(root)
        elif not claim.alone:
            what = claim.routes[0].partition("/")[2] if claim.routes else "what it routes to"
            why = (
                f"routes to {counted(len(goals), 'workload')}, belongs to none" if goals else f"{what} is not seen here"
            )
            unused.append(Unused(root.kind, root.key, f"{claim.role}: {why}"))
    return {goal: tuple(routers) for goal, routers in attached.items()}, unused


def _bundle(
    roots: Sequence[RootRef],
    serving: Mapping[RootRef, tuple[FrameworkSpec, Claim]],
    routers: Sequence[RootRef],
    routing: Mapping[RootRef, tuple[FrameworkSpec, Claim]],
) -> _Bundle:
    ordered = sorted(roots, key=lambda r: (CLAIMABLE.index(r.kind), r))
    claims = [serving[root][1] for root in ordered]
    parts = [
        Part(root, serving[root][0], component, claim.role)
        for root, claim, component in zip(ordered, claims, _components(ordered, claims), strict=True)
    ]
    taken = {part.component for part in parts}
    for root in routers:
        spec, claim = routing[root]
        component = claim.role if claim.role not in taken else root.name
        taken.add(component)
        parts.append(Part(root, spec, component, claim.role, serves=False))
    pools = sorted({f.removeprefix("pool/") for claim in claims for f in claim.folds if f.startswith("pool/")})
    name, kind = _called(ordered, claims, pools)
    registers = Registration.POOL if pools else parts[0].spec.registers
    return _Bundle(name, kind, tuple(parts), registers, rank=1 if len(ordered) > 1 else 2)


def _components(roots: Sequence[RootRef], claims: Sequence[Claim]) -> list[str]:
    """The role where it is unique, else what the root is called."""
    roles = [claim.role for claim in claims]
    return [
        claim.role if roles.count(claim.role) == 1 else root.name for root, claim in zip(roots, claims, strict=True)
    ]


def _called(roots: Sequence[RootRef], claims: Sequence[Claim], pools: Sequence[str]) -> tuple[str, str]:
    """(name, kind) of a workload."""
    stated = {claim.name for claim in claims if claim.name}
    helm = all(claim.helm for claim in claims)
    if len(roots) == 1:
        return (claims[0].name if helm and claims[0].name else roots[0].name), roots[0].kind
    if len(stated) == 1:
        return stated.pop(), "HelmRelease" if helm else roots[0].kind
    if len(pools) == 1:
        return pools[0], "InferencePool.inference.networking.k8s.io"
    stem = _common_start([root.name for root in roots]).rstrip("-._")
    stem = re.sub(r"-(p|d|prefil?l?|decod?e?)$", "", stem)
    return (stem if len(stem) > 2 else roots[0].name), "HelmRelease" if helm else roots[0].kind


def _common_start(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:same]


def _with_names(bundles: Sequence[_Bundle]) -> dict[Key, Group]:
    """Names are unique within a namespace: who comes later in the order gets its kind added."""
    groups: dict[Key, Group] = {}
    for bundle in sorted(bundles, key=lambda b: (b.rank, b.kind, b.parts[0].root)):
        lead = bundle.parts[0]
        namespace = lead.root.namespace
        name, attempt = bundle.name, 1
        while (namespace, name) in groups:
            kind = lead.root.kind.partition(".")[0].lower()
            name = f"{lead.root.name}.{kind}" if attempt == 1 else f"{lead.root.name}.{kind}.{attempt}"
            attempt += 1
        groups[(namespace, name)] = Group(
            namespace, name, bundle.kind, lead.spec.framework, bundle.parts, bundle.registers
        )
    return groups
