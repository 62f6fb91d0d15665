"""Workloads and components in one pass of the inventory: which there are, and what is told of each."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import cast

from sevenhop.core.facts.schema import Facts
from sevenhop.core.inventory.capacity import Waiting
from sevenhop.core.inventory.fact_changes import FactChanges
from sevenhop.core.inventory.marking import reread_workload, rules_on_pods_changed
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.read_component import Read, read_component, sight
from sevenhop.core.inventory.read_workload import read_workload
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import Dirty, Slot, State, component_subject
from sevenhop.core.inventory.wakes import Wakes
from sevenhop.core.inventory.workloads import Workload
from sevenhop.core.subject import Subject, SubjectKind

_NO_PODS: dict[Key, PodRow] = {}
_NOBODY: dict[Slot, Waiting] = {}

_DONOR_FACTS = ("component.desired", "component.min", "component.ready", "tier", "product")
_SERVICE_FACTS = ("component.desired", "component.intended_zero", "component.rolling", "component.canary", "tier")


def discover(state: State, dirty: Dirty) -> None:
    """Whose every pod is now; components and pods of workloads that changed are dirty."""
    for key in state.discovery.settle():
        before, after = state.workloads.get(key), state.discovery.workloads.get(key)
        names = frozenset(part.name for part in after.components) if after is not None else frozenset[str]()
        known = state.slots_of.get(key, frozenset())
        for name in names | known:
            theirs = state.discovery.pods_of(key, name)
            mine = state.rows_of.get((key, name), _NO_PODS).keys()
            # Another root may mean another model of every pod.
            dirty.pods |= (theirs | mine) if before is not after else (theirs ^ mine)
            dirty.slots.add((key, name))
        dirty.workloads.add(key)
        if before is not after:
            # What lacks pods here may be found to be of it, or of another one.
            rules_on_pods_changed(state, dirty, key[0])
            _replace_workload(state, dirty, key, before, after)
            state.slots_of[key] = names
            if after is None:
                del state.slots_of[key]


def read_components(state: State, dirty: Dirty, wakes: Wakes, told: FactChanges, now: datetime) -> None:
    """Facts of dirty components, until none is dirty: the tier of one holds for all of its workload."""
    seen = sight(state)
    while dirty.slots:
        todo, dirty.slots = dirty.slots, set()
        for slot in sorted(todo):
            workload = state.workloads.get(slot[0])
            part = workload.component(slot[1]) if workload is not None else None
            if workload is None or part is None:
                _forget_component(state, dirty, wakes, told, slot)
                continue
            read = read_component(state, workload, part, seen, now)
            wakes.put(("slot", slot), read.wake)
            _take_component(state, dirty, told, slot, read)
            if state.tier_of.get(workload.key) is not read.tier:
                # It may come from the priority of one component's pods, and holds for all of them.
                state.tier_of[workload.key] = read.tier
                reread_workload(state, dirty, workload.key)
                dirty.services.update(k for k, other in state.service_of.items() if other == workload.key)


def read_workloads(state: State, dirty: Dirty, wakes: Wakes, told: FactChanges, now: datetime) -> None:
    """Facts of dirty workloads."""
    todo, dirty.workloads = dirty.workloads, set()
    for key in sorted(todo):
        workload = state.workloads.get(key)
        subject = Subject(SubjectKind.WORKLOAD, *key)
        if workload is None:
            state.last_change.pop(key, None)
            state.tier_of.pop(key, None)
            wakes.put(("workload", key), None)
            told.put(subject, None)
            continue
        facts, wake = read_workload(state, workload, now)
        wakes.put(("workload", key), wake)
        told.put(subject, facts)


def _replace_workload(state: State, dirty: Dirty, key: Key, before: Workload | None, after: Workload | None) -> None:
    here = state.workloads_in.setdefault(key[0], {})
    for root in before.roots if before is not None else ():
        if state.workload_of_root.get(root) == key:
            del state.workload_of_root[root]
    if after is None:
        state.workloads.pop(key, None)
        here.pop(key, None)
        if not here:
            del state.workloads_in[key[0]]
    else:
        state.workloads[key] = here[key] = after
        state.workload_of_root.update(dict.fromkeys(after.roots, key))
    if before is None or after is None or before.roots != after.roots or before.name != after.name:
        dirty.services.update(k for k in state.services.services if k[0] == key[0])


def _take_component(state: State, dirty: Dirty, told: FactChanges, slot: Slot, read: Read) -> None:
    subject = component_subject(slot)
    before = state.facts.get(subject, {})
    _queue(state, dirty, slot, read)
    labels = state.labels_of.get(slot)
    if labels is not read.labels and labels != read.labels:
        state.labels_of[slot] = read.labels
        dirty.pod_facts.update(state.rows_of.get(slot, ()))
    if not told.put(subject, read.facts):
        return
    if (before.get("component.ready") == 0) != (read.facts["component.ready"] == 0):
        dirty.workloads.add(slot[0])
    # What it could give matters where somebody waits; whose it is, always.
    matters = _DONOR_FACTS if state.waiting_in.get(read.pool) else ("tier",)
    if read.pool and _differ(before, read.facts, matters):
        dirty.pools.add(read.pool)
    if _differ(before, read.facts, _SERVICE_FACTS):
        dirty.services.update(k for k, workload in state.service_of.items() if workload == slot[0])


def _queue(state: State, dirty: Dirty, slot: Slot, read: Read | None) -> None:
    before = state.pool_of.get(slot, "")
    after = read.pool if read is not None else ""
    queue = read.queue if read is not None else None
    if before == after and queue is None and slot not in state.waiting_in.get(after, _NOBODY):
        return  # as nearly always
    for name in {before, after} - {""}:
        here = state.waiting_in.setdefault(name, {})
        entry = queue if name == after else None
        if here.get(slot) != entry:
            dirty.pools.add(name)
        if entry is None:
            here.pop(slot, None)
        else:
            here[slot] = entry
        if not here:
            del state.waiting_in[name]
    if after:
        state.pool_of[slot] = after
    else:
        state.pool_of.pop(slot, None)


def _forget_component(state: State, dirty: Dirty, wakes: Wakes, told: FactChanges, slot: Slot) -> None:
    _queue(state, dirty, slot, None)
    if slot in state.spells:
        state.changed_histories.add(("spells", "/".join((*slot[0], slot[1]))))
    for kept in (state.labels_of, state.labelled, state.spells, state.priority_of):
        cast("dict[Slot, object]", kept).pop(slot, None)
    wakes.put(("slot", slot), None)
    told.put(component_subject(slot), None)


def _differ(before: Facts, after: Facts, names: Iterable[str]) -> bool:
    return any(before.get(name) != after.get(name) for name in names)
