"""
Kueue: the quota of a pod that goes admits somebody else, who may then take the room.

Read from kueue.x-k8s.io (v1beta2, and v1beta1 where a field was called otherwise): `Workload`, `LocalQueue`,
`ClusterQueue`; the words of a Workload that waits are those of pkg/scheduler/flavorassigner.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sevenhop.core.incidents.text import plain
from sevenhop.core.objects.base import Custom, Object
from sevenhop.core.objects.pod import Pod
from sevenhop.core.objects.quantity import units
from sevenhop.core.placement.requests import pod_requests
from sevenhop.core.remediation.reduction import View
from sevenhop.frameworks.reading import rows, table, text
from sevenhop.frameworks.scaling.way import line_of

WORKLOAD = "Workload.kueue.x-k8s.io"
LOCAL_QUEUE = "LocalQueue.kueue.x-k8s.io"
CLUSTER_QUEUE = "ClusterQueue.kueue.x-k8s.io"

_QUEUE = ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/local-queue-name")
_QUEUE_OF_CLUSTER = "kueue.x-k8s.io/cluster-queue-name"
_GROUP = "kueue.x-k8s.io/pod-group-name"

_LACKS = re.compile(
    r"insufficient unused quota for (\S{1,253}) in flavor ([^\s,]{1,253}), ([0-9a-zA-Z.+]{1,40}) more needed",
    re.IGNORECASE,
)
_NEVER = re.compile(r"insufficient quota for (\S{1,253}) in flavor|maximum capacity", re.IGNORECASE)
_POD_SET = re.compile(r"\bpod set\b", re.IGNORECASE)

Freed = dict[tuple[str, str], int]
"""(resource, flavor) to units, as `quantity.units` counts them."""


class Quota:
    """Kueue's Workloads as they are at one moment, by whom they are of; looked through once for many questions."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._holds: dict[tuple[str, str, str], Custom] = {}
        self._waits: list[tuple[str, Custom]] = []
        for (space, name), workload in sorted(view.of(WORKLOAD).items()):
            if not isinstance(workload, Custom):
                continue
            if text(workload.status, "admission", "clusterQueue"):
                self._holds[space, "group", name] = workload
                for ref in workload.metadata.owner_references:
                    if ref.kind == "Pod":
                        self._holds[space, "pod", f"{ref.name}/{ref.uid}"] = workload
            elif queue := _asked_by(view, workload):
                self._waits.append((queue, workload))

    def taker(self, victims: Sequence[Pod], needy: Sequence[Pod]) -> str:
        """
        Who would be admitted with the quota that these victims give back, where the objects show it clearly.

        Clearly: Kueue's own words on a Workload that waits in the same ClusterQueue, or in one of the same cohort that
        may borrow freely, say that it lacks no more than comes back, of the very flavors.  Who waits for more or for
        other things, who is not seen, and whose queue is held is passed over; so is everything where those that are to
        be helped stand in that ClusterQueue themselves, for there Kueue keeps the order.

        Returns:
            Words that say why to hold back; empty where nobody clearly is.
        """
        for queue, freed in self._given_back(victims).items():
            if queue in _queues_of(self._view, needy):
                continue
            for asked, workload in self._waits:
                if _is_enough(workload, freed) and _reaches(self._view, asked, queue, freed):
                    return (
                        f"Kueue would admit Workload {plain('/'.join(workload.metadata.key), 120)} of ClusterQueue "
                        f"{plain(asked, 60)} with the quota that comes back ({plain(_told(freed), 120)}), and "
                        "its pods could take the room"
                    )
        return ""

    def _given_back(self, victims: Sequence[Pod]) -> dict[str, Freed]:
        """By ClusterQueue, what they hold of its flavors; those whose admission is not seen hold nothing here."""
        found: dict[str, Freed] = {}
        for pod in victims:
            workload = self._of(pod)
            if workload is None:
                continue
            freed = found.setdefault(text(workload.status, "admission", "clusterQueue"), {})
            flavors = _flavors(workload)
            for resource, amount in pod_requests(pod).items():
                if resource in flavors:
                    slot = (resource, flavors[resource])
                    freed[slot] = freed.get(slot, 0) + amount
        return found

    def _of(self, pod: Pod) -> Custom | None:
        """A pod owns its Workload; of a group each of its pods does, and the Workload has the group's name."""
        meta = pod.metadata
        group = meta.labels.get(_GROUP)
        named = self._holds.get((meta.namespace, "group", group)) if group else None
        return named or self._holds.get((meta.namespace, "pod", f"{meta.name}/{meta.uid}"))


def _told(freed: Freed) -> str:
    """Devices by number; of what has none, the flavors: processors and memory come back in units that nobody reads."""
    devices = [f"{amount} {name} of flavor {flavor}" for (name, flavor), amount in sorted(freed.items()) if "/" in name]
    return ", ".join(devices or sorted({f"flavor {flavor}" for _, flavor in freed}))


def _flavors(workload: Custom) -> dict[str, str]:
    """Resource to flavor; without those of which its pod sets have different ones: whose pod it is is not known."""
    found: dict[str, set[str]] = {}
    for part in rows(workload.status, "admission", "podSetAssignments"):
        for resource, flavor in table(part, "flavors").items():
            found.setdefault(resource, set()).add(str(flavor))
    return {resource: next(iter(names)) for resource, names in found.items() if len(names) == 1}


def _queues_of(view: View, pods: Sequence[Pod]) -> set[str]:
    """ClusterQueues in which pods stand, by their labels or by those of what is above them."""
    found: set[str] = set()
    for obj in (*pods, *line_of(view, pods).objects.values()):
        labels = obj.metadata.labels
        if labels.get(_QUEUE_OF_CLUSTER):
            found.add(labels[_QUEUE_OF_CLUSTER])
        found |= {_cluster_queue(view, obj.metadata.namespace, labels[name]) for name in _QUEUE if labels.get(name)}
    return found


def _cluster_queue(view: View, namespace: str, local: str) -> str:
    """Empty where it cannot be seen."""
    queue = view.get(LOCAL_QUEUE, namespace, local)
    if not isinstance(queue, Custom):
        return ""
    return text(queue.spec, "clusterQueue")


def _asked_by(view: View, workload: Object) -> str:
    """The ClusterQueue that a Workload waits in; empty where it does not, or is held."""
    if not isinstance(workload, Custom) or workload.metadata.deletion_timestamp is not None:
        return ""
    if workload.spec.get("active") is False or any(_is_true(workload, kind) for kind in ("QuotaReserved", "Finished")):
        return ""
    space, local = workload.metadata.namespace, text(workload.spec, "queueName")
    name = _cluster_queue(view, space, local)
    held = (view.get(LOCAL_QUEUE, space, local), view.get(CLUSTER_QUEUE, "", name))
    if any(isinstance(each, Custom) and text(each.spec, "stopPolicy") not in ("", "None") for each in held):
        return ""
    return name


def _is_true(workload: Custom, kind: str) -> bool:
    conditions = rows(workload.status, "conditions")
    return any(text(each, "type") == kind and text(each, "status") == "True" for each in conditions)


def _reaches(view: View, asked: str, giver: str, freed: Iterable[tuple[str, str]]) -> bool:
    """Whether what one ClusterQueue gives back can be had in another."""
    if asked == giver:
        return True
    taking, giving = view.get(CLUSTER_QUEUE, "", asked), view.get(CLUSTER_QUEUE, "", giver)
    if not isinstance(taking, Custom) or not isinstance(giving, Custom):
        return False
    cohort = _cohort(taking)
    # A limit on what is borrowed or lent may stand in the way, and how much of it is used is not told here.
    is_free = not any(
        _has_limit(taking, "borrowingLimit", slot) or _has_limit(giving, "lendingLimit", slot) for slot in freed
    )
    return bool(cohort) and cohort == _cohort(giving) and is_free


def _cohort(queue: Custom) -> str:
    return text(queue.spec, "cohortName") or text(queue.spec, "cohort")


def _has_limit(queue: Custom, limit: str, slot: tuple[str, str]) -> bool:
    resource, flavor = slot
    return any(
        text(offered, "name") == flavor and text(quota, "name") == resource and quota.get(limit) is not None
        for group in rows(queue.spec, "resourceGroups")
        for offered in rows(group, "flavors")
        for quota in rows(offered, "resources")
    )


def _is_enough(workload: Object, freed: Mapping[tuple[str, str], int]) -> bool:
    """
    Whether all that it lacks comes back.

    Of several flavors that are named for one resource any will do; all resources have to be met.  The words on several
    pod sets cannot be told apart, and what asks for more than it may ever have is not admitted at all.
    """
    message = _why(workload)
    if _NEVER.search(message) or len(_POD_SET.findall(message)) > 1:
        return False
    lacks: dict[str, list[tuple[str, str]]] = {}
    for resource, flavor, more in _LACKS.findall(message):
        lacks.setdefault(resource, []).append((flavor, more))
    return bool(lacks) and all(
        any(_amount(resource, more) <= freed.get((resource, flavor), 0) for flavor, more in ways)
        for resource, ways in lacks.items()
    )


def _amount(resource: str, more: str) -> float:
    try:
        return units(resource, more)
    except ValueError:
        return float("inf")


def _why(workload: Object) -> str:
    status: dict[str, Any] = workload.status if isinstance(workload, Custom) else {}
    return next(
        (text(each, "message") for each in rows(status, "conditions") if text(each, "type") == "QuotaReserved"), ""
    )
