"""Does the scheduler say the same: our verdict against its own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from sevenhop.core.hops.scheduler_text import SchedulerMessage, read_scheduler_message
from sevenhop.core.hops.scheduler_text_reasons import read_reasons
from sevenhop.core.objects.base import condition
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.cluster import Cluster

_GROUPS: dict[str, str] = {
    # What older or merged wordings do not tell apart is one kind.
    "node-selector": "node selector or affinity",
    "node-affinity": "node selector or affinity",
    "untolerated-taint": "taint or cordon",
    "node-not-ready": "taint or cordon",
    "cordoned": "taint or cordon",
    "pod-affinity": "pod affinity",
    "pod-anti-affinity": "pod affinity",
    "dra-unsatisfiable": "device claims",
    "dra-extended-resource": "device claims",
    "dra-claim-missing": "device claims",
    "device-class-missing": "device claims",
    "pvc-missing": "volumes",
    "pvc-unbound": "volumes",
    "pv-unavailable": "volumes",
    "volume-zone": "volumes",
    "pvc-in-use": "volumes",
}


class Said(msgspec.Struct, frozen=True, gc=False):
    """The scheduler's verdict: where it stands, its text, and the text taken apart."""

    source: str
    text: str
    message: SchedulerMessage | None


def scheduler_said(cluster: Cluster, pod: Pod) -> Said | None:
    """
    The scheduler's last word on a pod that it could not place; None if there is none.

    The condition, else the newest event; a condition of a gate that is gone says nothing any more.
    """
    scheduled = condition(pod.status.conditions, "PodScheduled")
    name = pod.metadata.name
    if scheduled is not None:
        if scheduled.status != "False" or scheduled.reason != "Unschedulable" or not scheduled.message:
            return None
        return Said(f"pod/{name} condition PodScheduled", scheduled.message, _read(scheduled.message))
    for event in reversed(cluster.events_about(pod.metadata.key)):
        if event.reason == "FailedScheduling":
            message = _read(event.text)
            if message is not None:
                return Said(f"pod/{name} event FailedScheduling", event.text, message)
    return None


@lru_cache(maxsize=256)  # pods alike are told the same, thousands of times
def _read(text: str) -> SchedulerMessage | None:
    return read_scheduler_message(text)


def contradicts(said: Said | None, demands: Iterable[str], expected: Mapping[str, int | None]) -> bool:
    """
    Whether the scheduler's reasons name none of the demands that we say bind.

    Counts are not compared: pods come and go between its attempt and now.  A node on which a demand alone binds gives
    just that reason, so such a demand must be among the scheduler's words; one that stands behind another on every node
    is not, and then the others must be.

    Args:
        demands: Slugs and resource names.
        expected: The reasons that the scheduler would give if it saw what we see.
    """
    if said is None or said.message is None or not said.message.counts or said.message.truncated:
        return False
    spoken = _kinds(said.message.counts)
    visible = _kinds(expected)
    ours = {_GROUPS.get(d, d) for d in demands}
    return not (ours & visible or visible) & spoken


def _kinds(counts: Mapping[str, int | None]) -> set[str]:
    return {r.resource or _GROUPS.get(r.cause, r.cause) for r in read_reasons(counts)}


def denies_preemption(said: Said | None) -> bool:
    """Whether the scheduler said that preemption does not help."""
    return said is not None and said.message is not None and said.message.preemption is not None
