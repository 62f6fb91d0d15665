"""
What rules the replicas of a component: the shape of the table of frameworks' scaling, and of its refusals.

The table itself is outside of the core (`sevenhop.frameworks.scaling`), handed in as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from sevenhop.core.facts.schema import Unknown
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.workloads import Component, Framework, Workload
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Action, ObjectRef


class Chooser(StrEnum):
    """Who chooses which pods go when replicas are fewer, and by what rule."""

    REPLICA_SET = "replica-set"  # ranked; `pod-deletion-cost` steers among pods that are ready
    HIGHEST = "highest"  # highest ordinal or group index first: known, cannot be steered
    NAMED = "named"  # the patch itself names them (`workersToDelete`)
    ANY = "any"  # the operator chooses, by a rule that we do not know


class ConflictReason(StrEnum):
    """Why a component may not be reduced, or not now."""

    NO_TARGET = "no-target"  # nothing that could be scaled
    NOT_PROVEN = "not-proven"  # a framework, or a version of it, whose path is not proven
    UNKNOWN = "unknown"  # a needed kind cannot be seen, or is stale
    AUTOSCALED = "autoscaled"  # HPA, KEDA, planner, … would set it back
    QUEUED = "queued"  # Kueue would suspend or requeue the whole object
    ROLLOUT = "rollout"  # a rollout is under way
    GITOPS = "gitops"  # Argo CD or Flux owns the field and would set it back
    BUDGET = "budget"  # a PodDisruptionBudget leaves no room
    FLOOR = "floor"  # at its floor
    INDIVISIBLE = "indivisible"  # it cannot be reduced in part
    VOLUMES = "volumes"  # its volumes would be deleted with the replicas, for good
    OPTED_OUT = "opted-out"  # the owner says no: annotation `sevenhop.dev/remediation: "off"`
    BORROWED = "borrowed"  # it has given already and the lease runs


class Conflict(msgspec.Struct, frozen=True, gc=False):
    """`text` is for people: what conflicts, by name, and what would have to change."""

    reason: ConflictReason
    text: str


class Ruler(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What rules a component's replicas.

    Attributes:
        target: The object that really rules.
        replicas: What it asks for now, in its unit.
        floor: Below this it is refused or set back, by the object itself (minAvailable, HPA minimum that stays).
        unit_pods: Pods of one replica.
        chooser: Who chooses the victims.
        makers: (kind, key) of the ReplicaSets, StatefulSets or custom objects that own the pods.
        notes: For the plan's text: what is true of this path, such as "the next helm upgrade sets it back".
    """

    target: ObjectRef
    replicas: int
    floor: int = 0
    unit_pods: int = 1
    chooser: Chooser
    makers: tuple[tuple[str, Key], ...] = ()
    notes: tuple[str, ...] = ()


class View(Protocol):
    """What the table may look at: the inventory's objects."""

    def get(self, kind: str, namespace: str, name: str) -> Object | None: ...

    def of(self, kind: str) -> Mapping[Key, Object]:
        """All objects of a kind."""
        ...

    def gate(self, *kinds: str) -> Unknown | None:
        """Why what is derived from these kinds is unknown; None while all of them can be seen (or are not served)."""
        ...


Taker = Callable[[Sequence[Pod], Sequence[Pod]], str]
"""(victims, pods to be helped) to who would take what comes free, in words; empty where nobody clearly would"""


class ScalingSpec(msgspec.Struct, frozen=True, kw_only=True):
    """
    How one framework's components are reduced; one row of the table, which also drives docs and RBAC.

    Attributes:
        docs: One sentence: what is patched, and what is left alone.
        patches: (kind, subresource or empty) of every object that `actions` may patch.
        reads: Kinds that are looked at for conflicts.
        rule: From a component and its live pods to what rules it, or why it may not be reduced.
        actions: (ruler, component, replicas after, victims in order) to what is patched; `Steer` before, `Scale` last.
        taker: From what may be looked at to who else is let in by what victims give back, see `Taker`; None where
            nobody but the scheduler lets anybody in.
    """

    framework: Framework
    docs: str
    patches: tuple[tuple[str, str], ...]
    reads: tuple[str, ...] = ()
    rule: Callable[[View, Workload, Component, Sequence[Pod]], Ruler | Conflict]
    actions: Callable[[View, Workload, Component, Ruler, int, Sequence[Pod]], tuple[Action, ...] | Conflict]
    taker: Callable[[View], Taker] | None = None


ScalingTable = Mapping[Framework, ScalingSpec]
