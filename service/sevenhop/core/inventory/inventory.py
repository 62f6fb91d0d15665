"""What is true now of one cluster: observations go in, facts that changed come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import msgspec

from sevenhop.core.events import (
    Applied,
    Deleted,
    Event,
    GpusSampled,
    SourceChanged,
    SyncState,
    Unreadable,
    XidSeen,
)
from sevenhop.core.facts.schema import Facts
from sevenhop.core.facts.source import RULEBOOK
from sevenhop.core.incidents.context import SubjectContext
from sevenhop.core.inventory.blocked import RULES_ON_PODS, TOLD_BY_NAME, TOLD_KINDS
from sevenhop.core.inventory.changes import changed_object, changes_between
from sevenhop.core.inventory.contexts import context
from sevenhop.core.inventory.dra import Touched
from sevenhop.core.inventory.framework import FrameworkSpec
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
    sight_changed,
)
from sevenhop.core.inventory.news import (
    holds_differently,
    is_heartbeat,
    is_placed_differently,
    is_same_but_status,
    is_same_version,
    says_the_same,
)
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.order import Order
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.read_component import HPAS, PDBS
from sevenhop.core.inventory.read_service import SLICES
from sevenhop.core.inventory.rows import is_plugin
from sevenhop.core.inventory.settling import Settling
from sevenhop.core.inventory.state import PRIORITY_CLASSES, Dirty, State
from sevenhop.core.objects import cluster as objects
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.devices import CLAIMS as DEVICE_CLAIMS
from sevenhop.core.placement.devices import SLICES as DEVICE_SLICES
from sevenhop.core.subject import Subject, SubjectKind

CONTROLLERS = ("ReplicaSet.apps", "StatefulSet.apps", "Deployment.apps", "Job.batch")
"""Kinds that make pods, and may be refused them."""


_PLACEMENT_SORTS_OUT = frozenset(("Pod", "Node", "Event"))
"""Kinds whose handlers tell placement themselves, because most of their changes do not concern it."""

_SEEN_BY: dict[SubjectKind, tuple[str, ...]] = {
    SubjectKind.NODE: ("Node",),
    SubjectKind.GPU: ("Node",),
    SubjectKind.POOL: ("Node", "Pod"),
    SubjectKind.SERVICE: ("Service", "Pod"),
    SubjectKind.SOURCE: (),  # we always know what we see
}
"""Kinds without which nothing can be said of a subject; of all others it is "Pod"."""

Kept = TypeVar("Kept", bound=Object)


class Settled(msgspec.Struct, frozen=True):
    """
    Attributes:
        changed: Subjects of which a fact or a label has another value now, with all their facts.
        gone: Subjects that are no more.
    """

    changed: dict[Subject, Facts]
    gone: set[Subject]


class Inventory:
    """
    One cluster.

    Mutable, owned by one caller: `apply` events, then `settle`.  It is a level: duplicates, late events and re-lists
    end in the same facts.
    """

    def __init__(self, cluster: str, frameworks: Sequence[FrameworkSpec], policy: Policy | None = None) -> None:
        self.state = State(cluster, frameworks, policy or Policy())
        self._order = Order()
        self._dirty = Dirty()
        self._settling = Settling(self.state, self._dirty)
        self._now: datetime | None = None
        self._at = datetime.min.replace(tzinfo=UTC)  # of the event at hand
        self._takers: dict[type[Event], Callable[[Any], None]] = {
            Applied: self._applied,
            Deleted: self._deleted,
            SourceChanged: self._source_changed,
            Unreadable: self._unreadable,
            GpusSampled: lambda event: self._gpus_told(self.state.gpus.take_sample(event)),
            XidSeen: lambda event: self._gpus_told(self.state.gpus.take_xid(event)),
        }
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

    # What it answers

    @property
    def facts(self) -> dict[Subject, Facts]:
        """Of every subject, as of the last `settle`; do not change it."""
        return self.state.facts

    @property
    def next_wake(self) -> datetime | None:
        """When `settle` has something to do even if nothing happens; None if never."""
        return self._settling.next_wake

    def context(self, subject: Subject, now: datetime, *, brief: bool = False) -> SubjectContext | None:
        """What a message needs to know of a subject, or all but pool and changes; None for one that is gone."""
        return context(self.state, subject, now, brief=brief)

    def is_hidden(self, subject: Subject) -> bool:
        """Whether it cannot be known now how a subject is, or that it is gone: what it is made of is not listed."""
        hidden = self.state.gate(*_SEEN_BY.get(subject.kind, ("Pod",)))
        if subject.kind not in (SubjectKind.NODE, SubjectKind.GPU, SubjectKind.SOURCE):
            hidden = hidden or self.state.belonging_gate()
        return hidden is not None

    # What changes it

    def rules_broken(self, count: int) -> None:
        """Rules whose expression fails although every fact is there: a fact about ourselves."""
        if count != self.state.rules_broken:
            self.state.rules_broken = count
            self._dirty.sources.add(RULEBOOK)

    def expect(self, subjects: Iterable[Subject]) -> None:
        """
        Subjects that the store remembers.

        Those that are not there once everything was listed are told as gone, as if they had gone while we looked.
        """
        self._settling.expected |= set(subjects)

    def apply(self, event: Event) -> None:
        """
        Take in one observation; decisions and outcomes only move the time on.

        What is older than what is known of the object changes nothing, nor does a deletion of another incarnation.
        """
        at = _by_our_clock(event)
        self._at = at or self._at
        if at is not None and (self._now is None or at > self._now):
            self._now = at
        if self.state.started is None:
            self.state.started = at
        take = self._takers.get(type(event))
        if take is not None:
            take(event)

    def settle(self, now: datetime) -> Settled:
        """
        Recompute what is dirty, or due by `now`.

        Time never runs back: an older `now` counts as the newest event's time.
        """
        now = max(now, self._now or now)
        self._now = now
        changed, gone = self._settling.run(now)
        return Settled(changed, gone)

    # By kind of event

    def _applied(self, event: Applied) -> None:
        kind, obj = event.kind, event.obj
        key = obj.metadata.key
        if not self._order.is_news(kind, key, event.epoch, event.seq):
            return
        self._order.exists(kind, key, event.epoch, event.seq)
        self._is_readable(kind, key)
        before = self.state.objects.at(kind, key)
        if before is not None and is_same_version(before, obj):
            return
        if before is not None and before.metadata.uid != obj.metadata.uid:
            self._drop(kind, key)
            before = None
        if isinstance(before, Pod) and isinstance(obj, Pod) and is_same_but_status(before, obj):
            self._pod_status_changed(key, before, obj)
            return
        if before is not None:
            self._note_changes(kind, key, before, obj, event.at)
        self.state.objects.put(kind, obj)
        self._touch(kind, key)
        self._handle(kind, key, before, obj)

    def _deleted(self, event: Deleted) -> None:
        kind, key = event.kind, (event.namespace, event.name)
        known = self.state.objects.at(kind, key)
        if known is not None and event.uid and known.metadata.uid and known.metadata.uid != event.uid:
            return
        if not self._order.is_news(kind, key, event.epoch, event.seq):
            return
        self._order.is_gone(kind, key, event.epoch, event.seq)
        self._is_readable(kind, key)
        if known is not None:
            self._drop(kind, key)

    def _drop(self, kind: str, key: Key) -> None:
        before = self.state.objects.drop(kind, key)
        self._touch(kind, key)
        self._handle(kind, key, before, None)

    def _handle(self, kind: str, key: Key, before: Object | None, after: Object | None) -> None:
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(key, before, after)
        if kind in _PLACEMENT_SORTS_OUT:
            return
        self.state.placement.update(kind, key)
        owner = self.state.workload_of_root.get((kind, key))
        if owner is not None:
            reread_workload(self.state, self._dirty, owner)

    def _source_changed(self, event: SourceChanged) -> None:
        kind = event.kind
        # Each source counts for itself: those that are parts of ourselves have no epochs.
        place = (f"source {kind}", ("", ""))
        if not self._order.is_news(*place, event.epoch, event.seq):
            return
        self._order.exists(*place, event.epoch, event.seq)
        before, was_known = self.state.objects.states.get(kind), self.state.objects.is_known(kind)
        had_reason = bool(self.state.objects.details.get(kind))
        self.state.objects.states[kind] = event.state
        self.state.objects.details[kind] = event.detail
        self._dirty.sources.add(kind)
        # A first list that has failed is an answer too, though the state stays what it was.
        if kind in KINDS and (before is not event.state or had_reason is not bool(event.detail)):
            sight_changed(self.state, self._dirty, kind)
            # What is not here does not exist any more, or may do again.
            if was_known is not self.state.objects.is_known(kind) or SyncState.NOT_SYNCED in (before, event.state):
                self.state.placement.epoch += 1

    def _gpus_told(self, touched: GpusTouched) -> None:
        if touched.node:
            self._dirty.agents.add(touched.node)
        self._settling.gpus_gone |= {Subject(SubjectKind.GPU, "", uuid) for uuid in touched.gone}
        self._dirty.pod_facts.update(touched.pods)

    def _unreadable(self, event: Unreadable) -> None:
        kind, key = event.kind, (event.namespace, event.name)
        if not self._order.is_news(kind, key, event.epoch, event.seq):
            return
        self._order.exists(kind, key, event.epoch, event.seq)
        self.state.unreadable.setdefault(kind, {})[key] = event.error
        self._reread(kind, key)

    def _is_readable(self, kind: str, key: Key) -> None:
        here = self.state.unreadable.get(kind)
        if here and here.pop(key, None) is not None:
            self._reread(kind, key)

    def _reread(self, kind: str, key: Key) -> None:
        dirty = self._dirty
        dirty.sources.add(kind)
        if kind == "Pod":
            dirty.pods.add(key)
        elif kind == "Node":
            dirty.nodes.add(key[1])
            dirty.pools.update(self.state.ledger.pools_of(key[1]))
        else:
            owner = self.state.workload_of_root.get((kind, key))
            if owner is not None:
                reread_workload(self.state, self._dirty, owner)

    # By kind of object

    def _touch(self, kind: str, key: Key) -> None:
        if not self.state.policy.ignores(key[0]):
            self.state.discovery.touch(kind, key)

    def _pod_status_changed(self, key: Key, before: Pod, after: Pod) -> None:
        """Nearly all that comes in; and of most nothing differs that anybody reads."""
        state = self.state
        after.metadata.labels = before.metadata.labels  # indexes hold them: the older object can be freed
        state.objects.put("Pod", after)
        state.discovery.renew_pod(key, after)
        is_new = not says_the_same(before, after)
        if not after.spec.node_name or (is_new and holds_differently(before, after)):
            state.placement.update("Pod", key)
        if is_new:
            self._dirty.pods.add(key)
            remember_pod(state, key, before, after, self._at)
            self._plugin_moved(after)

    def _on_pod(self, key: Key, before: Pod | None, after: Pod | None) -> None:
        """A pod came or went, or more than its status changed."""
        state, dirty = self.state, self._dirty
        if before is None or after is None or is_placed_differently(before, after):
            state.placement.update("Pod", key)
        state.shapes.pop(key, None)
        if after is None:
            dirty.services |= state.services.drop_pod(key)
            dirty.pods.add(key)
            forget_pod(state, key)
            self._plugin_moved(before)
            if before is not None:
                pod_came_or_went(self.state, self._dirty, before)
            return
        dirty.services |= state.services.put_pod(key, after.metadata.labels)
        dirty.pods.add(key)
        row = state.rows.get(key)
        if row is not None:
            # A component also reads selectors and labels of its pods, which no row holds.
            dirty.slots.add((row.workload, row.component))
        if before is None or before.is_terminating != after.is_terminating:
            pod_came_or_went(self.state, self._dirty, after)
        remember_pod(state, key, before, after, self._at)
        self._plugin_moved(after)

    def _plugin_moved(self, pod: Pod | None) -> None:
        if pod is not None and pod.spec.node_name and is_plugin(pod):
            self._dirty.nodes.add(pod.spec.node_name)

    def _on_node(self, key: Key, before: objects.Node | None, after: objects.Node | None) -> None:
        state, dirty = self.state, self._dirty
        state.placement.update("Node", key)
        if before is not None and after is not None and is_heartbeat(before, after):
            return
        state.ledger.put_node(key[1], after)
        dirty.nodes.add(key[1])
        if after is None:
            forget_node(state, key[1])
            self._gpus_told(state.gpus.forget_node(key[1]))
        else:
            dirty.agents.update({key[1]} & state.gpus.agents.keys())
            remember_node(state, key[1], after)

    def _on_event(self, key: Key, before: objects.Event | None, after: objects.Event | None) -> None:
        self.state.placement.update("Event", key)
        # An Event that expires takes nothing back: what it told of stands in the objects.
        if after is None:
            if before is not None:
                self.state.evidence.drop(before)
            return
        had_autoscaler = self.state.evidence.seen_autoscaler
        kind, namespace, name = self.state.evidence.put(before, after)
        if kind == "Pod":
            row = self.state.rows.get((namespace, name))
            if row is not None and not row.ready:
                self._dirty.pods.add((namespace, name))
            if row is not None and not row.node:
                # What the autoscaler says of who waits is told of the pool, also where it makes no other verdict.
                pool = self.state.pool_of.get((row.workload, row.component), "")
                self._dirty.pools.update({pool} - {""})
        elif kind in ("ReplicaSet", "StatefulSet", "Job"):
            group = "batch" if kind == "Job" else "apps"
            self._dirty.controllers.add((f"{kind}.{group}", (namespace, name)))
        elif kind in TOLD_BY_NAME:
            self._dirty.controllers.update((each, (namespace, name)) for each in TOLD_BY_NAME[kind])
        if self.state.evidence.seen_autoscaler and not had_autoscaler:
            self.state.changed_histories.add(("autoscaler", "seen"))
            self._dirty.pools |= all_pools(self.state)

    def _on_service(self, key: Key, _before: objects.Service | None, after: objects.Service | None) -> None:
        if after is None:
            self.state.services.drop_service(key)
        else:
            self.state.services.put_service(after)
        self._dirty.services.add(key)

    def _on_slice(self, _key: Key, before: objects.EndpointSlice | None, after: objects.EndpointSlice | None) -> None:
        service = self.state.services.put_slice(before, after)
        if service is not None:
            self._dirty.services.add(service)

    def _on_device_slice(
        self, key: Key, before: objects.ResourceSlice | None, after: objects.ResourceSlice | None
    ) -> None:
        self._devices_moved(self.state.devices.put_slice(key, before, after))

    def _on_device_claim(self, key: Key, _before: object, after: objects.ResourceClaim | None) -> None:
        self._devices_moved(self.state.devices.put_claim(key, after))

    def _devices_moved(self, touched: Touched) -> None:
        for name in touched.nodes:
            self.state.ledger.put_devices(name, self.state.devices.on(name))
        self._dirty.nodes |= touched.nodes
        self._dirty.pods |= touched.pods

    def _on_budget(
        self, key: Key, before: objects.PodDisruptionBudget | None, after: objects.PodDisruptionBudget | None
    ) -> None:
        if before is not None and after is not None and before.spec == after.spec:
            return
        _keep(self.state.budgets, key, after)
        reread_namespace(self.state, self._dirty, key[0])

    def _on_scaler(self, key: Key, _before: object, after: objects.HorizontalPodAutoscaler | None) -> None:
        _keep(self.state.scalers, key, after)
        reread_namespace(self.state, self._dirty, key[0])

    def _on_controller(self, kind: str, key: Key, _before: object, _after: object) -> None:
        controller_moved(self.state, self._dirty, kind, key)

    def _on_told(self, kind: str, key: Key, _before: object, _after: object) -> None:
        self._dirty.controllers.add((kind, key))

    def _on_rule_on_pods(self, kind: str, key: Key, _before: object, _after: object) -> None:
        rules_on_pods_changed(self.state, self._dirty, key[1] if kind == "Namespace" else key[0])

    def _on_priority_class(self, _key: Key, _before: object, _after: object) -> None:
        reread_everything(self.state, self._dirty)

    def _note_changes(self, kind: str, key: Key, before: Object, after: Object, at: datetime) -> None:
        """What a person changed; what a controller owns is its controller's doing, and told there."""
        if kind == "Pod" or after.metadata.controller() is not None or self.state.policy.ignores(key[0]):
            return
        for found in changes_between(before, after):
            self._settling.changes.append(changed_object(kind, key, found, at, None, ""))


def _by_our_clock(event: Event) -> datetime | None:
    """When we came to know it; None for what tells only another machine's time."""
    if type(event) is GpusSampled:  # `isinstance` of a struct takes ten times as long where the answer is no
        return event.received_at or event.at
    return None if type(event) is XidSeen else event.at


def _keep(where: dict[str, dict[Key, Kept]], key: Key, obj: Kept | None) -> None:
    here = where.setdefault(key[0], {})
    if obj is not None:
        here[key] = obj
        return
    here.pop(key, None)
    if not here:
        del where[key[0]]
