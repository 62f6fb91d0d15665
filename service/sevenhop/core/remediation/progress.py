"""
Whether a run has reached its goal, and whether it gets on: scheduled → pulling → loading → Ready.

Read from the inventory each time; what cannot be seen is unknown, and neither progress nor failure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from sevenhop.core.facts.schema import Unknown
from sevenhop.core.hops.diagnosis import Confidence
from sevenhop.core.inventory.history import LOADS_NEEDED, Loads
from sevenhop.core.inventory.history_keeping import release_of
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import Slot, State, component_subject
from sevenhop.core.objects.cluster import Node
from sevenhop.core.remediation.action import Cordon, EvictPod, ObjectRef
from sevenhop.core.remediation.case import Watch
from sevenhop.core.remediation.live import donors, is_gone, object_of
from sevenhop.core.remediation.plan import Plan
from sevenhop.core.remediation.playbook import Goal
from sevenhop.core.subject import Subject, SubjectKind
from sevenhop.core.words import counted, inflected

LONGEST_BLINK = timedelta(minutes=1)
"""
A run is looked at every few seconds.  What lies between two looks further apart was seen by nobody: the process was
down or asleep, or the clock was set, and of that time nothing can be said.
"""


class Look(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One look at the goal.

    Attributes:
        reached: Whether it is.
        is_wanted: Whether anybody still wants it.
        score: Higher is further; `words` say where things are.
        failures: (pod, cause) of what fails now.
        ready: Ready pods of whom it is for.
        may_take: How long a step of loading may take, by this model's own history; zero if that is not known.
        drains_until: Until when pods that make room may take to end, where somebody waits for that; None where not.
    """

    reached: bool
    is_wanted: bool = True
    score: int = 0
    words: str = ""
    failures: tuple[tuple[Key, str], ...] = ()
    ready: int = 0
    may_take: timedelta = timedelta(0)
    drains_until: datetime | None = None


def look(state: State, plan: Plan, goal: Goal, watch: Watch | None = None) -> Look | Unknown:
    """
    How far it is, or why nobody can tell now.

    Args:
        watch: What the run remembers; None before it has begun.
    """
    if goal is Goal.BENEFICIARY_READY and plan.need is not None:
        slot = (plan.need.workload, plan.need.component)
        seen = _component(state, slot, plan.need.ready_goal)
        return seen if isinstance(seen, Unknown) else _while_others_end(state, plan, slot, seen)
    if goal is Goal.NODE_CORDONED:
        return _cordoned(state, plan)
    if goal is Goal.NODE_ADVERTISES:
        return _advertises(state, plan)
    return _owner(state, plan, watch)


def begun(state: State, plan: Plan, seen: Look | Unknown, now: datetime) -> Watch:
    """What a run remembers of how things were before it changed anything."""
    evicted = [action.pod for action in plan.actions if isinstance(action, EvictPod)]
    slot = slot_of_pods(state, evicted)
    if isinstance(seen, Unknown):
        return Watch(progress_at=now, seen_at=now, is_blind=True, slot=slot)
    return Watch(
        progress_at=now,
        seen_at=now,
        score=seen.score,
        words=seen.words,
        failures=seen.failures,
        ready_before=seen.ready,
        slot=slot,
    )


def unseen(watch: Watch, now: datetime) -> timedelta:
    """
    How much of the time since the last look counts for nothing; less than zero where the clock was set back.

    >>> noon = datetime(2026, 1, 1, 12)
    >>> last = Watch(progress_at=noon, seen_at=noon)
    >>> [unseen(last, noon + timedelta(seconds=s)).total_seconds() for s in (2, 60, 61, -1)]
    [0.0, 0.0, 61.0, -1.0]
    """
    gap = now - watch.seen_at
    return gap if watch.is_blind or gap > LONGEST_BLINK or gap < timedelta(0) else timedelta(0)


def awake(watch: Watch, now: datetime) -> Watch:
    """What is remembered when somebody looks again: times that are waited from move with the time that nobody saw."""
    gap = unseen(watch, now)
    failing_since = watch.failing_since + gap if watch.failing_since is not None else None
    return replace(
        watch,
        progress_at=watch.progress_at + gap,
        failing_since=failing_since,
        unseen=watch.unseen + gap,
        seen_at=now,
        is_blind=False,
    )


def watched(watch: Watch, seen: Look | Unknown, now: datetime) -> Watch:
    """What is remembered after another look; time that nobody could see does not count."""
    if isinstance(seen, Unknown):
        return replace(watch, is_blind=True)
    watch = awake(watch, now)
    # That a pod takes the time that its owner gave it to end is no lack of progress: the room comes when it is gone.
    is_draining = seen.drains_until is not None and now < seen.drains_until
    progress_at = now if seen.score > watch.score or is_draining else watch.progress_at
    new = [failure for failure in seen.failures if failure not in watch.failures]
    return replace(
        watch,
        score=max(seen.score, watch.score),
        words=seen.words,
        progress_at=progress_at,
        failing_since=(watch.failing_since or now) if new else None,
    )


def new_failures(watch: Watch, seen: Look) -> list[tuple[Key, str]]:
    """Failures that were not there before anything was changed."""
    return [failure for failure in seen.failures if failure not in watch.failures]


def overdue_at(watch: Watch, seen: Look | Unknown, no_progress: timedelta) -> datetime | None:
    """When it has taken too long without progress; None while nobody can see."""
    if isinstance(seen, Unknown) or watch.is_blind:
        return None
    return watch.progress_at + max(no_progress, seen.may_take)


def _component(state: State, slot: Slot, ready_goal: int) -> Look | Unknown:
    unknown = state.gate("Pod") or state.belonging_gate()
    if unknown is not None:
        return unknown
    facts = state.facts.get(component_subject(slot))
    part = state.part(slot)
    if facts is None or part is None:
        return Look(reached=False, is_wanted=False, words=f"{'/'.join(slot[0])}/{slot[1]} is no more")
    ready, desired = facts.get("component.ready"), facts.get("component.desired")
    if isinstance(ready, Unknown):
        return ready
    rows = [row for row in state.pods_of(slot) if row.live]
    count = ready if isinstance(ready, int) else sum(row.ready for row in rows)
    wanted = min(ready_goal, desired) if isinstance(desired, int) else ready_goal
    if wanted <= 0:
        return Look(reached=False, is_wanted=False, words="nobody wants it any more: scaled to zero")
    return Look(
        reached=count >= wanted,
        is_wanted=count >= wanted or not isinstance(desired, int) or desired >= ready_goal or desired > count,
        score=sum(_rank(row) for row in rows),
        words=_words(rows, count, wanted),
        failures=tuple(sorted(_failures(state, rows))),
        ready=count,
        may_take=_may_take(state, rows),
    )


def _while_others_end(state: State, plan: Plan, slot: Slot, seen: Look) -> Look:
    """
    With the pods that leave and are not gone yet, as long as somebody has no node.

    A deletion's time stamp is its deadline: when it was asked for, and the grace.
    """
    if seen.reached or all(row.node for row in state.pods_of(slot) if row.live):
        return seen
    pods = state.objects.pods()
    ending: dict[Key, datetime] = {}
    for donor in donors(plan):
        for row in state.pods_of(donor):
            pod = pods.get(row.key)
            if pod is not None and pod.metadata.deletion_timestamp is not None and row.node and not pod.is_finished:
                ending[row.key] = pod.metadata.deletion_timestamp
    if not ending:
        return seen
    last = max(ending, key=lambda key: (ending[key], key))
    words = f"{seen.words}; {counted(len(ending), 'pod')} that {inflected(len(ending), 'makes', 'make')} room"
    words = f"{words} may take until {ending[last]:%H:%M:%S} UTC to end"
    return replace(seen, words=words, drains_until=ending[last])


def _rank(row: PodRow) -> int:
    """0 waits, 1 has a node, 2 its engine runs and loads, 3 is ready."""
    if row.ready:
        return 3
    if row.started:
        return 2
    return 1 if row.node else 0


_STEPS = ("waiting for a node", "pulling or starting", "loading its model", "Ready")


def _words(rows: list[PodRow], ready: int, wanted: int) -> str:
    unready = sorted(((_rank(row), row.key[1]) for row in rows if not row.ready), reverse=True)
    if not unready:
        return f"{ready}/{wanted} Ready"
    rank, name = unready[0]
    return f"{ready}/{wanted} Ready, {name} is {_STEPS[rank]}"


CRASHES = frozenset(("exit-code-unexplained", "crash-loop-unexplained"))
CRASHES_ENOUGH = 2
"""A program that ended once may have waited for another; that ended again and again fails, whatever the reason."""


def _failures(state: State, rows: Iterable[PodRow]) -> Iterable[tuple[Key, str]]:
    """Failure evidence: classified, and not only a guess; or a program that keeps ending without a known reason."""
    for row in rows:
        why = row.failure
        if why is None or why.hop is None:
            continue
        if why.confidence is not Confidence.UNKNOWN or (why.cause in CRASHES and _keeps_ending(state, row)):
            yield row.key, why.cause


def _keeps_ending(state: State, row: PodRow) -> bool:
    pod = state.objects.pods().get(row.key)
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses) if pod is not None else ()
    return any(status.restart_count >= CRASHES_ENOUGH for status in statuses)


def _may_take(state: State, rows: list[PodRow]) -> timedelta:
    longest = timedelta(0)
    for row in rows:
        if row.ready or not row.node:
            continue
        pod = state.objects.pods().get(row.key)
        known = state.loads.get(release_of(pod), Loads()) if pod is not None else Loads()
        if len(known.seconds) >= LOADS_NEEDED:
            longest = max(longest, known.budget())
    return longest


def _owner(state: State, plan: Plan, watch: Watch | None) -> Look | Unknown:
    """Of a pod that is made again: the old one is gone, and its component has one more ready pod than without it."""
    unknown = state.gate("Pod") or state.belonging_gate()
    if unknown is not None:
        return unknown
    evicted = [action.pod for action in plan.actions if isinstance(action, EvictPod)]
    left = all(is_gone(state, ref) for ref in evicted)
    slot = watch.slot if watch is not None else slot_of_pods(state, evicted)
    if slot is None:
        return Look(reached=False, is_wanted=False, words="its owner is no more")
    others = [
        row for row in state.pods_of(slot) if row.live and row.key not in {(r.namespace, r.name) for r in evicted}
    ]
    again = [row for row in state.pods_of(slot) if row.live and row.uid not in {ref.uid for ref in evicted}]
    ready = sum(row.ready for row in (again if left else others))
    wanted = (watch.ready_before if watch is not None else ready) + len(evicted)
    seen = _component(state, slot, wanted)
    if isinstance(seen, Unknown):
        return seen
    return replace(seen, reached=left and ready >= wanted, score=seen.score + 3 * left, ready=ready)


def slot_of_pods(state: State, pods: Iterable[ObjectRef]) -> Slot | None:
    """The component of the first pod that has one."""
    rows = (state.rows.get((ref.namespace, ref.name)) for ref in pods)
    return next(((row.workload, row.component) for row in rows if row is not None), None)


def _cordoned(state: State, plan: Plan) -> Look | Unknown:
    nodes = [action.node for action in plan.actions if isinstance(action, Cordon)]
    unknown = state.gate("Node")
    if unknown is not None:
        return unknown
    done = 0
    for ref in nodes:
        node = object_of(state, ref)
        done += isinstance(node, Node) and node.spec.unschedulable
    wanted = not any(is_gone(state, ref) for ref in nodes)
    return Look(reached=done == len(nodes), is_wanted=wanted, score=done, words=f"{done}/{len(nodes)} cordoned")


def _advertises(state: State, plan: Plan) -> Look | Unknown:
    """The old plugin pod is gone, and each node offers as many GPUs as it should."""
    unknown = state.gate("Node", "Pod")
    if unknown is not None:
        return unknown
    left = all(is_gone(state, action.pod) for action in plan.actions if isinstance(action, EvictPod))
    score, short, wanted = int(left), [], True
    for name in plan.nodes:
        wanted = wanted and ("", name) in state.objects.nodes()
        facts = state.facts.get(Subject(SubjectKind.NODE, "", name), {})
        has, should = facts.get("node.gpu.allocatable"), facts.get("node.gpu.expected")
        for value in (has, should):
            if isinstance(value, Unknown):
                return value
        if isinstance(has, int) and isinstance(should, int):
            score += has
            if has < should:
                short.append(f"{name} offers {has} of {should} GPUs")
    words = "; ".join(short) or ("offers all its GPUs" if left else "its plugin pod is still there")
    return Look(reached=left and not short, is_wanted=wanted, score=score, words=words)
