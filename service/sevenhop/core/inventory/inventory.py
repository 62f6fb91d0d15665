"""What is true now of one cluster: observations go in, facts that changed come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

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
from sevenhop.core.inventory.changes import changed_object, changes_between
from sevenhop.core.inventory.contexts import context
from sevenhop.core.inventory.framework import FrameworkSpec
from sevenhop.core.inventory.marking import reread_workload, sight_changed
from sevenhop.core.inventory.news import is_same_but_status, is_same_version
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.order import Order
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.settling import Settling
from sevenhop.core.inventory.state import Dirty, State
from sevenhop.core.inventory.touching import Touching
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod
from sevenhop.core.subject import Subject, SubjectKind

_SEEN_BY: dict[SubjectKind, tuple[str, ...]] = {
    SubjectKind.NODE: ("Node",),
    SubjectKind.GPU: ("Node",),
    SubjectKind.POOL: ("Node", "Pod"),
    SubjectKind.SERVICE: ("Service", "Pod"),
    SubjectKind.SOURCE: (),  # we always know what we see
}
"""Kinds without which nothing can be said of a subject; of all others it is "Pod"."""


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
        self._touching = Touching(self.state, self._settling)
        self._now: datetime | None = None
        self._takers: dict[type[Event], Callable[[Any], None]] = {
            Applied: self._applied,
            Deleted: self._deleted,
            SourceChanged: self._source_changed,
            Unreadable: self._unreadable,
            GpusSampled: lambda event: self._touching.gpus_told(self.state.gpus.take_sample(event)),
            XidSeen: lambda event: self._touching.gpus_told(self.state.gpus.take_xid(event)),
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
        if at is not None:
            self._touching.at = at
            if self._now is None or at > self._now:
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
            self._touching.pod_status_changed(key, before, obj)
            return
        if before is not None:
            self._note_changes(kind, key, before, obj, event.at)
        self.state.objects.put(kind, obj)
        self._touching.moved(kind, key, before, obj)

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
        self._touching.moved(kind, key, before, None)

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
