"""What does a workload say of itself: its components, its model, its tier and owner?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from sevenhop.core.inventory.dependencies import Dependencies
from sevenhop.core.inventory.folding import Group
from sevenhop.core.inventory.framework import Found, FrameworkSpec, Reading, RootRef, Scaler
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.inventory.placements import Placements
from sevenhop.core.inventory.policy import Policy, stated_owner, stated_tier
from sevenhop.core.inventory.roots import Roots
from sevenhop.core.inventory.scalers import Scalers
from sevenhop.core.inventory.templates import pod_component, read_members, repeated
from sevenhop.core.inventory.workloads import Component, Model, Registration, Workload
from sevenhop.core.objects.base import Meta, Object
from sevenhop.core.objects.pod import Pod

MODELS_KEPT = 20_000
"""Pod templates whose model is remembered: more than there are at once, so that rollouts do not add up."""

_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""
What a reader raises on a spec of another shape: `msgspec.ValidationError` is a ValueError, and a custom resource
without a strict schema may hold anything anywhere.  It is said of that object, and everything else goes on.
"""


class WorkloadReading:
    """
    Attributes:
        dependencies: What each root was read from beside itself.
        unreadable: Roots whose spec cannot be read, and why.
    """

    def __init__(
        self, objects: Objects, roots: Roots, scalers: Scalers, placements: Placements, policy: Policy
    ) -> None:
        self._objects = objects
        self._roots = roots
        self._scalers = scalers
        self._placements = placements
        self._policy = policy
        self._models: dict[tuple[str, str], Model] = {}
        self.dependencies = Dependencies()
        self.unreadable: dict[RootRef, str] = {}

    def forget(self, root: RootRef) -> None:
        """It is gone."""
        self.dependencies.forget(root)
        self.unreadable.pop(root, None)

    def workload(self, group: Group) -> Workload:
        """What is served by these roots; what it is read from is noted in `dependencies`."""
        components: list[Component] = []
        models: list[Model] = []
        registers = group.registers
        for root in group.roots:
            reading = self._reading(group.spec_of(root), self._tracked(root))
            components += group.renamed(root, reading.components)
            if group.serves(root):
                models.append(reading.model)
            registers = reading.registers or registers
        components = self._with_observed(group, components)
        components = [self._queued(group.key, part) for part in components]
        metas = self._metas(group)
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

    def found(self, root: RootRef) -> Found:
        """What is known of a root, for placing a pod in it."""
        return Found(root, self._roots.object(root), [], self._objects.get, self._scaler_in(root.namespace))

    def model_of(self, spec: FrameworkSpec, pod: Pod) -> Model:
        """What a pod runs; pods of one ReplicaSet are made from one template, and one look at it will do."""
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

    def _tracked(self, root: RootRef) -> Found:
        """What readers may look at; whatever they ask for, the root depends on."""
        self.dependencies.forget(root)

        def get(kind: str, namespace: str, name: str) -> Object | None:
            self.dependencies.add(root, (kind, (namespace, name)))
            return self._objects.get(kind, namespace, name)

        members = list(self._roots.members(root))
        return Found(root, self._roots.object(root), members, get, self._scaler_in(root.namespace))

    def _scaler_in(self, namespace: str) -> Callable[[str, str], Scaler | None]:
        return partial(self._scalers.of, namespace)

    def _reading(self, spec: FrameworkSpec, found: Found) -> Reading:
        """What a root says; where it cannot be read, it is a workload all the same, known from its pods."""
        self.unreadable.pop(found.ref, None)
        try:
            if found.obj is not None:
                return spec.read(found)
            return spec.read_below(found) if spec.read_below is not None else read_members(spec, found)
        except _UNREADABLE as error:
            self.unreadable[found.ref] = f"a workload known from its pods only; its spec cannot be read: {error}"
            return Reading()

    def _metas(self, group: Group) -> list[Meta]:
        """Where tier and owner may be stated: the roots, else (none is visible) one pod of each; then the namespace."""
        metas = [obj.metadata for obj in map(self._roots.object, group.roots) if obj is not None]
        if not metas:
            pods = self._objects.pods()
            keys = [min(here) for root in group.roots if (here := self._roots.pods(root))]
            metas = [pods[key].metadata for key in keys if key in pods]
        space = self._objects.get("Namespace", "", group.namespace)
        return [*metas, space.metadata] if space is not None else metas

    def _with_observed(self, group: Group, stated: list[Component]) -> list[Component]:
        """Components that only pods tell of are added, in the order of their names."""
        names = {part.name for part in stated}
        only_seen = sorted(self._placements.components(group.key) - names)
        return stated + [part for name in only_seen for part in self._observed_component(group, name)]

    def _observed_component(self, group: Group, name: str) -> list[Component]:
        pods = self._objects.pods()
        members = [key for key in self._placements.pods((group.key, name)) if key in pods]
        if not members:
            return []
        first = min(members)
        pod, root = pods[first], self._roots.of[("Pod", first)]
        spec, found = group.spec_of(root), self.found(root)
        place = spec.place(pod.metadata, pod.spec, found)
        _, role = group.named(root, place)
        replica = [pods[k].spec for k in members if place.group and self._placements.group(k) == place.group]
        size = max(place.pods, len(replica))
        model = spec.model(pod.metadata, pod.spec)
        try:
            if len(replica) < size:
                replica = repeated(pod.spec, size)  # the rest of the group is not there yet; assume it is alike
            part = pod_component(name, role, replica, model, size, namespace=group.namespace, get=found.get)
        except ValueError as error:
            self.unreadable[root] = f"GPUs of component {name} unknown: {error}"
            part = Component(name=name, role=role, model=model)
        return [part]

    def _queued(self, workload: Key, part: Component) -> Component:
        if part.intended_zero or not self._placements.is_all_queued((workload, part.name)):
            return part
        return msgspec.structs.replace(part, intended_zero="queued")


def _best(models: Sequence[Model], components: Sequence[Component]) -> Model:
    """The first that says most; of equal ones the first."""
    found = [*models, *(part.model for part in components)]
    return max(found, key=lambda m: (bool(m.name), bool(m.version), bool(m.source)), default=Model())
