"""One pass over what is dirty, from pods up to pools: each step once, and nothing is read too early."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, cast

from msgspec.structs import replace

from sevenhop.core.events import SyncState
from sevenhop.core.facts import pod as pod_facts
from sevenhop.core.facts import source as source_facts
from sevenhop.core.facts.labels import labels, of_pod
from sevenhop.core.facts.schema import Facts, Unknown
from sevenhop.core.inventory.blocked import TOLD_KINDS, lacks, read_refused, read_said
from sevenhop.core.inventory.capacity import Change
from sevenhop.core.inventory.gpu_agent import AGENT
from sevenhop.core.inventory.gpu_blame import waits_for_bad
from sevenhop.core.inventory.gpu_settling import judge_gpus, skew_of, tell_gpus, usage_of
from sevenhop.core.inventory.ledger import hold_of
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.pools import read_pool
from sevenhop.core.inventory.read_component import Read, read_component
from sevenhop.core.inventory.read_node import read_node
from sevenhop.core.inventory.read_pod import read_pod
from sevenhop.core.inventory.read_service import SLICES, comes_up, read_service
from sevenhop.core.inventory.read_workload import read_workload
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import Dirty, Slot, State, component_subject
from sevenhop.core.inventory.wakes import Wakes
from sevenhop.core.inventory.workloads import Workload
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.devices import SLICES as DEVICE_SLICES
from sevenhop.core.subject import Subject, SubjectKind

_NO_PODS: dict[Key, PodRow] = {}

_DONOR_FACTS = ("component.desired", "component.min", "component.ready", "tier", "product")
_SERVICE_FACTS = ("component.desired", "component.intended_zero", "component.rolling", "component.canary", "tier")


class Settling:
    """
    Attributes:
        dirty: What has to be looked at.
        gpus_gone: GPUs that are no more, and have not been told so.
        changes: What people changed since the last pass; who it concerns is not known before discovery settled.
        expected: Subjects that the store remembers and that have not been seen yet.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._wakes = Wakes()
        self._tell: set[Key] = set()
        self._agents: set[str] = set()
        self._changed: dict[Subject, Facts] = {}
        self._gone: set[Subject] = set()
        self.dirty = Dirty()
        self.gpus_gone: set[Subject] = set()
        self.changes: list[Change] = []
        self.expected: set[Subject] = set()
        self._missed = False

    @property
    def next_wake(self) -> datetime | None:
        return min((at for at in (self._wakes.next(), self._state.pending.due_at()) if at is not None), default=None)

    def run(self, now: datetime) -> tuple[dict[Subject, Facts], set[Subject]]:
        """
        Returns:
            Subjects whose facts changed, with all of them; and those that are gone.
        """
        self._changed, self._gone = {}, set()
        self._wake(now)
        self._judge_gpus(now)
        self._discover()
        self._read_pods(now)
        self._judge(now)
        self._read_controllers()
        self._attribute_changes(now)
        self._read_nodes()
        self._read_components(now)
        self._read_workloads(now)
        self._read_services()
        self._tell_pods(now)
        self._tell_gpus()
        self._read_pools(now)
        self._read_sources()
        self._miss_expected()
        return self._changed, self._gone - self._changed.keys()

    # What marks as dirty

    def sight_changed(self, kind: str) -> None:
        """A kind can be seen now, or no longer: what is derived from it becomes known, or unknown."""
        if kind == "Event":
            self.dirty.pools |= self._pools()
            return
        self.reread_everything()
        if kind in ("Pod", "Node", DEVICE_SLICES):
            self.dirty.nodes.update(name for _, name in self._state.objects.nodes())
        if kind in ("Pod", SLICES):
            self._tell.update(self._state.rows)

    def reread_everything(self) -> None:
        """Every component and what depends on it; pods and nodes only as far as their own facts then change."""
        for workload in self._state.workloads.values():
            self.reread_workload(workload.key)
        self.dirty.services.update(self._state.services.services)
        self.dirty.pools |= self._pools()
        self.rules_on_pods_changed("")

    def reread_workload(self, key: Key) -> None:
        self.dirty.workloads.add(key)
        self.dirty.slots.update((key, name) for name in self._state.slots_of.get(key, ()))

    def dirty_slots_in(self, namespace: str) -> None:
        for key in self._state.workloads_in.get(namespace, ()):
            self.reread_workload(key)

    def controller_moved(self, kind: str, key: Key) -> None:
        """A controller's spec or status changed: a rollout may have begun or ended, pods may have been refused."""
        self.dirty.controllers.add((kind, key))
        self.dirty.slots |= self._state.families.get((key[0], f"{kind}/{key[1]}"), set())

    def rules_on_pods_changed(self, namespace: str) -> None:
        """What may forbid a pod of this namespace changed; of every namespace, if it is empty."""
        spaces = [namespace] if namespace else list(self._state.lacking)
        for space in spaces:
            self.dirty.controllers |= self._state.lacking.get(space, set())

    def pod_came_or_went(self, pod: Pod) -> None:
        """A controller that lacked pods may lack one less now, or one more."""
        owner = pod.metadata.controller()
        found = self._state.objects.by_uid(owner.uid) if owner is not None and self._state.lacking else None
        if found is not None:
            where = (found[0], found[1].metadata.key)
            if where in self._state.lacking.get(pod.metadata.namespace, ()):
                self.dirty.controllers.add(where)

    def _pools(self) -> set[str]:
        return {*self._state.ledger.pools(), *self._state.waiting_in}

    # The steps of `run`, in order

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
        self._agents |= nodes
        self.dirty.pods |= pods
        self._tell |= pods

    def _tell_gpus(self) -> None:
        todo, self._agents = self._agents, set()
        for subject in self.gpus_gone:
            self._say(subject, None)
        self.gpus_gone = set()
        for subject, facts in tell_gpus(self._state, todo):
            self._say(subject, facts)

    def _discover(self) -> None:
        state = self._state
        for key in state.discovery.settle():
            before, after = state.workloads.get(key), state.discovery.workloads.get(key)
            names = frozenset(part.name for part in after.components) if after is not None else frozenset[str]()
            known = state.slots_of.get(key, frozenset())
            for name in names | known:
                theirs = state.discovery.pods_of(key, name)
                mine = state.rows_of.get((key, name), _NO_PODS).keys()
                # Another root may mean another model of every pod.
                self.dirty.pods |= (theirs | mine) if before is not after else (theirs ^ mine)
                self.dirty.slots.add((key, name))
            self.dirty.workloads.add(key)
            if before is not after:
                # What lacks pods here may be found to be of it, or of another one.
                self.rules_on_pods_changed(key[0])
                self._replace_workload(key, before, after)
                state.slots_of[key] = names
                if after is None:
                    del state.slots_of[key]

    def _replace_workload(self, key: Key, before: Workload | None, after: Workload | None) -> None:
        state = self._state
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
            self.dirty.services.update(k for k in state.services.services if k[0] == key[0])

    def _read_pods(self, now: datetime) -> None:
        state = self._state
        pods, todo = state.objects.pods(), self.dirty.pods
        self.dirty.pods = set()
        for key in sorted(todo) if len(todo) > 1 else todo:
            pod, membership = pods.get(key), state.discovery.membership(key)
            if pod is None:
                self._hold(key, None, None)
                self._forget_pod(key)
                continue
            if membership is None:
                self._hold(key, pod, None)
                self._forget_pod(key)
                continue
            self._hold(key, pod, (membership.workload, membership.component))
            if pod.spec.node_name or pod.is_finished or pod.is_terminating:
                state.pending.forget(key)
            else:
                state.pending.watch(key)
            row, wake = read_pod(state, key, pod, membership, now)
            self._wakes.put(("pod", key), wake)
            self._put_row(key, row)

    def _hold(self, key: Key, pod: Pod | None, slot: Slot | None) -> None:
        ledger = self._state.ledger
        before = ledger.hold(key)
        after = None
        if pod is not None:
            claimed = self._state.devices.held(pod)
            after = hold_of(pod, *(slot if slot is not None else (None, "")), claimed=claimed)
        if before == after:
            return
        ledger.put_pod(key, after)
        self.dirty.nodes.update(hold.node for hold in (before, after) if hold is not None)

    def _forget_pod(self, key: Key) -> None:
        state = self._state
        if key not in state.rows:
            return
        state.pending.forget(key)
        self._wakes.put(("pod", key), None)
        self._put_row(key, None)

    def _put_row(self, key: Key, row: PodRow | None) -> None:
        state = self._state
        before = state.rows.get(key)
        if before == row:
            return
        self._tell.add(key)
        for old in (before,) if before is not None else ():
            slot = (old.workload, old.component)
            here = state.rows_of[slot]
            here.pop(key, None)
            if not here:
                del state.rows_of[slot]
            self.dirty.slots.add(slot)
            self._leave_family(old, slot)
        if row is None:
            del state.rows[key]
        else:
            slot = (row.workload, row.component)
            state.rows[key] = row
            state.rows_of.setdefault(slot, {})[key] = row
            self.dirty.slots.add(slot)
            if row.family:
                state.families.setdefault((key[0], row.family), set()).add(slot)
        self._row_moved(key, before, row)
        if waits_for_bad(row) is not (key in state.waits_for_bad):
            (state.waits_for_bad.discard if key in state.waits_for_bad else state.waits_for_bad.add)(key)
            self._agents |= state.bad_gpu_nodes

    def _leave_family(self, row: PodRow, slot: Slot) -> None:
        # Kept while the component has pods: which of its controllers made the last one matters to nobody.
        families = self._state.families
        name = (row.key[0], row.family)
        if slot not in self._state.rows_of and name in families:
            families[name].discard(slot)
            if not families[name]:
                del families[name]

    def _row_moved(self, key: Key, before: PodRow | None, after: PodRow | None) -> None:
        state = self._state
        if (
            before is None
            or after is None
            or (before.node, before.live, before.waiting, before.unreadable)
            != (after.node, after.live, after.waiting, after.unreadable)
        ):
            self.dirty.workloads.update(row.workload for row in (before, after) if row is not None)
        if (
            before is None
            or after is None
            or (before.ready, before.live, before.version, before.phase)
            != (after.ready, after.live, after.version, after.phase)
            or comes_up(before) is not comes_up(after)
        ):
            self.dirty.services |= state.services.of_pod(key)
        self._note_failing(key, before, after)

    def _note_failing(self, key: Key, before: PodRow | None, after: PodRow | None) -> None:
        """Whether loads fail on one node only depends on all pods of the component, wherever they are."""
        failing = self._state.failing
        for row in (before, after):
            if row is None:
                continue
            slot = (row.workload, row.component)
            here = failing.get(slot)
            if row.failure is not None and row.node:
                self.dirty.nodes.add(row.node)
                here = here if here is not None else failing.setdefault(slot, {})
                here[key] = row.node
            if not here:
                continue
            if row is before or row.failure is None:
                here.pop(key, None)
            self.dirty.nodes.update(here.values())
            if not here:
                del failing[slot]

    def _judge(self, now: datetime) -> None:
        state = self._state
        for key in state.pending.run(now):
            row = state.rows.get(key)
            if row is not None and not row.node:
                self._put_row(key, replace(row, pending=state.pending.verdict(key)))

    def _read_controllers(self) -> None:
        todo, self.dirty.controllers = self.dirty.controllers, set()
        for kind, key in sorted(todo):
            if kind in TOLD_KINDS:
                self._read_said(kind, key)
            else:
                self._read_refused(kind, key)

    def _read_refused(self, kind: str, key: Key) -> None:
        state = self._state
        self._note_lacking(kind, key, is_lacking=lacks(state, kind, key))
        before = state.refused.get((kind, key))
        after = read_refused(state, kind, key)
        if before == after:
            return
        if after is None:
            del state.refused[(kind, key)]
        else:
            state.refused[(kind, key)] = after
        self.dirty.slots.update(found[0] for found in (before, after) if found is not None)

    def _read_said(self, kind: str, key: Key) -> None:
        state = self._state
        before = state.said.get((kind, key))
        after = read_said(state, kind, key)
        self._note_lacking(kind, key, is_lacking=after is not None)
        if before == after:
            return
        if before is not None:
            del state.said[(kind, key)]
            if before.workload is not None:
                here = state.told[before.workload]
                here.discard((kind, key))
                if not here:
                    del state.told[before.workload]
        if after is not None:
            state.said[(kind, key)] = after
            if after.workload is not None:
                state.told.setdefault(after.workload, set()).add((kind, key))
        for said in (before, after):
            if said is not None and said.workload is not None:
                self.reread_workload(said.workload)

    def _note_lacking(self, kind: str, key: Key, *, is_lacking: bool) -> None:
        here = self._state.lacking.setdefault(key[0], set())
        (here.add if is_lacking else here.discard)((kind, key))
        if not here:
            del self._state.lacking[key[0]]

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

    def _read_nodes(self) -> None:
        todo, self.dirty.nodes = self.dirty.nodes, set()
        for name in sorted(todo):
            if not name:
                continue
            facts = read_node(self._state, name)
            self._say(Subject(SubjectKind.NODE, "", name), facts)
            self._note_short(name, facts)
        ledger = self._state.ledger
        self.dirty.pools |= ledger.dirty
        ledger.dirty = set()
        if ledger.reshaped:
            ledger.reshaped = False
            self.dirty.slots.update(self._state.pool_of)

    def _note_short(self, name: str, facts: Facts | None) -> None:
        has, expected = ((facts or {}).get(f"node.gpu.{word}") for word in ("allocatable", "expected"))
        if isinstance(has, int) and isinstance(expected, int) and has < expected:
            self._state.short_of_gpus[name] = (has, expected)
        else:
            self._state.short_of_gpus.pop(name, None)

    def _read_components(self, now: datetime) -> None:
        state = self._state
        while self.dirty.slots:
            todo, self.dirty.slots = self.dirty.slots, set()
            for slot in sorted(todo):
                workload = state.workloads.get(slot[0])
                part = workload.component(slot[1]) if workload is not None else None
                if workload is None or part is None:
                    self._forget_component(slot)
                    continue
                read = read_component(state, workload, part, now)
                self._wakes.put(("slot", slot), read.wake)
                self._take_component(slot, read)
                tier = state.tier(workload)
                if state.tier_of.get(workload.key) is not tier:
                    # It may come from the priority of one component's pods, and holds for all of them.
                    state.tier_of[workload.key] = tier
                    self.reread_workload(workload.key)
                    self.dirty.services.update(k for k, other in state.service_of.items() if other == workload.key)

    def _take_component(self, slot: Slot, read: Read) -> None:
        state = self._state
        subject = component_subject(slot)
        before = state.facts.get(subject, {})
        self._queue(slot, read)
        if state.labels_of.get(slot) != read.labels:
            state.labels_of[slot] = read.labels
            self._tell.update(state.rows_of.get(slot, ()))
        if not self._say(subject, read.facts):
            return
        if (before.get("component.ready") == 0) != (read.facts["component.ready"] == 0):
            self.dirty.workloads.add(slot[0])
        # What it could give matters where somebody waits; whose it is, always.
        matters = _DONOR_FACTS if state.waiting_in.get(read.pool) else ("tier",)
        if read.pool and _differ(before, read.facts, matters):
            self.dirty.pools.add(read.pool)
        if _differ(before, read.facts, _SERVICE_FACTS):
            self.dirty.services.update(k for k, workload in state.service_of.items() if workload == slot[0])

    def _queue(self, slot: Slot, read: Read | None) -> None:
        state = self._state
        before = state.pool_of.get(slot, "")
        after = read.pool if read is not None else ""
        queue = read.queue if read is not None else None
        for name in {before, after} - {""}:
            here = state.waiting_in.setdefault(name, {})
            entry = queue if name == after else None
            if here.get(slot) != entry:
                self.dirty.pools.add(name)
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

    def _forget_component(self, slot: Slot) -> None:
        state = self._state
        self._queue(slot, None)
        if slot in state.spells:
            state.changed_histories.add(("spells", "/".join((*slot[0], slot[1]))))
        for kept in (state.labels_of, state.spells, state.priority_of):
            cast("dict[Slot, object]", kept).pop(slot, None)
        self._wakes.put(("slot", slot), None)
        self._say(component_subject(slot), None)

    def _read_workloads(self, now: datetime) -> None:
        todo, self.dirty.workloads = self.dirty.workloads, set()
        for key in sorted(todo):
            workload = self._state.workloads.get(key)
            subject = Subject(SubjectKind.WORKLOAD, *key)
            if workload is None:
                self._state.last_change.pop(key, None)
                self._state.tier_of.pop(key, None)
                self._wakes.put(("workload", key), None)
                self._say(subject, None)
                continue
            facts, wake = read_workload(self._state, workload, now)
            self._wakes.put(("workload", key), wake)
            self._say(subject, facts)

    def _read_services(self) -> None:
        state = self._state
        todo, self.dirty.services = self.dirty.services, set()
        for key in sorted(todo):
            facts = read_service(state, key)
            self._say(Subject(SubjectKind.SERVICE, *key), facts)
            listed = frozenset(state.services.ready_pods(key)) if facts is not None else frozenset[Key]()
            self._tell.update(pod for pod in listed ^ state.listed_ready.get(key, frozenset()) if pod in state.rows)
            if facts is None:
                state.listed_ready.pop(key, None)
                state.service_of.pop(key, None)
                self._forget_served(key)
            else:
                state.listed_ready[key] = listed
                state.service_of[key] = (key[0], str(facts["workload"]))

    def _forget_served(self, key: Key) -> None:
        if self._state.services.services.get(key) is None and self._state.served.pop(key, False):
            self._state.changed_histories.add(("served", "/".join(key)))

    def tell_pods(self, pods: Iterable[Key]) -> None:
        """What is told of these pods may have changed, though not the pods."""
        self._tell.update(pods)

    def _tell_pods(self, now: datetime) -> None:
        state = self._state
        todo, self._tell = self._tell, set()
        slices_unknown, pods_unknown = state.gate(SLICES), state.gate("Pod")
        for key in todo:
            subject = Subject(SubjectKind.POD, *key)
            row = state.rows.get(key)
            self._agents.update(node for node, _ in state.gpus.on_pod.get(key, ()))
            of_component = state.labels_of.get((row.workload, row.component)) if row is not None else None
            if row is None or of_component is None:
                self._say(subject, None)
                continue
            services = state.services.of_pod(key)
            listed: bool | Unknown = any(key in state.listed_ready.get(name, ()) for name in services)
            unknown = pods_unknown or state.unreadable_gate("Pod", key)
            usage = usage_of(state, key, row.node, now)
            own = pod_facts.derive(row, in_endpoints=slices_unknown or listed, pods_unknown=unknown, usage=usage)
            version = row.version.partition(" ")[0] if " " in row.version else ""
            own.update(of_pod(of_component, key[1], node=row.node, model_version=version))
            self._say(subject, own)

    def _read_pools(self, now: datetime) -> None:
        todo, self.dirty.pools = self.dirty.pools | self._state.ledger.dirty, set()
        self._state.ledger.dirty = set()
        for name in sorted(todo):
            self._state.capacities.pop(name, None)
            exists = name in self._state.ledger.pools() or name in self._state.waiting_in
            bad_ratio, wake = self._state.gpu_watch.ratio(name, now)
            self._wakes.put(("pool", name), wake if exists else None)
            self._say(Subject(SubjectKind.POOL, "", name), read_pool(self._state, name, bad_ratio) if exists else None)

    def _read_sources(self) -> None:
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
            self._say(Subject(SubjectKind.SOURCE, "", kind), {**labels(state.cluster), **own})

    def _miss_expected(self) -> None:
        """Once everything was listed: what the store remembers and is not there went away while nobody looked."""
        state = self._state
        if self._missed or not self._everything_listed():
            return
        self._missed = True
        self._gone |= {subject for subject in self.expected if subject not in state.facts}
        self.expected = set()
        pods, nodes = state.objects.pods(), state.objects.nodes()
        for table, kept, known in (
            ("restarts", state.restarts, lambda key: key in pods),
            ("seen_gpus", state.seen_gpus, lambda name: ("", name) in nodes),
            ("spells", state.spells, lambda slot: slot[1] in state.slots_of.get(slot[0], ())),
            ("served", state.served, lambda key: key in state.services.services),
        ):
            self._prune(table, cast("dict[Any, object]", kept), known)
        self.dirty.agents |= {name for name in state.gpus.agents if ("", name) not in nodes}
        namespaces = tuple(f"{namespace}/" for namespace in state.workloads_in)
        self._prune("loads", cast("dict[Any, object]", state.loads), lambda release: release.startswith(namespaces))

    def _prune(self, table: str, kept: dict[Any, object], is_known: Callable[[Any], bool]) -> None:
        for key in [key for key in kept if not is_known(key)]:
            del kept[key]
            flat = key if isinstance(key, str) else "/".join(_flat(key))
            self._state.changed_histories.add((table, flat))

    def _everything_listed(self) -> bool:
        states = self._state.objects.states
        blind = (SyncState.NOT_SYNCED, SyncState.STALE)
        return all(
            states[name] is SyncState.SYNCED if kind.essential else states[name] not in blind
            for name, kind in KINDS.items()
        )

    def _say(self, subject: Subject, facts: Facts | None) -> bool:
        """Tell what differs from what was told; returns whether anything did."""
        before = self._state.facts.get(subject)
        if before == facts:
            return False
        if facts is None:
            del self._state.facts[subject]
            self._changed.pop(subject, None)
            self._gone.add(subject)
        else:
            self._state.facts[subject] = facts
            self._changed[subject] = facts
        return True


def _differ(before: Facts, after: Facts, names: Iterable[str]) -> bool:
    return any(before.get(name) != after.get(name) for name in names)


def _flat(key: object) -> Iterable[str]:
    if isinstance(key, tuple):
        for part in key:
            yield from _flat(part)
    else:
        yield str(key)
