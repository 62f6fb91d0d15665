"""
From objects to inference workloads: who is whose, told from owners, labels and, for plain engines, from what runs.

`Discovery` is kept current by `touch` and `settle`; nothing else of it costs anything while pods merely change status.
The result depends on the objects alone, never on the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from sevenhop.core.inventory.claiming import Claiming
from sevenhop.core.inventory.compare import (
    gates_of,
    is_queued,
    is_ready,
    moves_children,
    owns_pods,
    same_object,
    same_pod,
)
from sevenhop.core.inventory.folding import Group, Unused, fold
from sevenhop.core.inventory.framework import CLAIMABLE, FrameworkSpec, RootRef
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.inventory.placements import Placements
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.rooting import Rooting
from sevenhop.core.inventory.roots import Roots
from sevenhop.core.inventory.scalers import SCALERS, Scalers
from sevenhop.core.inventory.serving_pools import POOL_KINDS, ServingPools
from sevenhop.core.inventory.templates import JOBSET, LWS, pod_meta, template_of
from sevenhop.core.inventory.workload_reading import WorkloadReading
from sevenhop.core.inventory.workloads import Membership, Workload
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod

NAMED_BY_PODS = ("Deployment.apps", LWS, JOBSET)
"""Kinds whose name is told by pods even where the objects in between are not visible."""

ObjectKey = tuple[str, Key]


class _Work:
    """What one `settle` has to do."""

    def __init__(self) -> None:
        self.resolve: dict[ObjectKey, None] = {}  # whose root may be another one
        self.read: set[RootRef] = set()  # roots that may say something else
        self.replace: set[RootRef] = set()  # roots whose pods may belong to other components
        self.namespaces: set[str] = set()  # where roots may fold differently
        self.pods: set[Key] = set()  # pods to place anew


class Discovery:
    """
    The workloads of one cluster, and the place of every pod in them.

    Args:
        frameworks: In order of precedence.

    Everything that is in `objects` already counts as touched.  After each `put` or `drop` in `objects` call `touch`,
    and `settle` before reading.
    """

    def __init__(self, objects: Objects, frameworks: Sequence[FrameworkSpec], policy: Policy | None = None) -> None:
        self._objects = objects
        self._frameworks = tuple(frameworks)
        self._roots = Roots(objects)
        self._pools = ServingPools()
        self._scalers = Scalers()
        self._placements = Placements()
        self._claiming = Claiming(self._frameworks, self._roots, self._pools)
        self._rooting = Rooting(objects, self._frameworks, self._claiming.rank)
        self._reading = WorkloadReading(objects, self._roots, self._scalers, self._placements, policy or Policy())
        self.root_kinds = tuple(self._claiming.rank)
        self._structural = (
            set(CLAIMABLE) | set(self.root_kinds) | {kind for spec in self._frameworks for kind in spec.below}
        ) - {"Pod"}

        self._touched: dict[ObjectKey, None] = {}
        self._seen: dict[ObjectKey, Object] = {}
        self._unused: dict[str, list[Unused]] = {}
        self._group_of: dict[RootRef, Group] = {}
        self._groups: dict[str, dict[Key, Group]] = {}
        self._workloads: dict[Key, Workload] = {}

        for kind in KINDS:
            for key in objects.of(kind):
                self.touch(kind, key)

    # What it answers

    @property
    def workloads(self) -> Mapping[Key, Workload]:
        """By (namespace, name)."""
        return self._workloads

    @property
    def skipped(self) -> list[tuple[str, Key, str]]:
        """
        (kind, key, reason) of everything that might have been a workload, and is not; sorted.

        Pods that a controller owns are not listed: their controller is.
        """
        reasons = (self._claiming.unclaimed, self._claiming.refused, self._reading.unreadable)
        found = [(ref.kind, ref.key, reason) for each in reasons for ref, reason in each.items()]
        for spec in self._frameworks:
            for kind, reason in spec.aside:
                found += [(kind, key, reason) for key in self._objects.of(kind)]
        found += [
            (u.kind, u.key, u.reason)
            for unused in self._unused.values()
            for u in unused
            # A framework's own object may be what a pool selects.
            if not self._pools.is_in_use(u.kind, u.key, self._objects, self._placements)
        ]
        return sorted(set(found))

    def membership(self, pod: Key) -> Membership | None:
        """Where a pod belongs; None for pods of no inference workload."""
        return self._placements.of(pod)

    def pods_of(self, workload: Key, component: str) -> set[Key]:
        """Pods of a component, finished and terminating ones too; do not change the set."""
        return self._placements.pods((workload, component))

    def ready(self, workload: Key, component: str) -> int:
        """
        Ready replicas, in the framework's unit: a multi-pod group is ready when all its pods are.

        A pod is ready when its condition says so and it is not being deleted.
        """
        found = self._workloads.get(workload)
        part = found.component(component) if found else None
        size = part.pods_per_replica if part else 1
        pods = self._objects.pods()
        groups: dict[str, int] = {}
        for key in self.pods_of(workload, component):
            pod = pods.get(key)
            if pod is None or not is_ready(pod):
                continue
            group = self._placements.group(key) or key[1]
            groups[group] = groups.get(group, 0) + 1
        if size > 1 and all(self._placements.group(k) == "" for k in self.pods_of(workload, component)):
            return sum(groups.values()) // size
        return sum(1 for count in groups.values() if count >= size)

    def component_of(self, kind: str, key: Key) -> tuple[Key, str] | None:
        """
        (workload, component) of the pods that a controller makes, told from its template: it need not have any yet.
        """
        obj, root = self._objects.get(kind, *key), self._roots.of.get((kind, key))
        template = template_of(kind, obj) if obj is not None else None
        group = self._group_of.get(root) if root is not None else None
        if root is None or group is None or template is None:
            return None
        place = group.spec_of(root).place(pod_meta(template.metadata, key[0]), template.spec, self._reading.found(root))
        return group.key, group.named(root, place)[0]

    def workload_of(self, kind: str, key: Key) -> Key | None:
        """The workload that an object of any kind belongs to, by its owners and labels; None if to none."""
        obj = self._objects.get(kind, *key)
        root = self._roots.of.get((kind, key)) or (self._rooting.root_of(kind, obj) if obj is not None else None)
        group = self._group_of.get(root) if root is not None else None
        return group.key if group is not None else None

    # What changes it

    def touch(self, kind: str, key: Key) -> None:
        """This object may have come, changed or gone; costs nothing until `settle`."""
        self._touched[(kind, key)] = None

    def renew_pod(self, key: Key, pod: Pod) -> None:
        """
        A newer version of a pod that was not touched otherwise, and of which nothing differs but the status: there is
        nothing to settle, and the older version can be freed.
        """
        where = ("Pod", key)
        if where in self._seen and where not in self._touched:
            self._seen[where] = pod

    def settle(self) -> set[Key]:
        """
        Take everything touched into account.

        Returns:
            Keys of workloads that came, went or changed, or that a pod joined or left.
        """
        changed: set[Key] = set()
        touched, self._touched = list(self._touched), {}
        if not touched:
            return changed
        work = self._what_changed(touched)
        for kind, key in work.resolve:
            self._resolve(kind, key, work)
        for root in sorted(work.read):
            if self._reclaim(root):
                work.namespaces.add(root.namespace)
        for namespace in sorted(work.namespaces):
            regrouped = self._regroup(namespace, changed)
            work.read |= regrouped
            work.replace |= regrouped
        for root in work.replace:
            work.pods |= self._roots.pods(root)
        stale = {self._group_of[root].key for root in work.read if root in self._group_of}
        for pod in work.pods:
            self._place(pod, changed, stale)
        for workload in sorted(stale):
            self._read(workload, changed)
        return changed

    # Steps of `settle`, in order

    def _what_changed(self, touched: Iterable[ObjectKey]) -> _Work:
        work = _Work()
        for kind, key in touched:
            before = self._seen.get((kind, key))
            after = self._objects.at(kind, key)
            if after is None:
                self._seen.pop((kind, key), None)
            else:
                self._seen[(kind, key)] = after
            if kind == "Pod":
                self._pod_changed(key, cast("Pod | None", before), cast("Pod | None", after), work)
            elif not same_object(before, after):
                self._object_changed(kind, key, before, after, work)
        return work

    def _pod_changed(self, key: Key, before: Pod | None, after: Pod | None, work: _Work) -> None:
        if same_pod(before, after):
            if before is not None and after is not None and gates_of(before) != gates_of(after):
                work.pods.add(key)
            return
        work.resolve[("Pod", key)] = None
        if (owns_pods(before) or owns_pods(after)) and moves_children(before, after):
            self._below(before, after, work.resolve)

    def _object_changed(self, kind: str, key: Key, before: Object | None, after: Object | None, work: _Work) -> None:
        work.read |= self._reading.dependencies.of((kind, key))
        if kind in POOL_KINDS:
            self._pools.put(kind, key, after)
            work.namespaces.add(key[0])
            work.read |= {r for r in self._roots.in_namespace(key[0]) if r.kind in CLAIMABLE}
        elif kind in SCALERS:
            scaled = self._scalers.put(kind, key, before, after)
            work.read |= {self._roots.of[target] for target in scaled if target in self._roots.of}
        elif kind == "Namespace":
            work.read |= self._roots.in_namespace(key[1])
        elif kind in self._structural:
            work.resolve[(kind, key)] = None
            work.replace.add(RootRef(kind, *key))
            if moves_children(before, after):
                self._below(before, after, work.resolve)
                if kind in NAMED_BY_PODS:
                    # Pods that know it by name only, since what is in between is not visible.
                    for root in (RootRef(kind, *key), self._roots.of.get((kind, key))):
                        pods = self._roots.pods(root) if root is not None else ()
                        work.resolve.update(dict.fromkeys(("Pod", pod) for pod in pods))

    def _below(self, before: Object | None, after: Object | None, resolve: dict[ObjectKey, None]) -> None:
        """Everything that this object controls, down to the pods: its chain upward is another one now."""
        pending = {o.metadata.uid for o in (before, after) if o is not None and o.metadata.uid}
        done: set[str] = set()
        while pending:
            uid = pending.pop()
            done.add(uid)
            self._rooting.owners.forget(uid)
            for kind, child in self._objects.children(uid):
                resolve[(kind, child.metadata.key)] = None
                if child.metadata.uid and child.metadata.uid not in done:
                    pending.add(child.metadata.uid)

    def _resolve(self, kind: str, key: Key, work: _Work) -> None:
        obj = self._objects.get(kind, *key)
        before = self._roots.of.get((kind, key))
        after = self._rooting.root_of(kind, obj) if obj is not None else None
        if kind == "Pod":
            work.pods.add(key)
        for root in (before, after):
            # A visible root says all that is to say; its pods coming and going changes nothing about it.
            if root is not None and (kind != "Pod" or before != after or not self._roots.is_visible(root)):
                work.read.add(root)
        if before != after:
            self._roots.move(kind, key, after)

    def _reclaim(self, root: RootRef) -> bool:
        """Who, if anybody, takes this root; true if its namespace must be grouped anew."""
        was_grouped = root in self._group_of
        if self._roots.exists(root):
            return self._claiming.ask(root, was_grouped=was_grouped)
        self._roots.forget(root)
        self._reading.forget(root)
        was_claimed = self._claiming.forget(root)
        return was_grouped or was_claimed

    def _regroup(self, namespace: str, changed: set[Key]) -> set[RootRef]:
        """Group the roots of a namespace; returns the roots whose group is another one now."""
        groups, unused = fold(
            self._claiming.sure(namespace), self._claiming.claimed(namespace), self._pools.of(namespace)
        )
        self._unused.pop(namespace, None)
        if unused:
            self._unused[namespace] = unused
        moved: set[RootRef] = set()
        known = self._groups.pop(namespace, {})
        for key in known.keys() - groups.keys():
            gone = known[key]
            for root in gone.roots:
                if self._group_of.get(root) == gone:
                    del self._group_of[root]
                moved.add(root)
            self._drop_workload(key, changed)
        for key, group in groups.items():
            before = known.get(key)
            if before == group and all(self._group_of.get(r) == group for r in group.roots):
                continue
            moved |= {*group.roots, *(before.roots if before is not None else ())}
        if groups:
            self._groups[namespace] = groups
        grouped = {root: group for group in groups.values() for root in group.roots}
        for root in list(moved):
            if root in grouped:
                self._group_of[root] = grouped[root]
            else:
                self._group_of.pop(root, None)
        return moved

    def _place(self, key: Key, changed: set[Key], stale: set[Key]) -> None:
        """Put a pod where it belongs; a workload that knew nothing of its component is read anew."""
        before = self._placements.of(key)
        pod = self._objects.pods().get(key)
        after = self._member(key, pod) if pod is not None else None
        stale |= self._placements.move(key, after, queued=pod is not None and is_queued(pod))
        if before == after:
            return
        for at in (before, after):
            if at is None:
                continue
            changed.add(at.workload)
            known = self._workloads.get(at.workload)
            part = known.component(at.component) if known is not None else None
            if part is None or part.desired is None:
                stale.add(at.workload)

    def _member(self, key: Key, pod: Pod) -> Membership | None:
        root = self._roots.of.get(("Pod", key))
        group = self._group_of.get(root) if root is not None else None
        if root is None or group is None:
            return None
        spec = group.spec_of(root)
        place = spec.place(pod.metadata, pod.spec, self._reading.found(root))
        return Membership(group.key, group.named(root, place)[0], self._reading.model_of(spec, pod), place.group)

    def _read(self, key: Key, changed: set[Key]) -> None:
        group = self._groups.get(key[0], {}).get(key)
        if group is None:
            self._drop_workload(key, changed)
            return
        workload = self._reading.workload(group)
        if self._workloads.get(key) != workload:
            self._workloads[key] = workload
            changed.add(key)

    def _drop_workload(self, key: Key, changed: set[Key]) -> None:
        if self._workloads.pop(key, None) is not None:
            changed.add(key)
