"""Where every pod is, and the pods of every component, both ways in step."""

from __future__ import annotations

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.workloads import Membership

Slot = tuple[Key, str]
"""(workload, component)"""


class Placements:
    """Pods in components; also which of them wait in a queue on purpose."""

    def __init__(self) -> None:
        self._membership: dict[Key, Membership] = {}
        self._pods: dict[Slot, set[Key]] = {}
        self._queued: dict[Slot, set[Key]] = {}
        self._components: dict[Key, set[str]] = {}

    def __len__(self) -> int:
        return len(self._membership)

    def of(self, pod: Key) -> Membership | None:
        return self._membership.get(pod)

    def group(self, pod: Key) -> str:
        """Which of its component's multi-pod replicas a pod is part of; empty where it is one by itself, or unknown."""
        at = self._membership.get(pod)
        return at.group if at is not None else ""

    def members(self, namespace: str) -> list[Key]:
        """Pods of a namespace that are in any component; looks at all pods."""
        return [pod for pod in self._membership if pod[0] == namespace]

    def pods(self, slot: Slot) -> set[Key]:
        """Do not change the set."""
        return self._pods.get(slot, _NONE)

    def components(self, workload: Key) -> set[str]:
        """Those that have pods; do not change the set."""
        return self._components.get(workload, _NO_NAMES)

    def is_all_queued(self, slot: Slot) -> bool:
        """Whether there are pods, and every one waits in a queue."""
        return slot in self._queued and len(self._queued[slot]) == len(self._pods[slot])

    def move(self, pod: Key, to: Membership | None, *, queued: bool) -> set[Key]:
        """
        A pod is there now, or nowhere.

        Returns:
            Workloads of which a component may be all queued now, or no longer.
        """
        before = self._membership.get(pod)
        slots = {(at.workload, at.component) for at in (before, to) if at is not None}
        was = {slot: self.is_all_queued(slot) for slot in slots}
        if before is not None:
            self._take(pod, before)
        if to is not None:
            self._add(pod, to, queued=queued)
        return {slot[0] for slot in slots if was[slot] != self.is_all_queued(slot)}

    def _add(self, pod: Key, to: Membership, *, queued: bool) -> None:
        slot = (to.workload, to.component)
        self._membership[pod] = to
        self._pods.setdefault(slot, set()).add(pod)
        self._components.setdefault(to.workload, set()).add(to.component)
        if queued:
            self._queued.setdefault(slot, set()).add(pod)

    def _take(self, pod: Key, at: Membership) -> None:
        slot = (at.workload, at.component)
        del self._membership[pod]
        for index in (self._pods, self._queued):
            if slot in index:
                index[slot].discard(pod)
                if not index[slot]:
                    del index[slot]
        if slot not in self._pods:
            self._components[at.workload].discard(at.component)
            if not self._components[at.workload]:
                del self._components[at.workload]


_NONE: set[Key] = set()
_NO_NAMES: set[str] = set()
