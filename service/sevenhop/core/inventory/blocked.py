"""
Pods that do not exist because somebody holds them back: what their controller, their operator or their queue says.

A controller tells how many it lacks.  An operator or a queue only tells why; how many are missing follows from what the
component asks for, so that the same pods are never counted twice, and words that outlive their cause count for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sevenhop.core.facts.component import NotCreated
from sevenhop.core.hops.diagnosis import Category, Diagnosis
from sevenhop.core.hops.finding import bare
from sevenhop.core.hops.findings_operators import OPERATED_KINDS, told_since, why_operator_fails
from sevenhop.core.hops.findings_owners import OWNERS, refused_since, why_lacking
from sevenhop.core.hops.findings_queues import QUEUED_KINDS, queued_since, why_queued
from sevenhop.core.hops.findings_refusals import newest_refusal, says_nothing, why_refused_by_events
from sevenhop.core.hops.scheduling_not_created import missing_pods
from sevenhop.core.inventory.holds import asks
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import Said, Slot, State
from sevenhop.core.inventory.workloads import Component
from sevenhop.core.objects.base import Custom
from sevenhop.core.objects.cluster import Controller
from sevenhop.core.objects.pod import Pod
from sevenhop.core.subject import Hop

TOLD_KINDS = (*OPERATED_KINDS, *QUEUED_KINDS)
"""Kinds whose operator or queue says why pods are missing."""

TOLD_BY_NAME = {name: tuple(kind for kind in TOLD_KINDS if bare(kind) == name) for name in map(bare, TOLD_KINDS)}
"""As an Event names them: ``RayCluster`` to ``RayCluster.ray.io``."""

RULES_ON_PODS = ("ResourceQuota", "LimitRange", "Namespace")
"""Kinds that may forbid a pod of their namespace, beside classes, which may forbid any."""


def read_refused(state: State, kind: str, key: Key) -> tuple[Slot, NotCreated] | None:
    """What a controller may not create, and of which component; None where nothing is, or it is nobody's."""
    obj = state.objects.get(kind, *key)
    if not isinstance(obj, Controller) or kind not in OWNERS:
        return None
    missing = missing_pods(state.objects, kind, obj)
    slot = state.discovery.component_of(kind, key) if missing else None
    if slot is None:
        return None
    events = state.evidence.about(kind.partition(".")[0], key, obj.metadata.uid)
    why = why_lacking(state.objects, kind, obj, events)
    if why is None:
        return None
    gpus = sum(asks(Pod(spec=obj.spec.template.spec)).values())
    since = refused_since(obj, events) or obj.metadata.creation_timestamp
    return slot, NotCreated(f"{kind}/{key[1]}", missing, missing * gpus, since, why)


def lacks(state: State, kind: str, key: Key) -> bool:
    """Whether a controller has fewer pods than it wants, refused or not: another rule may refuse them tomorrow."""
    obj = state.objects.get(kind, *key)
    return isinstance(obj, Controller) and kind in OWNERS and missing_pods(state.objects, kind, obj) > 0


def read_said(state: State, kind: str, key: Key) -> Said | None:
    """What an operator or a queue says is wrong with an object of `TOLD_KINDS`; None where nothing is."""
    obj = state.objects.get(kind, *key)
    if not isinstance(obj, Custom):
        return None
    is_queue = kind in QUEUED_KINDS
    why = why_queued(kind, obj) if is_queue else why_operator_fails(kind, obj)
    since = queued_since(obj) if is_queue else (told_since(obj, why) if why is not None else None)
    events = [] if is_queue else state.evidence.about(bare(kind), key, obj.metadata.uid)
    if events and says_nothing(why):
        # That pods are missing stands in the objects; an Event only says why.
        by_events = why_refused_by_events(state.objects, kind, obj, events)
        newest = newest_refusal(events) if by_events is not None else None
        if newest is not None:
            why, since = by_events, newest.first_timestamp or newest.last_seen
    if why is None:
        return None
    return Said(state.discovery.workload_of(kind, key), f"{kind}/{key[1]}", is_queue, since, why)


def missing_of(state: State, slot: Slot, part: Component, rows: Sequence[PodRow]) -> list[NotCreated]:
    """
    What the component lacks and nothing but its controllers, operator or queue can tell of.

    Args:
        rows: Its pods.
    """
    found = [missing for where, missing in state.refused.values() if where == slot]
    words = [said for said in state.said_of(slot[0]) if said.diagnosis.hop is Hop.SCHEDULING] if state.told else []
    if not words:
        return found
    size = max(1, part.pods_per_replica)
    lacking = (part.desired or 0) * size - sum(row.live for row in rows) - sum(missing.pods for missing in found)
    # What is meant to stand still lacks nothing, unless a queue holds it.
    words = [said for said in words if said.is_queue or not part.intended_zero]
    if lacking <= 0 or not words:
        return found
    said = words[0]
    gpus = part.gpus_per_replica * lacking // size
    return [*found, NotCreated(said.teller, lacking, gpus, said.since, said.diagnosis)]


def told_of(state: State, slot: Slot) -> Diagnosis | None:
    """What its operator or queue says of the workload, for where no pod says anything; the nearest to a cause first."""
    words = sorted(state.said_of(slot[0]), key=lambda said: (said.diagnosis.category is Category.UNKNOWN, said.teller))
    return words[0].diagnosis if words else None
