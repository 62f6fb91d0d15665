"""Pods in one pass of the inventory: what each holds, whose it is, why it waits, and what is told of it."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from sevenhop.core.facts import pod as pod_facts
from sevenhop.core.facts.labels import of_pod
from sevenhop.core.facts.schema import Unknown
from sevenhop.core.inventory.fact_changes import FactChanges
from sevenhop.core.inventory.gpu_blame import waits_for_bad
from sevenhop.core.inventory.gpu_settling import usage_of
from sevenhop.core.inventory.holds import hold_of
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.pools_waiting import may_wait_by_claim
from sevenhop.core.inventory.read_pod import read_pod
from sevenhop.core.inventory.read_service import SLICES, comes_up
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import Dirty, Slot, State
from sevenhop.core.inventory.wakes import Wakes
from sevenhop.core.objects.pod import Pod
from sevenhop.core.subject import Subject, SubjectKind


def read_pods(state: State, dirty: Dirty, wakes: Wakes, now: datetime) -> None:
    """Rows and holds of dirty pods, as they are now."""
    pods, todo = state.objects.pods(), dirty.pods
    dirty.pods = set()
    for key in sorted(todo) if len(todo) > 1 else todo:
        pod, membership = pods.get(key), state.discovery.membership(key)
        if pod is None or membership is None:
            _hold(state, dirty, key, pod, None)
            _forget_pod(state, dirty, wakes, key)
            continue
        _hold(state, dirty, key, pod, (membership.workload, membership.component))
        if pod.spec.node_name or pod.is_finished or pod.is_terminating:
            state.pending.forget(key)
        else:
            state.pending.watch(key)
        row, wake = read_pod(state, key, pod, state.shape(key, pod), membership, now)
        wakes.put(("pod", key), wake)
        _put_row(state, dirty, key, row)


def judge_pending(state: State, dirty: Dirty, now: datetime) -> None:
    """Why pods wait whose verdict is due."""
    for key in state.pending.run(now):
        row = state.rows.get(key)
        if row is not None and not row.node:
            _put_row(state, dirty, key, replace(row, pending=state.pending.verdict(key)))
    for key in state.pending.looked_at:
        row = state.rows.get(key)
        if row is not None and may_wait_by_claim(row):
            # What its claims could get, and in which pool, may be another thing though the verdict is the same.
            dirty.slots.add((row.workload, row.component))


def tell_pods(state: State, dirty: Dirty, told: FactChanges, now: datetime) -> None:
    """Facts of pods whose row, or what is told beside it, changed."""
    dirty.pod_facts |= state.stragglers.settle(state.rows, state.gpus, dirty.pod_facts, now)
    todo, dirty.pod_facts = dirty.pod_facts, set()
    slices_unknown, pods_unknown = state.gate(SLICES), state.gate("Pod")
    for key in todo:
        subject = Subject(SubjectKind.POD, *key)
        row = state.rows.get(key)
        dirty.gpu_facts.update(node for node, _ in state.gpus.on_pod.get(key, ()))
        of_component = state.labels_of.get((row.workload, row.component)) if row is not None else None
        if row is None or of_component is None:
            told.put(subject, None)
            continue
        services = state.services.of_pod(key)
        listed: bool | Unknown = any(key in state.listed_ready.get(name, ()) for name in services)
        unknown = pods_unknown or state.unreadable_gate("Pod", key)
        usage = usage_of(state, key, row.node, now)
        own = pod_facts.derive(
            row,
            in_endpoints=slices_unknown or listed,
            pods_unknown=unknown,
            usage=usage,
            straggler=state.stragglers.told.get(key, False),
        )
        version = row.version.partition(" ")[0] if " " in row.version else ""
        own.update(of_pod(of_component, key[1], node=row.node, model_version=version))
        told.put(subject, own)


def _hold(state: State, dirty: Dirty, key: Key, pod: Pod | None, slot: Slot | None) -> None:
    ledger = state.ledger
    before = ledger.hold(key)
    after = None
    if pod is not None:
        claimed = state.devices.held(pod)
        if slot is None:
            after = hold_of(pod, None, "", claimed=claimed)
        else:
            after = hold_of(pod, *slot, claimed=claimed, asked=state.shape(key, pod).gpus)
    if before == after:
        return
    ledger.put_pod(key, after)
    dirty.nodes.update(hold.node for hold in (before, after) if hold is not None)
    if slot is not None:
        dirty.slots.add(slot)  # a claim that comes after its pod says in which pool the component is


def _forget_pod(state: State, dirty: Dirty, wakes: Wakes, key: Key) -> None:
    if key not in state.rows:
        return
    state.pending.forget(key)
    wakes.put(("pod", key), None)
    _put_row(state, dirty, key, None)


def _put_row(state: State, dirty: Dirty, key: Key, row: PodRow | None) -> None:
    before = state.rows.get(key)
    if before == row:
        return
    dirty.pod_facts.add(key)
    stays = before is not None and row is not None and _is_made_alike(before, row)
    if before is not None and not stays:
        slot = (before.workload, before.component)
        here = state.rows_of[slot]
        here.pop(key, None)
        if not here:
            del state.rows_of[slot]
        dirty.slots.add(slot)
        _leave_family(state, before, slot)
    if row is None:
        del state.rows[key]
    else:
        slot = (row.workload, row.component)
        state.rows[key] = row
        state.rows_of.setdefault(slot, {})[key] = row
        dirty.slots.add(slot)
        if row.family and not stays:
            state.families.setdefault((key[0], row.family), set()).add(slot)
    _row_moved(state, dirty, key, before, row)
    if waits_for_bad(row) is not (key in state.waits_for_bad):
        (state.waits_for_bad.discard if key in state.waits_for_bad else state.waits_for_bad.add)(key)
        dirty.gpu_facts |= state.bad_gpu_nodes


def _is_made_alike(before: PodRow, after: PodRow) -> bool:
    """Whether a pod stays in its component, and its controller's pod."""
    return before.workload == after.workload and before.component == after.component and before.family == after.family


def _leave_family(state: State, row: PodRow, slot: Slot) -> None:
    # Kept while the component has pods: which of its controllers made the last one matters to nobody.
    families = state.families
    name = (row.key[0], row.family)
    if slot not in state.rows_of and name in families:
        families[name].discard(slot)
        if not families[name]:
            del families[name]


def _row_moved(state: State, dirty: Dirty, key: Key, before: PodRow | None, after: PodRow | None) -> None:
    if before is None or after is None or _counts_for_its_workload(before) != _counts_for_its_workload(after):
        dirty.workloads.update(row.workload for row in (before, after) if row is not None)
    if (
        before is None
        or after is None
        or (before.ready, before.live, before.version, before.phase)
        != (after.ready, after.live, after.version, after.phase)
        or comes_up(before) is not comes_up(after)
    ):
        dirty.services |= state.services.of_pod(key)
    _note_failing(state, dirty, key, before, after)


def _counts_for_its_workload(row: PodRow) -> tuple[object, ...]:
    """What facts of the workload read of a pod: with whom it works together, and whether it waits."""
    return row.workload, row.component, row.group, row.gang, row.node, row.live, row.waiting, row.unreadable


def _note_failing(state: State, dirty: Dirty, key: Key, before: PodRow | None, after: PodRow | None) -> None:
    """Whether loads fail on one node only depends on all pods of the component, wherever they are."""
    failing = state.failing
    for row in (before, after):
        if row is None:
            continue
        slot = (row.workload, row.component)
        here = failing.get(slot)
        if row.failure is not None and row.node:
            dirty.nodes.add(row.node)
            here = here if here is not None else failing.setdefault(slot, {})
            here[key] = row.node
        if not here:
            continue
        if row is before or row.failure is None:
            here.pop(key, None)
        dirty.nodes.update(here.values())
        if not here:
            del failing[slot]
