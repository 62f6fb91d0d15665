"""
What an object touches when it comes, changes or goes, by its kind.

Indexes are kept current at once; what has to be derived again is only marked.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from sevenhop.core.inventory.blocked import RULES_ON_PODS, TOLD_BY_NAME, TOLD_KINDS
from sevenhop.core.inventory.dra import Touched
from sevenhop.core.inventory.gpus import Touched as GpusTouched
from sevenhop.core.inventory.history_keeping import forget_node, forget_pod, remember_node, remember_pod
from sevenhop.core.inventory.marking import (
    all_pools,
    controller_moved,
    pod_came_or_went,
    reread_everything,
    reread_namespace,
    reread_workload,
    rules_on_pods_changed,
)
from sevenhop.core.inventory.news import holds_differently, is_heartbeat, is_placed_differently, says_the_same
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.read_component import HPAS, PDBS
from sevenhop.core.inventory.read_service import SLICES
from sevenhop.core.inventory.rows import is_plugin
from sevenhop.core.inventory.settling import Settling
from sevenhop.core.inventory.state import PRIORITY_CLASSES, State
from sevenhop.core.objects import cluster as objects
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.devices import ResourceClaim, ResourceSlice
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.devices import CLAIMS as DEVICE_CLAIMS
from sevenhop.core.placement.devices import SLICES as DEVICE_SLICES
from sevenhop.core.subject import Subject, SubjectKind

CONTROLLERS = ("ReplicaSet.apps", "StatefulSet.apps", "Deployment.apps", "Job.batch")
"""Kinds that make pods, and may be refused them."""

_PLACEMENT_SORTS_OUT = frozenset(("Pod", "Node", "Event"))
"""Kinds whose handlers tell placement themselves, because most of their changes do not concern it."""

Kept = TypeVar("Kept", bound=Object)


class Touching:
    """
    Mutable, owned by one inventory.

    Attributes:
        at: When we came to know what is handed in.
    """

    def __init__(self, state: State, settling: Settling) -> None:
        self.at = datetime.min.replace(tzinfo=UTC)
        self._state = state
        self._settling = settling
        self._dirty = settling.dirty
        self._handlers: dict[str, Callable[[Key, Any, Any], None]] = {
            "Pod": self._on_pod,
            "Node": self._on_node,
            "Event": self._on_event,
            "Service": self._on_service,
            SLICES: self._on_slice,
            PDBS: self._on_budget,
            HPAS: self._on_scaler,
            PRIORITY_CLASSES: self._on_priority_class,
            DEVICE_SLICES: self._on_device_slice,
            DEVICE_CLAIMS: self._on_device_claim,
            **{kind: partial(self._on_controller, kind) for kind in CONTROLLERS},
            **{kind: partial(self._on_told, kind) for kind in TOLD_KINDS},
            **{kind: partial(self._on_rule_on_pods, kind) for kind in RULES_ON_PODS},
        }

    def moved(self, kind: str, key: Key, before: Object | None, after: Object | None) -> None:
        """
        Told after the objects hold it, or hold it no longer.

        A pod of which only the status changed is handed to `pod_status_changed` instead.

        Args:
            before: None for one that is new.
            after: None for one that is gone.
        """
        if not self._state.policy.ignores(key[0]):
            self._state.discovery.touch(kind, key)
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(key, before, after)
        if kind in _PLACEMENT_SORTS_OUT:
            return
        self._state.placement.update(kind, key)
        owner = self._state.workload_of_root.get((kind, key))
        if owner is not None:
            reread_workload(self._state, self._dirty, owner)

    def pod_status_changed(self, key: Key, before: Pod, after: Pod) -> None:
        """Keeps the newer one.  Nearly all that comes in is this; and of most nothing differs that anybody reads."""
        state = self._state
        after.metadata.labels = before.metadata.labels  # indexes hold them: the older object can be freed
        state.objects.put("Pod", after)
        state.discovery.renew_pod(key, after)
        is_new = not says_the_same(before, after)
        if not after.spec.node_name or (is_new and holds_differently(before, after)):
            state.placement.update("Pod", key)
        if is_new:
            self._dirty.pods.add(key)
            remember_pod(state, key, before, after, self.at)
            self._plugin_moved(after)

    def gpus_told(self, touched: GpusTouched) -> None:
        """What an agent's sample or XID touched, or the end of its node."""
        if touched.node:
            self._dirty.agents.add(touched.node)
        self._settling.gpus_gone |= {Subject(SubjectKind.GPU, "", uuid) for uuid in touched.gone}
        self._dirty.pod_facts.update(touched.pods)

    # By kind

    def _on_pod(self, key: Key, before: Pod | None, after: Pod | None) -> None:
        """A pod came or went, or more than its status changed."""
        state, dirty = self._state, self._dirty
        if before is None or after is None or is_placed_differently(before, after):
            state.placement.update("Pod", key)
        state.shapes.pop(key, None)
        if after is None:
            dirty.services |= state.services.drop_pod(key)
            dirty.pods.add(key)
            forget_pod(state, key)
            self._plugin_moved(before)
            if before is not None:
                pod_came_or_went(self._state, self._dirty, before)
            return
        dirty.services |= state.services.put_pod(key, after.metadata.labels)
        dirty.pods.add(key)
        row = state.rows.get(key)
        if row is not None:
            # A component also reads selectors and labels of its pods, which no row holds.
            dirty.slots.add((row.workload, row.component))
        if before is None or before.is_terminating != after.is_terminating:
            pod_came_or_went(self._state, self._dirty, after)
        remember_pod(state, key, before, after, self.at)
        self._plugin_moved(after)

    def _plugin_moved(self, pod: Pod | None) -> None:
        if pod is not None and pod.spec.node_name and is_plugin(pod):
            self._dirty.nodes.add(pod.spec.node_name)

    def _on_node(self, key: Key, before: objects.Node | None, after: objects.Node | None) -> None:
        state, dirty = self._state, self._dirty
        state.placement.update("Node", key)
        if before is not None and after is not None and is_heartbeat(before, after):
            return
        state.ledger.put_node(key[1], after)
        dirty.nodes.add(key[1])
        if after is None:
            forget_node(state, key[1])
            self.gpus_told(state.gpus.forget_node(key[1]))
        else:
            dirty.agents.update({key[1]} & state.gpus.agents.keys())
            remember_node(state, key[1], after)

    def _on_event(self, key: Key, before: objects.Event | None, after: objects.Event | None) -> None:
        self._state.placement.update("Event", key)
        # An Event that expires takes nothing back: what it told of stands in the objects.
        if after is None:
            if before is not None:
                self._state.evidence.drop(before)
            return
        had_autoscaler = self._state.evidence.seen_autoscaler
        kind, namespace, name = self._state.evidence.put(before, after)
        if kind == "Pod":
            row = self._state.rows.get((namespace, name))
            if row is not None and not row.ready:
                self._dirty.pods.add((namespace, name))
            if row is not None and not row.node:
                # What the autoscaler says of who waits is told of the pool, also where it makes no other verdict.
                pool = self._state.pool_of.get((row.workload, row.component), "")
                self._dirty.pools.update({pool} - {""})
        elif kind in ("ReplicaSet", "StatefulSet", "Job"):
            group = "batch" if kind == "Job" else "apps"
            self._dirty.controllers.add((f"{kind}.{group}", (namespace, name)))
        elif kind in TOLD_BY_NAME:
            self._dirty.controllers.update((each, (namespace, name)) for each in TOLD_BY_NAME[kind])
        if self._state.evidence.seen_autoscaler and not had_autoscaler:
            self._state.changed_histories.add(("autoscaler", "seen"))
            self._dirty.pools |= all_pools(self._state)

    def _on_service(self, key: Key, _before: objects.Service | None, after: objects.Service | None) -> None:
        if after is None:
            self._state.services.drop_service(key)
        else:
            self._state.services.put_service(after)
        self._dirty.services.add(key)

    def _on_slice(self, _key: Key, before: objects.EndpointSlice | None, after: objects.EndpointSlice | None) -> None:
        service = self._state.services.put_slice(before, after)
        if service is not None:
            self._dirty.services.add(service)

    def _on_device_slice(self, key: Key, before: ResourceSlice | None, after: ResourceSlice | None) -> None:
        self._devices_moved(self._state.devices.put_slice(key, before, after))

    def _on_device_claim(self, key: Key, _before: object, after: ResourceClaim | None) -> None:
        self._devices_moved(self._state.devices.put_claim(key, after))

    def _devices_moved(self, touched: Touched) -> None:
        for name in touched.nodes:
            self._state.ledger.put_devices(name, self._state.devices.on(name))
        self._dirty.nodes |= touched.nodes
        self._dirty.pods |= touched.pods

    def _on_budget(
        self, key: Key, before: objects.PodDisruptionBudget | None, after: objects.PodDisruptionBudget | None
    ) -> None:
        if before is not None and after is not None and before.spec == after.spec:
            return
        _keep(self._state.budgets, key, after)
        reread_namespace(self._state, self._dirty, key[0])

    def _on_scaler(self, key: Key, _before: object, after: objects.HorizontalPodAutoscaler | None) -> None:
        _keep(self._state.scalers, key, after)
        reread_namespace(self._state, self._dirty, key[0])

    def _on_controller(self, kind: str, key: Key, _before: object, _after: object) -> None:
        controller_moved(self._state, self._dirty, kind, key)

    def _on_told(self, kind: str, key: Key, _before: object, _after: object) -> None:
        self._dirty.controllers.add((kind, key))

    def _on_rule_on_pods(self, kind: str, key: Key, _before: object, _after: object) -> None:
        rules_on_pods_changed(self._state, self._dirty, key[1] if kind == "Namespace" else key[0])

    def _on_priority_class(self, _key: Key, _before: object, _after: object) -> None:
        reread_everything(self._state, self._dirty)


def _keep(where: dict[str, dict[Key, Kept]], key: Key, obj: Kept | None) -> None:
    here = where.setdefault(key[0], {})
    if obj is not None:
        here[key] = obj
        return
    here.pop(key, None)
    if not here:
        del where[key[0]]
