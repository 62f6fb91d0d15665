"""
Which pod of a component works much less than its peers, by how active the SMs of their GPUs are.

Pods of one component do the same work: replicas behind one router, or ranks that wait for each other at every step.
One whose SMs work half as much as the others' while those are busy is slow, starved, or left out.  Which of the three
is for people to find out; that it is alone with it is what samples tell.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.inventory.gpu_agent import Gpu
from sevenhop.core.inventory.gpu_health import silence
from sevenhop.core.inventory.gpus import Gpus
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.rows import PodRow

PEERS = 3
"""So many others are needed to tell which one is unlike them."""

BUSY = 0.3
"""Where the others' median is lower, requests are too few to tell: one of the pods gets none by chance."""

SHARE = 0.5
"""Of the others' median; less is lagging."""

ENOUGH = 4
"""Activity moves from second to second: it is the mean of at least so many readings; see `gpu_agent.with_activity`."""

Slot = tuple[Key, str]
Level = float | Unknown

NO_AGENT = Unknown(UnknownReason.NO_SOURCE, "gpu agent")
NOT_READ = Unknown(UnknownReason.NO_SOURCE, "gpu agent: this GPU or driver does not tell SM activity")
NO_HOLDERS = Unknown(UnknownReason.NO_SOURCE, "gpu agent: which GPU it has is not told")
SHARED = Unknown(UnknownReason.NO_SOURCE, "gpu agent: it shares a GPU, whose activity is not told apart")
TOO_FEW = Unknown(UnknownReason.WINDOW, "gpu agent: not read for long enough yet")


class Stragglers:
    """
    Mutable, owned by one inventory.

    Attributes:
        told: Of pods that can be compared: whether it lags, or why that is not known.
    """

    def __init__(self) -> None:
        self.told: dict[Key, bool | Unknown] = {}
        self._levels: dict[Slot, dict[Key, Level]] = {}
        self._slot_of: dict[Key, Slot] = {}
        self._moved: set[Key] = set()

    def moved(self, pods: Iterable[Key]) -> None:
        """Their GPUs were read, or can no longer be."""
        self._moved.update(pods)

    def settle(self, rows: Mapping[Key, PodRow], gpus: Gpus, also: Iterable[Key], now: datetime) -> set[Key]:
        """
        Look again at the pods that moved.

        Args:
            also: Pods whose row may have changed.

        Returns:
            Pods of which something else has to be told, peers of those that moved included.
        """
        todo, self._moved = self._moved.union(also), set()
        touched: set[Slot] = set()
        gone: set[Key] = set()
        for pod in todo:
            row = rows.get(pod)
            slot = (row.workload, row.component) if row is not None and _can_lag(row) else None
            before = self._slot_of.get(pod)
            if before is not None and before != slot:
                touched.add(before)
                gone.add(pod)
                self._leave(pod, before)
            if row is None or slot is None:
                continue
            level, here = _level(gpus, row, now), self._levels.setdefault(slot, {})
            if here.get(pod) != level:
                here[pod] = level
                self._slot_of[pod] = slot
                touched.add(slot)
        changed = {pod for pod in gone if pod not in self._slot_of and self.told.pop(pod, False) is not False}
        for slot in touched:
            for pod, lags in lagging(self._levels.get(slot, {})).items():
                if self.told.get(pod) != lags:
                    self.told[pod] = lags
                    changed.add(pod)
        return changed

    def _leave(self, pod: Key, slot: Slot) -> None:
        del self._slot_of[pod]
        here = self._levels[slot]
        del here[pod]
        if not here:
            del self._levels[slot]


def lagging(levels: Mapping[Key, Level]) -> dict[Key, bool | Unknown]:
    """Of each pod of one component, by the activity of each, whether it works less than half as much as the others."""
    if len(levels) - 1 < PEERS:
        return dict.fromkeys(levels, False)
    unknown: dict[Key, bool | Unknown] = {pod: level for pod, level in levels.items() if isinstance(level, Unknown)}
    if len(unknown) == len(levels):
        return unknown  # as on all nodes without an agent
    known = sorted(level for level in levels.values() if not isinstance(level, Unknown))
    why = next((level for _, level in sorted(levels.items()) if isinstance(level, Unknown)), TOO_FEW)
    if len(known) - 1 < PEERS or 2 * len(known) <= len(levels):
        return {pod: level if isinstance(level, Unknown) else why for pod, level in levels.items()}
    slow = {level for level in known if _lags(level, known)}
    if 2 * sum(1 for level in known if level in slow) >= len(known):
        slow = set()  # two camps: nobody is alone with it
    return {pod: level if isinstance(level, Unknown) else level in slow for pod, level in levels.items()}


def _lags(level: float, known: Sequence[float]) -> bool:
    """`known` are all levels, sorted, this one included."""
    median = _median_without(known, bisect_left(known, level))
    return median >= BUSY and level < SHARE * median


def _median_without(values: Sequence[float], index: int) -> float:
    def at(i: int) -> float:
        return values[i if i < index else i + 1]

    count = len(values) - 1
    return (at((count - 1) // 2) + at(count // 2)) / 2


def _can_lag(row: PodRow) -> bool:
    """One that does not serve yet, or no more, is not compared; nor is one without a GPU."""
    return row.live and row.ready and row.gpus > 0


def _level(gpus: Gpus, row: PodRow, now: datetime) -> Level:
    """How active the SMs of a pod's GPUs are, 0 to 1, rounded: what trembles is no news."""
    agent = gpus.agents.get(row.node)
    if agent is None:
        return NO_AGENT
    silent = silence(agent, now)
    if silent is not None:
        return silent
    held = [agent.gpus[uuid] for node, uuid in gpus.on_pod.get(row.key, ()) if node == row.node and uuid in agent.gpus]
    if not held:
        return NO_HOLDERS
    if any(gpu.reading is None or gpu.reading.sm_active is None for gpu in held):
        return NOT_READ
    if any(len(gpu.pods()) > 1 for gpu in held):
        return SHARED
    if any(len(gpu.activity) < ENOUGH for gpu in held):
        return TOO_FEW
    return round(sum(map(_mean, held)) / len(held), 2)


def _mean(gpu: Gpu) -> float:
    return sum(value for _, value in gpu.activity) / len(gpu.activity)
