"""Who waits: the component at the top of a pool's list, with all its pods that more GPUs would help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis
from sevenhop.core.inventory.capacity import Waiting
from sevenhop.core.inventory.pools_waiting import may_wait_by_claim
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import Slot, State, component_subject
from sevenhop.core.inventory.workloads import Tier
from sevenhop.core.remediation.plan import Answer, Need, NoPlanReason
from sevenhop.core.remediation.planning.words import count, slot_name

HELPED_BY_GPUS = frozenset(("gpu-shortage", "gpu-fragmentation", "mig-shortage"))
"""Causes that GPUs of somebody else cure; of slices only those of the same profile, a resource of their own."""

OF_THE_RELEASE = frozenset(
    (
        "image-not-found",
        "image-unauthorized",
        "image-name",
        "image-platform",
        "secret-missing",
        "configmap-missing",
        "bad-command",
        "bad-arguments",
        "missing-environment",
        "security-context",
        "hf-gated",
        "hf-unauthorized",
        "artifact-access-denied",
        "artifact-not-found",
        "corrupt-weights",
        "incomplete-weights",
        "missing-weights",
        "weights-mismatch",
        "trust-remote-code",
        "unknown-architecture",
        "tokenizer-missing",
        "engine-build-mismatch",
        "storage-uri",
        "kv-cache-too-small",
        "gpu-oom-at-load",
        "bad-parallelism",
        "engine-config",
        "nim-no-profile",
    )
)
"""Failures that a pod takes with it to whichever node it gets."""

_KEEPS_AWAY = frozenset(
    (
        Category.RESOURCE,
        Category.POLICY,
        Category.TOPOLOGY,
        Category.QUOTA,
        Category.DEPENDENCY,
        Category.DEVICE_PLUGIN,
    )
)
"""What is not over once the rest of the group has GPUs; that a gang waits for its other pods is."""


def need_of(state: State, where: Slot | str, now: datetime) -> Need | Answer:  # noqa: ARG001 (as all questions)
    """
    Whom a plan would be for.

    Args:
        where: A pool's name: the top of its waiting list, which is the highest tier, then who has waited longest.  Or
            (workload, component): that one, if it is at the top.

    Returns:
        The need of the whole component, or why there is none to plan for.
    """
    unknown = state.gate("Pod", "Node") or state.belonging_gate()
    if unknown is not None:
        return no_plan(NoPlanReason.UNKNOWN, f"who waits is {unknown}")
    if isinstance(where, str):
        queue = list(state.waiting_in.get(where, {}).values())
        top = top_of(_helped(queue) or queue)
        if top is None:
            return no_plan(NoPlanReason.NOBODY_WAITS, f"nobody waits for {where}")
        return _need(state, (top.workload, top.component))
    pool = state.pool_of.get(where, "")
    queue = _helped(state.waiting_in.get(pool, {}).values())
    top = top_of(queue)
    if top is not None and (top.workload, top.component) != where and where in _slots(queue):
        first = f"{slot_name((top.workload, top.component))} ({top.tier}) comes first in the list of {pool}"
        return no_plan(NoPlanReason.NOT_FIRST, f"{first}: one plan at a time, for the top of the list")
    return _need(state, where)


def top_of(queue: Iterable[Waiting]) -> Waiting | None:
    """Highest tier, then longest waiting, then name: as `PoolCapacity.waiting` is sorted."""
    return min(
        queue,
        key=lambda each: (-Tier(each.tier).rank, str(each.since or ""), each.workload, each.component),
        default=None,
    )


def _helped(queue: Iterable[Waiting]) -> list[Waiting]:
    """Who waits for what is out of service keeps nobody from what others can give."""
    return [each for each in queue if each.helped_by_others]


def _slots(queue: Iterable[Waiting]) -> set[Slot]:
    return {(each.workload, each.component) for each in queue}


def waiting_rows(state: State, slot: Slot) -> list[PodRow]:
    """Pods of a component that wait for a node and would hold GPUs, in order of name."""
    return sorted((row for row in state.pods_of(slot) if row.waiting and row.gpus), key=lambda row: row.key)


def gang_rows(state: State, rows: Sequence[PodRow]) -> list[PodRow]:
    """These pods, and those of the same workload that only work together with one of them and wait as well."""
    gangs = {row.gang for row in rows} - {""}
    if not gangs:
        return list(rows)
    workload = rows[0].workload
    mates = (
        row
        for name in sorted(state.slots_of.get(workload, ()))
        for row in waiting_rows(state, (workload, name))
        if row.gang in gangs
    )
    return list({row.key: row for row in (*rows, *mates)}.values())


def _need(state: State, slot: Slot) -> Need | Answer:
    workload = state.workloads.get(slot[0])
    part = state.part(slot)
    rows = gang_rows(state, waiting_rows(state, slot))
    if not rows and any(may_wait_by_claim(row) for row in state.pods_of(slot)):
        text = f"{slot_name(slot)} asks for devices by ResourceClaims; whom to take them from is not worked out"
        return no_plan(NoPlanReason.UNKNOWN, text)
    if workload is None or part is None or not rows:
        return no_plan(NoPlanReason.NOBODY_WAITS, f"no pod of {slot_name(slot)} waits for GPUs")
    refused = not_helped(rows) or _does_not_start(state, slot, rows)
    if refused is not None:
        return refused
    stuck = _stuck_units(rows, part.pods_per_replica)
    short = [row for row in rows if row.pending is not None and row.pending.cause in HELPED_BY_GPUS]
    short = [row for row in short if _unit(row, part.pods_per_replica) not in stuck]
    if not short:
        held = next(iter(stuck.values()))
        why = f" ({held.pending.cause}): {held.pending.summary}" if held.pending is not None else ""
        text = f"{held.key[1]} waits for something else{why}; its group starts as a whole, so GPUs alone do not help"
        return no_plan(NoPlanReason.NOT_A_SHORTAGE, text)
    return Need(
        workload=slot[0],
        component=slot[1],
        tier=state.tier(workload).value,
        pods=tuple(row.key for row in short),
        gpus=sum(row.gpus for row in short),
        product=state.pool_of.get(slot, ""),
        ready_goal=ready_goal(state, slot, short),
    )


def _unit(row: PodRow, size: int) -> str:
    """What starts as a whole: its gang, its replica of several pods, or the pod by itself."""
    return row.gang or (row.group if size > 1 else "") or row.key[1]


def _stuck_units(rows: Iterable[PodRow], size: int) -> dict[str, PodRow]:
    """Gangs and replicas that GPUs do not start, each with one of its pods that waits for something else."""
    stuck: dict[str, PodRow] = {}
    for row in rows:
        why = row.pending
        if why is not None and why.category in _KEEPS_AWAY and why.cause not in HELPED_BY_GPUS:
            stuck.setdefault(_unit(row, size), row)
    return stuck


def ready_goal(state: State, slot: Slot, helped: Iterable[PodRow]) -> int:
    """Ready replicas now and those that get what they wait for, of what is asked for."""
    part = state.part(slot)
    facts = state.facts.get(component_subject(slot), {})
    ready = facts.get("component.ready")
    size = part.pods_per_replica if part is not None else 1
    units = {row.group or row.key[1] if size > 1 else row.key[1] for row in helped if row.component == slot[1]}
    goal = (ready if isinstance(ready, int) else 0) + len(units)
    desired = part.desired if part is not None else None
    return goal if desired is None else min(goal, desired)


def not_helped(rows: Sequence[PodRow]) -> Answer | None:
    """
    Why GPUs of somebody else would not help these pods; None if they would help some of them.

    One pod of which we and the scheduler disagree is enough: then we do not understand what goes on.
    """
    verdicts = [(row, row.pending) for row in rows]
    for row, verdict in verdicts:
        if verdict is None:
            return no_plan(NoPlanReason.UNKNOWN, f"why {row.key[1]} waits has not been computed yet")
        if verdict.disagreement:
            text = f"about {row.key[1]} we and the scheduler disagree: {verdict.summary}"
            return no_plan(NoPlanReason.DISAGREE, text)
        if verdict.cause == "autoscaler-adding":
            return no_plan(NoPlanReason.AUTOSCALER_ADDING, f"{row.key[1]}: {verdict.summary}")
        if verdict.cause == "unknown":
            return no_plan(NoPlanReason.UNKNOWN, f"why {row.key[1]} waits is unknown: {verdict.summary}")
    causes = [verdict for _, verdict in verdicts if verdict is not None]
    helped = [verdict for verdict in causes if verdict.cause in HELPED_BY_GPUS]
    if not helped:
        return _other_cause(causes)
    unsure = next((verdict for verdict in helped if verdict.confidence is not Confidence.CERTAIN), None)
    if unsure is not None:
        why = "; ".join(unsure.unmodelled) or "not everything that placement reads can be seen"
        return no_plan(NoPlanReason.UNKNOWN, f"that GPUs are short is only {unsure.confidence}: {why}")
    return None


def _does_not_start(state: State, slot: Slot, rows: Iterable[PodRow]) -> Answer | None:
    """
    Pods of the very release that waits have a node and fail there for a reason that is the release's own.

    GPUs that somebody gives up for one more of them would be lost to both.  One that is ready says that it can run.
    """
    wanted = {(row.version, row.image) for row in rows}
    alike = [row for row in state.pods_of(slot) if row.live and row.node and (row.version, row.image) in wanted]
    if any(row.ready for row in alike):
        return None
    for row in sorted(alike, key=lambda each: each.key):
        why = row.failure
        if why is not None and why.cause in OF_THE_RELEASE and why.confidence is not Confidence.UNKNOWN:
            text = f"{row.key[1]} of the same release has its GPUs and does not start ({why.cause}); mend that first"
            return no_plan(NoPlanReason.NOT_A_SHORTAGE, f"{text}, more GPUs would not help: {why.summary}")
    return None


def _other_cause(verdicts: Sequence[Diagnosis]) -> Answer:
    for verdict in verdicts:
        if verdict.cause == "preempting":
            return no_plan(NoPlanReason.PREEMPTION_HELPS, f"the scheduler helps itself: {verdict.summary}")
    for verdict in verdicts:
        if verdict.cause == "rollout-surge":
            text = f"{verdict.summary}; set maxSurge: 0 rather than take GPUs of somebody else"
            return no_plan(NoPlanReason.NOT_A_SHORTAGE, text)
    first = verdicts[0]
    if first.cause == "none":
        return no_plan(NoPlanReason.NOBODY_WAITS, first.summary)
    what = f"{count(len(verdicts), 'pod')} wait{'s' if len(verdicts) == 1 else ''}"
    return no_plan(NoPlanReason.NOT_A_SHORTAGE, f"{what} for something else ({first.cause}): {first.summary}")


def no_plan(reason: NoPlanReason, text: str) -> Answer:
    return Answer(reason=reason, text=text)
