"""
One pass over what is dirty, from pods up to pools: each step once, and nothing is read too early.

The steps that take more than a few lines stand in files of their own, `settle_pods` and its neighbours.
"""

from __future__ import annotations

from datetime import datetime
from typing import cast

from msgspec.structs import replace

from sevenhop.core.events import SyncState
from sevenhop.core.facts import source as source_facts
from sevenhop.core.facts.labels import labels
from sevenhop.core.facts.schema import Facts
from sevenhop.core.inventory.capacity import Change
from sevenhop.core.inventory.fact_changes import FactChanges
from sevenhop.core.inventory.gone_meanwhile import everything_listed, forget_gone
from sevenhop.core.inventory.gpu_agent import AGENT
from sevenhop.core.inventory.gpu_settling import judge_gpus, skew_of, tell_gpus
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.pools import read_pool
from sevenhop.core.inventory.read_node import read_node
from sevenhop.core.inventory.settle_controllers import read_controllers
from sevenhop.core.inventory.settle_pods import judge_pending, read_pods, tell_pods
from sevenhop.core.inventory.settle_services import read_services
from sevenhop.core.inventory.settle_workloads import discover, read_components, read_workloads
from sevenhop.core.inventory.state import Dirty, Slot, State
from sevenhop.core.inventory.wakes import Wakes
from sevenhop.core.subject import Subject, SubjectKind


class Settling:
    """
    Attributes:
        dirty: What has to be looked at.
        gpus_gone: GPUs that are no more, and have not been told so.
        changes: What people changed since the last pass; who it concerns is not known before discovery settled.
        expected: Subjects that the store remembers and that have not been seen yet.
    """

    def __init__(self, state: State, dirty: Dirty) -> None:
        self._state = state
        self._wakes = Wakes()
        self.dirty = dirty
        self.gpus_gone: set[Subject] = set()
        self.changes: list[Change] = []
        self.expected: set[Subject] = set()
        self._was_listed = False

    @property
    def next_wake(self) -> datetime | None:
        return min((at for at in (self._wakes.next(), self._state.pending.due_at()) if at is not None), default=None)

    def run(self, now: datetime) -> tuple[dict[Subject, Facts], set[Subject]]:
        """
        Returns:
            Subjects whose facts changed, with all of them; and those that are gone.
        """
        state, dirty, wakes = self._state, self.dirty, self._wakes
        told = FactChanges(state.facts)
        self._wake(now)
        self._judge_gpus(now)
        discover(state, dirty)
        read_pods(state, dirty, wakes, now)
        judge_pending(state, dirty, now)
        read_controllers(state, dirty)
        self._attribute_changes(now)
        self._read_nodes(told)
        read_components(state, dirty, wakes, told, now)
        read_workloads(state, dirty, wakes, told, now)
        read_services(state, dirty, told)
        tell_pods(state, dirty, told, now)
        self._tell_gpus(told)
        self._read_pools(told, now)
        self._read_sources(told)
        gone = self._gone_meanwhile()
        return told.changed, (told.gone | gone) - told.changed.keys()

    # The short steps of `run`, in order

    def _wake(self, now: datetime) -> None:
        for what in self._wakes.due(now):
            kind, key = cast("tuple[str, Key | Slot]", what)
            if kind == "pod":
                self.dirty.pods.add(cast("Key", key))
            elif kind == "slot":
                self.dirty.slots.add(cast("Slot", key))
            elif kind == "agent":
                self.dirty.agents.add(cast("str", key))
            elif kind == "pool":
                self.dirty.pools.add(cast("str", key))
            else:
                self.dirty.workloads.add(cast("Key", key))

    def _judge_gpus(self, now: datetime) -> None:
        """Before anything else: why a pod fails or waits may be its GPU."""
        nodes, pods = judge_gpus(self._state, self.dirty, self._wakes, now)
        self.dirty.gpu_facts |= nodes
        self.dirty.pods |= pods
        self.dirty.pod_facts |= pods

    def _attribute_changes(self, now: datetime) -> None:
        state = self._state
        changes, self.changes = self.changes, []
        for change in changes:
            owner = state.workload_of_root.get((change.kind, (change.namespace, change.name)))
            state.changes.add(replace(change, workload=owner))
            if owner is not None:
                state.last_change[owner] = max(change.at, state.last_change.get(owner, change.at))
                self.dirty.workloads.add(owner)
        state.changes.forget_before(now)

    def _read_nodes(self, told: FactChanges) -> None:
        todo, self.dirty.nodes = self.dirty.nodes, set()
        for name in sorted(todo):
            if not name:
                continue
            facts = read_node(self._state, name)
            told.put(Subject(SubjectKind.NODE, "", name), facts)
            self._note_short(name, facts)
        ledger = self._state.ledger
        self.dirty.pools |= ledger.dirty
        ledger.dirty = set()
        if ledger.reshaped:
            self.dirty.slots.update(self._state.pool_of)
        elif ledger.resized:
            # Where a component runs, it stays; which of several pools it waits for, their sizes decide.
            self.dirty.slots.update(slot for slot, pool in self._state.pool_of.items() if not self._runs_in(slot, pool))
        ledger.reshaped = ledger.resized = False

    def _runs_in(self, slot: Slot, pool: str) -> bool:
        return any(self._state.ledger.pool_of_pod(pod) == pool for pod in self._state.rows_of.get(slot, ()))

    def _note_short(self, name: str, facts: Facts | None) -> None:
        has, expected = ((facts or {}).get(f"node.gpu.{word}") for word in ("allocatable", "expected"))
        if isinstance(has, int) and isinstance(expected, int) and has < expected:
            self._state.short_of_gpus[name] = (has, expected)
        else:
            self._state.short_of_gpus.pop(name, None)

    def _tell_gpus(self, told: FactChanges) -> None:
        todo, self.dirty.gpu_facts = self.dirty.gpu_facts, set()
        for subject in self.gpus_gone:
            told.put(subject, None)
        self.gpus_gone = set()
        for subject, facts in tell_gpus(self._state, todo):
            told.put(subject, facts)

    def _read_pools(self, told: FactChanges, now: datetime) -> None:
        todo, self.dirty.pools = self.dirty.pools | self._state.ledger.dirty, set()
        self._state.ledger.dirty = set()
        for name in sorted(todo):
            self._state.capacities.pop(name, None)
            exists = name in self._state.ledger.pools() or name in self._state.waiting_in
            bad_ratio, wake = self._state.gpu_watch.ratio(name, now)
            self._wakes.put(("pool", name), wake if exists else None)
            told.put(Subject(SubjectKind.POOL, "", name), read_pool(self._state, name, bad_ratio) if exists else None)

    def _read_sources(self, told: FactChanges) -> None:
        state = self._state
        todo, self.dirty.sources = self.dirty.sources, set()
        for kind in sorted(todo):
            own = source_facts.derive(
                kind,
                state.objects.states.get(kind, SyncState.NOT_SYNCED),
                detail=state.objects.details.get(kind, ""),
                unreadable=len(state.unreadable.get(kind, ())),
                rules_broken=state.rules_broken,
                **({"clock_skew_s": skew_of(state)} if kind == AGENT and state.gpus.agents else {}),
            )
            told.put(Subject(SubjectKind.SOURCE, "", kind), {**labels(state.cluster), **own})

    def _gone_meanwhile(self) -> set[Subject]:
        """Once everything was listed: what the store remembers and is not there went away while nobody looked."""
        if self._was_listed or not everything_listed(self._state):
            return set()
        self._was_listed = True
        gone = {subject for subject in self.expected if subject not in self._state.facts}
        self.expected = set()
        forget_gone(self._state, self.dirty)
        return gone
