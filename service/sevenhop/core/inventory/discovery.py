"""
From objects to inference workloads: who is whose, told from owners, labels and, for plain engines, from what runs.

`Discovery` is kept current by `touch` and `settle`; nothing else of it costs anything while pods merely change status.
The result depends on the objects alone, never on the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

import msgspec

from sevenhop.core.inventory.compare import (
    gates_of,
    is_queued,
    is_ready,
    moves_children,
    owns_pods,
    same_object,
    same_pod,
)
from sevenhop.core.inventory.dependencies import Dependencies
from sevenhop.core.inventory.folding import Group, Unused, fold
from sevenhop.core.inventory.framework import (
    CLAIMABLE,
    Candidate,
    Claim,
    Found,
    FrameworkSpec,
    Member,
    Reading,
    RootRef,
    Scaler,
)
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.inventory.placements import Placements
from sevenhop.core.inventory.policy import Policy, stated_owner, stated_tier
from sevenhop.core.inventory.rooting import Rooting
from sevenhop.core.inventory.scalers import SCALERS, scaled_by
from sevenhop.core.inventory.templates import (
    LWS,
    is_leader,
    pod_component,
    pod_meta,
    read_members,
    repeated,
    template_of,
)
from sevenhop.core.inventory.workloads import Component, Membership, Model, Registration, Workload
from sevenhop.core.objects.base import Custom, Meta, Object
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod, PodTemplate

__all__ = ["Discovery", "FrameworkSpec"]

POOL_KINDS = ("InferencePool.inference.networking.k8s.io", "InferencePool.inference.networking.x-k8s.io")
NAMED_BY_PODS = ("Deployment.apps", LWS)
"""Kinds whose name is told by pods even where the objects in between are not visible."""

MODELS_KEPT = 20_000
"""Pod templates whose model is remembered: more than there are at once, so that rollouts do not add up."""

ObjectKey = tuple[str, Key]
_NO_KEYS: frozenset[Key] = frozenset()


class _Work:
    """What one `settle` has to do."""

    def __init__(self) -> None:
        self.resolve: dict[ObjectKey, None] = {}  # whose root may be another one
        self.read: set[RootRef] = set()  # roots that may say something else
        self.replace: set[RootRef] = set()  # roots whose pods may belong to other components
        self.namespaces: set[str] = set()  # where roots may fold differently
        self.pods: set[Key] = set()  # pods to place anew


_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""
What a reader raises on a spec of another shape: `msgspec.ValidationError` is a ValueError, and a custom resource
without a strict schema may hold anything anywhere.  It is said of that object, and everything else goes on.
"""


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
        self._policy = policy or Policy()
        self._frameworks = tuple(frameworks)
        self._spec_of_root = {kind: spec for spec in reversed(self._frameworks) for kind in spec.roots}
        self._rank = {
            kind: rank for rank, kind in enumerate(kind for spec in self._frameworks for kind in spec.roots)
        }  # a lower number is the more telling root
        self._claimers = {
            kind: tuple(s for s in self._frameworks if kind in s.claims and s.claim is not None) for kind in CLAIMABLE
        }
        self._structural = (
            set(CLAIMABLE) | set(self._rank) | {kind for spec in self._frameworks for kind in spec.below}
        ) - {"Pod"}
        self.root_kinds = tuple(self._rank)
        self._rooting = Rooting(objects, self._frameworks, self._rank)

        self._touched: dict[ObjectKey, None] = {}
        self._seen: dict[ObjectKey, Object] = {}
        self._root: dict[ObjectKey, RootRef] = {}
        self._members: dict[RootRef, set[ObjectKey]] = {}
        self._pods_at: dict[RootRef, set[Key]] = {}
        self._roots_in: dict[str, set[RootRef]] = {}
        self._claims: dict[RootRef, tuple[FrameworkSpec, Claim]] = {}
        self._unclaimed: dict[RootRef, str] = {}
        self._refused: dict[RootRef, str] = {}
        self._unreadable: dict[RootRef, str] = {}
        self._unused: dict[str, list[Unused]] = {}
        self._group_of: dict[RootRef, Group] = {}
        self._groups: dict[str, dict[Key, Group]] = {}
        self._pools_in: dict[str, dict[ObjectKey, Custom]] = {}
        self._scalers: dict[tuple[str, str, str], dict[ObjectKey, None]] = {}
        self._dependencies = Dependencies()

        self._placements = Placements()
        self._models: dict[tuple[str, str], Model] = {}
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
        found = [(ref.kind, ref.key, reason) for ref, reason in self._unclaimed.items()]
        found += [(ref.kind, ref.key, reason) for ref, reason in self._refused.items()]
        found += [(ref.kind, ref.key, reason) for ref, reason in self._unreadable.items()]
        for spec in self._frameworks:
            for kind, reason in spec.aside:
                found += [(kind, key, reason) for key in self._objects.of(kind)]
        found += [
            (u.kind, u.key, u.reason) for unused in self._unused.values() for u in unused if not self._is_in_use(u)
        ]
        return sorted(set(found))

    def _is_in_use(self, unused: Unused) -> bool:
        """A pool that selects pods of a framework's own object; only looked for when somebody asks."""
        pool = self._pools_in.get(unused.key[0], {}).get((unused.kind, unused.key))
        if pool is None:
            return False
        wanted = _pool_labels(pool).items()
        pods = self._objects.pods()
        members = (pods[key] for key in self._placements.members(unused.key[0]) if key in pods)
        return bool(wanted) and any(wanted <= pod.metadata.labels.items() for pod in members)

    def membership(self, pod: Key) -> Membership | None:
        """Where a pod belongs; None for pods of no inference workload."""
        return self._placements.of(pod)

    def pods_of(self, workload: Key, component: str) -> set[Key]:
        """Pods of a component, finished and terminating ones too; do not change the set."""
        return self._placements.pods((workload, component))

    def role_of(self, workload: Key, component: str) -> str:
        """Our word for a component; empty if it has none."""
        found = self._workloads.get(workload)
        part = found.component(component) if found else None
        return part.role if part else ""

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
            group = self._group(key) or key[1]
            groups[group] = groups.get(group, 0) + 1
        if size > 1 and all(self._group(k) == "" for k in self.pods_of(workload, component)):
            return sum(groups.values()) // size
        return sum(1 for count in groups.values() if count >= size)

    def _group(self, pod: Key) -> str:
        at = self._placements.of(pod)
        return at.group if at is not None else ""

    def component_of(self, kind: str, key: Key) -> tuple[Key, str] | None:
        """
        (workload, component) of the pods that a controller makes, told from its template: it need not have any yet.
        """
        obj, root = self._objects.get(kind, *key), self._root.get((kind, key))
        template = template_of(kind, obj) if obj is not None else None
        group = self._group_of.get(root) if root is not None else None
        if root is None or group is None or template is None:
            return None
        place = group.spec_of(root).place(
            pod_meta(template.metadata, key[0]), template.spec, self._found(root, track=False)
        )
        return group.key, group.named(root, place)[0]

    def workload_of(self, kind: str, key: Key) -> Key | None:
        """The workload that an object of any kind belongs to, by its owners and labels; None if to none."""
        obj = self._objects.get(kind, *key)
        root = self._root.get((kind, key)) or (self._rooting.root_of(kind, obj) if obj is not None else None)
        group = self._group_of.get(root) if root is not None else None
        return group.key if group is not None else None

    # What changes it

    def touch(self, kind: str, key: Key) -> None:
        """This object may have come, changed or gone; costs nothing until `settle`."""
        self._touched[(kind, key)] = None

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
            work.pods |= self._pods_at.get(root, _NO_KEYS)
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
            after = self._objects.get(kind, *key)
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
        work.read |= self._dependencies.of((kind, key))
        if kind in POOL_KINDS:
            self._keep_pool(kind, key, after)
            work.namespaces.add(key[0])
            work.read |= {r for r in self._roots_in.get(key[0], ()) if r.kind in CLAIMABLE}
        elif kind in SCALERS:
            work.read |= self._keep_scaler(kind, key, before, after)
        elif kind == "Namespace":
            work.read |= self._roots_in.get(key[1], set())
        elif kind in self._structural:
            work.resolve[(kind, key)] = None
            work.replace.add(RootRef(kind, *key))
            if moves_children(before, after):
                self._below(before, after, work.resolve)
                if kind in NAMED_BY_PODS:
                    # Pods that know it by name only, since what is in between is not visible.
                    for root in (RootRef(kind, *key), self._root.get((kind, key))):
                        pods = self._pods_at.get(root, _NO_KEYS) if root is not None else _NO_KEYS
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
        before = self._root.get((kind, key))
        after = self._rooting.root_of(kind, obj) if obj is not None else None
        if kind == "Pod":
            work.pods.add(key)
            # A visible root says all that is to say; its pods coming and going changes nothing about it.
            work.read |= {
                root for root in (before, after) if root is not None and (before != after or not self._is_visible(root))
            }
        else:
            work.read |= {root for root in (before, after) if root is not None}
        if before == after:
            return
        if before is not None:
            self._leave(before, kind, key)
        if after is None:
            self._root.pop((kind, key), None)
            return
        self._root[(kind, key)] = after
        if kind == "Pod":
            self._pods_at.setdefault(after, set()).add(key)
        else:
            self._members.setdefault(after, set()).add((kind, key))
        self._roots_in.setdefault(after.namespace, set()).add(after)

    def _leave(self, root: RootRef, kind: str, key: Key) -> None:
        if kind == "Pod":
            self._pods_at.get(root, set()).discard(key)
        else:
            self._members.get(root, set()).discard((kind, key))

    def _reclaim(self, root: RootRef) -> bool:
        """Who, if anybody, takes this root; true if its namespace must be grouped anew."""
        was_grouped = root in self._group_of
        was_claimed = root in self._claims
        if not self._exists(root):
            self._roots_in.get(root.namespace, set()).discard(root)
            self._dependencies.forget(root)
            self._refused.pop(root, None)
            self._unreadable.pop(root, None)
            self._unclaimed.pop(root, None)
            self._claims.pop(root, None)
            self._pods_at.pop(root, None)
            self._members.pop(root, None)
            return was_grouped or was_claimed
        if root.kind in self._rank:
            return self._accept(root)
        before = self._claims.get(root)
        said = self._claim(root)
        if isinstance(said, str):
            self._claims.pop(root, None)
            self._unclaimed[root] = said
        else:
            self._unclaimed.pop(root, None)
            self._claims[root] = said
        after = self._claims.get(root)
        return before != after or (after is not None and after[1].serves and not was_grouped)

    def _accept(self, root: RootRef) -> bool:
        obj = self._root_object(root)
        why_not = self._spec_of_root[root.kind].refuse(root, obj) if obj is not None else ""
        before = self._refused.get(root, "")
        if why_not:
            self._refused[root] = why_not
        else:
            self._refused.pop(root, None)
        return before != why_not or (root in self._group_of) == bool(why_not)

    def _is_visible(self, root: RootRef) -> bool:
        return self._root_object(root) is not None

    def _exists(self, root: RootRef) -> bool:
        # Not whether an object of this name is there: that one may belong to another root.
        return bool(self._pods_at.get(root) or self._members.get(root))

    def _claim(self, root: RootRef) -> tuple[FrameworkSpec, Claim] | str:
        obj = self._root_object(root)
        template = template_of(root.kind, obj) if obj is not None else None
        if template is None:
            template = self._template_from_pods(root)
        if template is None:
            return "no pod template"
        labels = obj.metadata.labels if obj is not None else template.metadata.labels
        candidate = Candidate(root, labels, template, self._pools_of(root.namespace, template.metadata), obj)
        reasons: list[str] = []
        for spec in self._claimers.get(root.kind, ()):
            assert spec.claim is not None  # by construction of the table
            said = spec.claim(candidate)
            if isinstance(said, Claim):
                return spec, _with_pools(said, candidate.pools)
            if said:
                reasons.append(said)
        return reasons[-1] if reasons else "no inference engine recognised by image, command or labels"

    def _template_from_pods(self, root: RootRef) -> PodTemplate | None:
        pods = self._objects.pods()
        key = min((k for k in self._pods_at.get(root, ()) if k in pods), default=None)
        if key is None:
            return None
        if root.kind == LWS:
            leaders = [k for k in self._pods_at[root] if is_leader(pods[k])]
            key = min(leaders, default=key)
        return PodTemplate(metadata=pods[key].metadata, spec=pods[key].spec)

    def _pools_of(self, namespace: str, meta: Meta) -> tuple[str, ...]:
        names = set()
        for (_, key), pool in self._pools_in.get(namespace, {}).items():
            wanted = _pool_labels(pool)
            if wanted and all(meta.labels.get(k) == v for k, v in wanted.items()):
                names.add(key[1])
        return tuple(sorted(names))

    def _regroup(self, namespace: str, changed: set[Key]) -> set[RootRef]:
        """Group the roots of a namespace; returns the roots whose group is another one now."""
        roots = self._roots_in.get(namespace, set())
        sure = [
            (root, self._spec_of_root[root.kind])
            for root in roots
            if root.kind in self._rank and root not in self._refused
        ]
        claimed = {root: self._claims[root] for root in roots if root in self._claims}
        pools = sorted(self._pools_in.get(namespace, {}))
        groups, unused = fold(sure, claimed, pools)
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
        root = self._root.get(("Pod", key))
        group = self._group_of.get(root) if root is not None else None
        if root is None or group is None:
            return None
        spec = group.spec_of(root)
        place = spec.place(pod.metadata, pod.spec, self._found(root, track=False))
        return Membership(group.key, group.named(root, place)[0], self._model_of(spec, pod), place.group)

    def _model_of(self, spec: FrameworkSpec, pod: Pod) -> Model:
        """Pods of one ReplicaSet are made from one template: one look at it will do."""
        owner = pod.metadata.controller()
        template = pod.metadata.labels.get("pod-template-hash", "")
        if owner is None or not template or not owner.uid:
            return spec.model(pod.metadata, pod.spec)
        if len(self._models) > MODELS_KEPT:
            self._models.clear()
        known = self._models.get((owner.uid, template))
        if known is None:
            known = self._models[(owner.uid, template)] = spec.model(pod.metadata, pod.spec)
        return known

    def _read(self, key: Key, changed: set[Key]) -> None:
        group = self._groups.get(key[0], {}).get(key)
        if group is None:
            self._drop_workload(key, changed)
            return
        workload = self._workload(group)
        if self._workloads.get(key) != workload:
            self._workloads[key] = workload
            changed.add(key)

    def _drop_workload(self, key: Key, changed: set[Key]) -> None:
        if self._workloads.pop(key, None) is not None:
            changed.add(key)

    def _workload(self, group: Group) -> Workload:
        components: list[Component] = []
        models: list[Model] = []
        registers = group.registers
        for root in group.roots:
            spec = group.spec_of(root)
            found = self._found(root, track=True)
            reading = self._reading(spec, found)
            components += group.renamed(root, reading.components)
            if group.serves(root):
                models.append(reading.model)
            registers = reading.registers or registers
        components = self._with_observed(group, components)
        components = [self._queued(group.key, part) for part in components]
        metas = [obj.metadata for obj in map(self._root_object, group.roots) if obj is not None]
        metas = metas or self._metas_of_pods(group)
        space = self._objects.get("Namespace", "", group.namespace)
        if space is not None:
            metas.append(space.metadata)
        priority = next((part.priority_class for part in components if part.gpus_per_replica), "") or next(
            (part.priority_class for part in components if part.priority_class), ""
        )
        return Workload(
            namespace=group.namespace,
            name=group.name,
            framework=group.framework,
            kind=group.kind,
            roots=tuple((root.kind, root.key) for root in group.roots),
            model=_best(models, components),
            components=tuple(components),
            registers=registers or Registration.ENDPOINTS,
            tier=stated_tier(metas) or self._policy.tier(group.namespace, priority),
            owner=stated_owner(metas),
        )

    def _reading(self, spec: FrameworkSpec, found: Found) -> Reading:
        """What a root says; where it cannot be read, it is a workload all the same, known from its pods."""
        self._unreadable.pop(found.ref, None)
        try:
            if found.obj is not None:
                return spec.read(found)
            return spec.read_below(found) if spec.read_below is not None else read_members(spec, found)
        except _UNREADABLE as error:
            self._unreadable[found.ref] = f"a workload known from its pods only; its spec cannot be read: {error}"
            return Reading()

    def _metas_of_pods(self, group: Group) -> list[Meta]:
        """Where no root is visible, its annotations may still stand on a pod."""
        pods = self._objects.pods()
        keys = [min(here) for root in group.roots if (here := self._pods_at.get(root))]
        return [pods[key].metadata for key in keys if key in pods]

    def _with_observed(self, group: Group, stated: list[Component]) -> list[Component]:
        """Components that only pods tell of are added, in the order of their names."""
        names = {part.name for part in stated}
        only_seen = sorted(self._placements.components(group.key) - names)
        return stated + [part for name in only_seen for part in self._observed_component(group, name)]

    def _observed_component(self, group: Group, name: str) -> list[Component]:
        pods = self._objects.pods()
        members = [key for key in self.pods_of(group.key, name) if key in pods]
        if not members:
            return []
        first = min(members)
        pod, root = pods[first], self._root[("Pod", first)]
        spec = group.spec_of(root)
        found = self._found(root, track=False)
        place = spec.place(pod.metadata, pod.spec, found)
        _, role = group.named(root, place)
        replica = [pods[k].spec for k in members if place.group and self._group(k) == place.group]
        size = max(place.pods, len(replica))
        model = spec.model(pod.metadata, pod.spec)
        try:
            if len(replica) < size:
                replica = repeated(pod.spec, size)  # the rest of the group is not there yet; assume it is alike
            part = pod_component(name, role, replica, model, size, namespace=group.namespace, get=found.get)
        except ValueError as error:
            self._unreadable[root] = f"GPUs of component {name} unknown: {error}"
            part = Component(name=name, role=role, model=model)
        return [part]

    def _queued(self, workload: Key, part: Component) -> Component:
        if part.intended_zero or not self._placements.is_all_queued((workload, part.name)):
            return part
        return msgspec.structs.replace(part, intended_zero="queued")

    def _root_object(self, root: RootRef) -> Object | None:
        """The root itself, if it is visible and not rather part of another root."""
        obj = self._objects.get(root.kind, root.namespace, root.name)
        return obj if self._root.get((root.kind, root.key)) == root else None

    # What readers may look at

    def _found(self, root: RootRef, *, track: bool) -> Found:
        members = [] if not track else list(self._sorted_members(root))
        if track:
            self._dependencies.forget(root)

        def get(kind: str, namespace: str, name: str) -> Object | None:
            if track:
                self._dependencies.add(root, (kind, (namespace, name)))
            return self._objects.get(kind, namespace, name)

        def scaler(kind: str, name: str) -> Scaler | None:
            here = self._scalers.get((root.namespace, kind, name))
            if not here:
                return None
            (scaler_kind, key) = min(here)
            return Scaler(scaler_kind, key[1])

        return Found(root, self._root_object(root), members, get, scaler)

    def _sorted_members(self, root: RootRef) -> Iterator[Member]:
        for kind, key in sorted(self._members.get(root, ())):
            obj = self._objects.get(kind, *key)
            if obj is not None and (kind, key) != (root.kind, root.key):
                yield Member(kind, obj)

    # Indexes

    def _keep_pool(self, kind: str, key: Key, pool: Object | None) -> None:
        here = self._pools_in.setdefault(key[0], {})
        if isinstance(pool, Custom):
            here[(kind, key)] = pool
        else:
            here.pop((kind, key), None)

    def _keep_scaler(self, kind: str, key: Key, before: Object | None, after: Object | None) -> set[RootRef]:
        stale: set[RootRef] = set()
        for obj, is_there in ((before, False), (after, True)):
            target = scaled_by(obj) if obj is not None else None
            if target is None:
                continue
            slot = (key[0], *target)
            here = self._scalers.setdefault(slot, {})
            if is_there:
                here[(kind, key)] = None
            else:
                here.pop((kind, key), None)
            if not here:
                del self._scalers[slot]
            root = self._root.get((target[0], (key[0], target[1])))
            if root is not None:
                stale.add(root)
        return stale


def _with_pools(claim: Claim, pools: Sequence[str]) -> Claim:
    if not pools or not claim.serves:
        return claim
    words = tuple(f"pool/{name}" for name in pools)
    return msgspec.structs.replace(claim, folds=(*claim.folds, *words), handles=(*claim.handles, *words))


def _pool_labels(pool: Custom) -> dict[str, str]:
    """``selector.matchLabels`` in v1, plain labels in v1alpha2."""
    selector = pool.spec.get("selector")
    if not isinstance(selector, dict):
        return {}
    labels = selector.get("matchLabels", {k: v for k, v in selector.items() if isinstance(v, str)})
    return {str(k): str(v) for k, v in labels.items()} if isinstance(labels, dict) else {}


def _best(models: Sequence[Model], components: Sequence[Component]) -> Model:
    """The first that says most; of equal ones the first."""
    found = [*models, *(part.model for part in components)]
    return max(found, key=lambda m: (bool(m.name), bool(m.version), bool(m.source)), default=Model())
