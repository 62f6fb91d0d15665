"""Which root an object belongs to: by owners, by labels, by the name that a hidden controller leaves on its pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sevenhop.core.inventory.framework import CLAIMABLE, FrameworkSpec, RootRef
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.inventory.ownership import Link, Owners
from sevenhop.core.inventory.templates import JOBSET, JOBSET_NAME, LWS, LWS_NAME, metas_of
from sevenhop.core.objects.base import Object


class Rooting:
    """
    Finds roots; remembers nothing but owner chains.

    Args:
        rank: Root kinds to their precedence, a lower number before a higher.
    """

    def __init__(self, objects: Objects, frameworks: Sequence[FrameworkSpec], rank: Mapping[str, int]) -> None:
        self._objects = objects
        self._frameworks = frameworks
        self._rank = rank
        self.owners = Owners(objects)

    def root_of(self, kind: str, obj: Object) -> RootRef | None:
        """The topmost root that the owners or the labels of an object name; a claimable controller at least."""
        meta = obj.metadata
        this = Link(kind, meta.namespace, meta.name, meta.uid, obj)
        chain = (this, *self.owners.above(meta))
        best: RootRef | None = None
        for link in reversed(chain):
            if link.kind in self._rank:
                best = RootRef(link.kind, link.namespace, link.name)
                break
        joined = self._joined(chain)
        if joined is not None and (best is None or self._rank[joined.kind] < self._rank[best.kind]):
            best = joined
        if best is not None:
            return best
        for link in reversed(chain):
            if link.kind in CLAIMABLE:
                ref = _claimable(link, chain)
                known = self._objects.get(*ref) if ref[:1] != (link.kind,) else None
                return self.root_of(ref.kind, known) if known is not None else ref
        return None

    def _joined(self, chain: Sequence[Link]) -> RootRef | None:
        found: RootRef | None = None
        for link in chain:
            obj = link.obj
            if obj is None:
                continue
            for meta, spec in metas_of(link.kind, obj):
                for framework in self._frameworks:
                    ref = framework.join(meta, spec)
                    if ref is not None and (found is None or self._rank[ref.kind] < self._rank[found.kind]):
                        found = ref
        return found


def _claimable(link: Link, chain: Sequence[Link]) -> RootRef:
    """
    The topmost controller; one that is not visible is known by what its pods carry of it: a LeaderWorkerSet's or a
    JobSet's name, and a Deployment's within the name of its ReplicaSet.
    """
    metas = [meta for below in chain if below.obj is not None for meta, _ in metas_of(below.kind, below.obj)]
    groups = [name for meta in metas if (name := meta.labels.get(LWS_NAME))]
    if groups and link.kind != LWS:
        return RootRef(LWS, link.namespace, groups[-1])
    sets = [name for meta in metas if (name := meta.labels.get(JOBSET_NAME))]
    if sets and link.kind == "Job.batch":
        return RootRef(JOBSET, link.namespace, sets[-1])
    template = next((h for meta in metas if (h := meta.labels.get("pod-template-hash"))), "")
    if link.kind == "ReplicaSet.apps" and link.obj is None and template and link.name.endswith(f"-{template}"):
        return RootRef("Deployment.apps", link.namespace, link.name.removesuffix(f"-{template}"))
    return RootRef(link.kind, link.namespace, link.name)
