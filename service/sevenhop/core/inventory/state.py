"""Everything that one inventory keeps: objects, their indexes, rows of pods, histories, and the facts last told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from sevenhop.core.events import SyncState
from sevenhop.core.facts.component import NotCreated
from sevenhop.core.facts.schema import Facts, Unknown, UnknownReason
from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.inventory.capacity import PoolCapacity, Waiting
from sevenhop.core.inventory.changes import ChangeLog
from sevenhop.core.inventory.discovery import Discovery
from sevenhop.core.inventory.dra import GpuDevices
from sevenhop.core.inventory.evidence import Evidence
from sevenhop.core.inventory.framework import FrameworkSpec
from sevenhop.core.inventory.gpu_health import GpuState, NodeHealth
from sevenhop.core.inventory.gpu_watch import PoolWatch
from sevenhop.core.inventory.gpus import Gpus
from sevenhop.core.inventory.history import Loads, Restarts, SeenGpus
from sevenhop.core.inventory.holds import asks
from sevenhop.core.inventory.ledger import Ledger
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.inventory.pending import Pending
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.rows import PodRow, PodShape, shape_of
from sevenhop.core.inventory.services import ServiceIndex
from sevenhop.core.inventory.stragglers import Stragglers
from sevenhop.core.inventory.waiting import Spell
from sevenhop.core.inventory.workloads import Component, Tier, Workload
from sevenhop.core.objects.cluster import HorizontalPodAutoscaler, PodDisruptionBudget, PriorityClass
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.subject import Subject, SubjectKind

Slot = tuple[Key, str]
"""(workload, component)"""

PRIORITY_CLASSES = "PriorityClass.scheduling.k8s.io"

_REASONS = {
    SyncState.NOT_SYNCED: UnknownReason.NOT_SYNCED,
    SyncState.STALE: UnknownReason.STALE,
    SyncState.FORBIDDEN: UnknownReason.FORBIDDEN,
    SyncState.NO_SOURCE: UnknownReason.NO_SOURCE,
}


class Said(msgspec.Struct, frozen=True, gc=False):
    """
    What an operator or a queue says of one of its objects.

    Attributes:
        workload: Whose object it is; None while that is not known.
        teller: The object, as ``Kind/name``.
        is_queue: A queue holds it back, as queues do; otherwise an operator says that it failed.
        since: Since when; None where nothing tells.
    """

    workload: Key | None
    teller: str
    is_queue: bool
    since: datetime | None
    diagnosis: Diagnosis


class Labelled(msgspec.Struct, frozen=True, gc=False):
    """A component's labels, and all that they are made of."""

    workload: Workload
    tier: Tier
    pool: str
    labels: dict[str, str]


class Dirty(msgspec.Struct):
    """What has to be looked at again; emptied by `settle`."""

    pods: set[Key] = set()
    nodes: set[str] = set()
    slots: set[Slot] = set()
    workloads: set[Key] = set()
    services: set[Key] = set()
    pools: set[str] = set()
    sources: set[str] = set()
    agents: set[str] = set()  # nodes whose GPUs have to be judged
    controllers: set[tuple[str, Key]] = set()  # that may not be able to create their pods, or say why others may not
    pod_facts: set[Key] = set()  # pods of which something else may be told, though they are the same
    gpu_facts: set[str] = set()  # nodes of whose GPUs something else may be told


GROUPING_KINDS = ("ReplicaSet.apps", "Deployment.apps", "StatefulSet.apps")


class State:
    """
    Attributes:
        rows: Of pods that belong to a workload.
        shapes: Of pods that were read, until anything but their status changes; see `shape`.
        families: (namespace, controller) to the components whose pods it makes; see `rows.made_by`.
        refused: (kind, key) of a controller to its component and what it may not create.
        said: (kind, key) to what an operator or a queue says is wrong with it; `told` are the keys by workload.
        lacking: Namespace to the controllers, operators' and queues' objects in it that have fewer pods than they want,
            or say that something is wrong: what forbids them may change without them.
        failing: Of a component, the pods that fail and the nodes that they are on.
        priority_of: The highest priority among a component's pods.
        tier_of: Of a workload, as last told.
        labels_of: Of components, as last told; `labelled` as last made.
        pool_of: The pool that a component runs in or waits for.
        budgets, scalers: PodDisruptionBudgets and HorizontalPodAutoscalers by namespace.
        listed_ready: Service to the pods that its EndpointSlices list as ready.
        short_of_gpus: Nodes that advertise fewer GPUs than they should, with both numbers.
        gpu_states, gpu_health: Of nodes with an agent, as last judged: by GPU, and in numbers.
        gpu_sight_changes: Counts how often an agent came, or began or ceased to be heard.
        unseen_in: Of pools, why it is not known how their GPUs are, while neither they nor their agents change;
            see `gpu_sight`.
        bad_gpu_nodes: Nodes with bad GPUs.
        waits_for_bad: Pods that have no node because nodes advertise fewer GPUs than they have.
        silent_agents: Nodes that are ready and whose agent is silent.
        clock_skews: Of agents whose clock differs so much that somebody should know, in seconds.
        capacities: Of pools that somebody asked about, until something in them changes.
        reserved: Of pools, GPUs that plans have promised to somebody.
        service_of: Service to the workload that it leads to.
        served: Services that had a ready endpoint since their workload was last meant to run.
        waiting_in: Pool to the components that wait for its GPUs.
        changed_histories: (table, key) of what no list returns and has changed since it was last stored.
        unreadable: Kind to key to why we could not decode the object.
        facts: Of every subject, as last told.
    """

    def __init__(self, cluster: str, frameworks: Sequence[FrameworkSpec], policy: Policy) -> None:
        self.cluster = cluster
        self.policy = policy
        self.objects = Objects()
        self.discovery = Discovery(self.objects, frameworks, policy)
        self.placement = Cluster(self.objects)
        self.pending = Pending(self.placement)
        self.ledger = Ledger()
        self.devices = GpuDevices()
        self.gpus = Gpus()
        self.gpu_states: dict[str, dict[str, GpuState]] = {}
        self.gpu_health: dict[str, NodeHealth] = {}
        self.gpu_sight_changes = 0
        self.unseen_in: tuple[tuple[int, int], dict[frozenset[str], str]] = ((0, 0), {})
        self.gpu_watch = PoolWatch()
        self.stragglers = Stragglers()
        self.bad_gpu_nodes: set[str] = set()
        self.waits_for_bad: set[Key] = set()
        self.silent_agents: set[str] = set()
        self.clock_skews: dict[str, float] = {}
        self.services = ServiceIndex()
        self.evidence = Evidence()
        self.changes = ChangeLog()
        self.last_change: dict[Key, datetime] = {}

        self.rows: dict[Key, PodRow] = {}
        self.shapes: dict[Key, PodShape] = {}
        self.rows_of: dict[Slot, dict[Key, PodRow]] = {}
        self.families: dict[tuple[str, str], set[Slot]] = {}
        self.refused: dict[tuple[str, Key], tuple[Slot, NotCreated]] = {}
        self.said: dict[tuple[str, Key], Said] = {}
        self.told: dict[Key, set[tuple[str, Key]]] = {}
        self.lacking: dict[str, set[tuple[str, Key]]] = {}
        self.restarts: dict[Key, tuple[str, Restarts]] = {}
        self.loads: dict[str, Loads] = {}
        self.seen_gpus: dict[str, SeenGpus] = {}
        self.spells: dict[Slot, Spell] = {}
        self.changed_histories: set[tuple[str, str]] = set()

        self.workloads: dict[Key, Workload] = {}
        self.slots_of: dict[Key, frozenset[str]] = {}
        self.workloads_in: dict[str, dict[Key, Workload]] = {}
        self.workload_of_root: dict[tuple[str, Key], Key] = {}
        self.failing: dict[Slot, dict[Key, str]] = {}
        self.priority_of: dict[Slot, int] = {}
        self.tier_of: dict[Key, Tier] = {}
        self.labels_of: dict[Slot, dict[str, str]] = {}
        self.labelled: dict[Slot, Labelled] = {}
        self.pool_of: dict[Slot, str] = {}
        self.waiting_in: dict[str, dict[Slot, Waiting]] = {}
        self.short_of_gpus: dict[str, tuple[int, int]] = {}
        self.capacities: dict[str, PoolCapacity] = {}
        self.reserved: dict[str, int] = {}
        self.service_of: dict[Key, Key] = {}
        self.served: dict[Key, bool] = {}
        self.budgets: dict[str, dict[Key, PodDisruptionBudget]] = {}
        self.scalers: dict[str, dict[Key, HorizontalPodAutoscaler]] = {}
        self.listed_ready: dict[Key, frozenset[Key]] = {}
        self.unreadable: dict[str, dict[Key, str]] = {}
        self.rules_broken = 0
        self.facts: dict[Subject, Facts] = {}
        self.started: datetime | None = None

    def gate(self, *kinds: str) -> Unknown | None:
        """Why what is derived from these kinds is unknown; None while all of them can be seen."""
        for kind in kinds:
            reason = _REASONS.get(self.objects.states.get(kind, SyncState.NOT_SYNCED))
            if reason is not None:
                return Unknown(reason, kind)
        return None

    def belonging_gate(self) -> Unknown | None:
        """
        Why it is unknown to which workload a pod belongs; None once it is known.

        Until what groups pods is listed, and each kind of root is or has failed to be, a pod may be told to belong to
        what is only a part of its workload.
        """
        for kind in GROUPING_KINDS:
            gate = self.gate(kind)
            if gate is not None and gate.reason is UnknownReason.NOT_SYNCED:
                return gate
        states, details = self.objects.states, self.objects.details
        for kind in self.discovery.root_kinds:
            if states.get(kind, SyncState.NOT_SYNCED) is SyncState.NOT_SYNCED and not details.get(kind):
                return Unknown(UnknownReason.NOT_SYNCED, kind)
        return None

    def unreadable_gate(self, kind: str, key: Key) -> Unknown | None:
        error = self.unreadable.get(kind, {}).get(key)
        return None if error is None else Unknown(UnknownReason.UNREADABLE, f"{kind} {key[1]}")

    def shape(self, key: Key, pod: Pod) -> PodShape:
        """What of this pod its status never changes."""
        known = self.shapes.get(key)
        if known is None:
            known = self.shapes[key] = shape_of(pod, asks(pod))
        return known

    def said_of(self, workload: Key) -> list[Said]:
        """What operators and queues say of a workload, in order of kind and name."""
        return [self.said[where] for where in sorted(self.told.get(workload, ()))]

    def part(self, slot: Slot) -> Component | None:
        workload = self.workloads.get(slot[0])
        return workload.component(slot[1]) if workload is not None else None

    def pods_of(self, slot: Slot) -> list[PodRow]:
        return list(self.rows_of.get(slot, {}).values())

    def tier(self, workload: Workload) -> Tier:
        """As stated, as the policy says, else by the highest priority of its pods."""
        if workload.tier is not None:
            return workload.tier
        return self.policy.tier_of_priority(self._priority(workload))

    def _priority(self, workload: Workload) -> int:
        stated = [
            found.value
            for part in workload.components
            if part.priority_class
            and isinstance(found := self.objects.get(PRIORITY_CLASSES, "", part.priority_class), PriorityClass)
        ]
        if stated:
            return max(stated)
        slots = ((workload.key, part.name) for part in workload.components)
        return max((self.priority_of[slot] for slot in slots if slot in self.priority_of), default=0)

    def owner(self, workload: Workload) -> str:
        return workload.owner or self.policy.owner(workload.namespace)


def component_subject(slot: Slot) -> Subject:
    (namespace, workload), component = slot
    return Subject(SubjectKind.COMPONENT, namespace, f"{workload}/{component}")


def slot_of(subject: Subject) -> Slot:
    """
    The inverse of `component_subject`.

    >>> slot_of(Subject(SubjectKind.COMPONENT, "prod", "llama-70b/decode"))
    (('prod', 'llama-70b'), 'decode')
    """
    workload, _, component = subject.name.partition("/")
    return ((subject.namespace, workload), component)
