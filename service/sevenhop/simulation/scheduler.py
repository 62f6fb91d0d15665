"""A scheduler that decides as the core's placement does, and speaks as kube-scheduler 1.36 does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.claims import ClaimTrouble
from sevenhop.core.placement.evaluation import Evaluation, SchedulingClass, class_of, evaluate
from sevenhop.core.placement.fit import HeldBack, held_back, scheduler_counts
from sevenhop.core.placement.preemption import Preemption, PreemptionReason, preempt
from sevenhop.core.placement.volumes import VolumeTrouble
from sevenhop.core.placement.what_if import queue_order
from sevenhop.simulation.mirror import Mirror
from sevenhop.simulation.store import Data, Store

_SOURCE = {"component": "default-scheduler"}
_EVENT_TEXT_BYTES = 1024
"""An event's message is cut here, with " ..." at its end; the condition's is whole."""


class Scheduler:
    """
    Binds pending pods, or says why not: condition and Event with the texts of kube-scheduler 1.36.

    Which of several fitting nodes is taken is ours (the most free cpu, then the name): its scores are not modelled.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._mirror = Mirror(store)

    def step(self) -> datetime | None:
        """Try every waiting pod once, in the order of the queue, each on what the one before left."""
        if not self._mirror.sync():
            return None
        waiting = [pod for pod in self._mirror.objects.pods().values() if _is_ours(pod)]
        for pod in sorted(waiting, key=queue_order):
            self._try(pod)
            self._mirror.sync()
        return None

    def _try(self, pod: Pod) -> None:
        if held_back(pod) is HeldBack.GATED:
            self._refuse(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates", event=False)
            return
        cluster = self._mirror.cluster
        wanted = class_of(cluster, pod)
        nodes = len(cluster.order)
        if not nodes:
            self._refuse(pod, "Unschedulable", "no nodes available to schedule pods")
            return
        if wanted.trouble:
            text = self._trouble_text(pod, wanted)
            if text:
                self._refuse(pod, "Unschedulable", f"0/{nodes} nodes are available: {text}")
            return
        evaluation = evaluate(cluster, wanted)
        fitting = [view for view, mask in zip(cluster.order, evaluation.masks, strict=True) if not mask]
        if fitting:
            best = min(fitting, key=lambda view: (-view.free.get("cpu", 0), view.name))
            self._bind(pod, best.name)
            return
        room = preempt(cluster, pod, evaluation)
        self._refuse(
            pod, "Unschedulable", unschedulable_text(evaluation, room, has_claims=bool(pod.spec.resource_claims))
        )
        if room.reason is PreemptionReason.HELPS and room.node is not None:
            self._make_room(pod, room.node, room.victims)

    def _trouble_text(self, pod: Pod, wanted: SchedulingClass) -> str:
        """What keeps a pod from all nodes alike, in the scheduler's words; empty where it says nothing at all."""
        nodes = len(self._mirror.cluster.order)
        never = "not eligible due to preemptionPolicy=Never."
        useless = f"0/{nodes} nodes are available: {nodes} Preemption is not helpful for scheduling."
        tail = f"no new claims to deallocate, preemption: {never if pod.spec.preemption_policy == 'Never' else useless}"
        match wanted.trouble:
            case VolumeTrouble.MISSING:
                return f'persistentvolumeclaim "{self._missing_claim(pod)}" not found. not found'
            case VolumeTrouble.UNBOUND:
                return "pod has unbound immediate PersistentVolumeClaims. not found"
            case VolumeTrouble.UNAVAILABLE:
                return f"{nodes} node(s) didn't find available persistent volumes to bind. {tail}"
            case ClaimTrouble.CLASS_MISSING:
                return f"{wanted.trouble_text}. {tail}"
            case _:
                return ""  # a claim that is missing: neither condition nor event, seen on 1.36

    def _missing_claim(self, pod: Pod) -> str:
        names = [v.persistent_volume_claim.claim_name for v in pod.spec.volumes if v.persistent_volume_claim]
        names += [f"{pod.metadata.name}-{v.name}" for v in pod.spec.volumes if v.ephemeral]
        known = self._mirror.objects.of("PersistentVolumeClaim")
        return next((name for name in names if (pod.metadata.namespace, name) not in known), "")

    def _bind(self, pod: Pod, node: str) -> None:
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _time(self._clock())}

        def bound(data: Data) -> Data:
            status = {**data["status"], "conditions": _with_condition(data, scheduled)}
            status.pop("nominatedNodeName", None)
            return {**data, "spec": {**data["spec"], "nodeName": node}, "status": status}

        self._store.change("Pod", *pod.key, bound)
        place = "/".join(pod.key)
        record(
            self._store,
            self._clock(),
            "Pod",
            pod.metadata,
            "Normal",
            "Scheduled",
            f"Successfully assigned {place} to {node}",
        )

    def _refuse(self, pod: Pod, reason: str, message: str, *, event: bool = True) -> None:
        known = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        if known is not None and (known.reason, known.message) == (reason, message):
            return
        # The time of the transition stays while the status does, as the API's conventions want it.
        since = known.last_transition_time if known is not None and known.status == "False" else None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": _time(since or self._clock()),
        }
        self._store.change(
            "Pod",
            *pod.key,
            lambda data: {**data, "status": {**data["status"], "conditions": _with_condition(data, condition)}},
        )
        if event:
            record(self._store, self._clock(), "Pod", pod.metadata, "Warning", "FailedScheduling", message)

    def _make_room(self, pod: Pod, node: str, victims: Sequence[tuple[str, str]]) -> None:
        """Evict, and hold the place: the pod is bound once they are gone."""
        self._store.change(
            "Pod", *pod.key, lambda data: {**data, "status": {**data["status"], "nominatedNodeName": node}}
        )
        for victim in victims:
            meta = self._mirror.objects.pods()[victim].metadata
            text = f"Preempted by pod {pod.metadata.uid} on node {node}"
            record(self._store, self._clock(), "Pod", meta, "Normal", "Preempted", text)
            self._store.delete("Pod", *victim)


def unschedulable_text(evaluation: Evaluation, room: Preemption, *, has_claims: bool) -> str:
    """The condition's message, as kube-scheduler 1.36 writes it with DRA on (its default)."""
    nodes = len(evaluation.masks)
    counts = scheduler_counts(evaluation)
    head = f"0/{nodes} nodes are available: {_histogram(counts)}."
    if room.reason is PreemptionReason.HELPS:
        return head
    lead = "still not schedulable" if has_claims or evaluation.delegated else "no new claims to deallocate"
    if room.reason is PreemptionReason.NEVER:
        tail = "not eligible due to preemptionPolicy=Never."
    elif room.reason is PreemptionReason.UNDER_WAY:
        tail = "not eligible due to a terminating pod on the nominated node."
    else:
        useless = nodes - room.candidates
        answers = {
            "Preemption is not helpful for scheduling": useless,
            "No preemption victims found for incoming pod": room.candidates,
        }
        tail = f"0/{nodes} nodes are available: {_histogram(answers)}."
    return f"{head} {lead}, preemption: {tail}"


def _histogram(counts: dict[str, int]) -> str:
    return ", ".join(sorted(f"{nodes} {text}" for text, nodes in counts.items() if nodes))


def record(store: Store, at: datetime, kind: str, about: Any, severity: str, reason: str, message: str) -> None:
    """Write a Kubernetes Event about an object, or count one that is there."""
    namespace = about.namespace or "default"
    raw = message.encode()
    if len(raw) > _EVENT_TEXT_BYTES:
        message = raw[: _EVENT_TEXT_BYTES - 4].decode("utf-8", "ignore") + " ..."
    digest = sum(ord(letter) * (n + 1) for n, letter in enumerate(reason + message)) % 16**8
    name = f"{about.name}.{digest:08x}"
    stamp = _time(at)
    if store.find("Event", namespace, name) is not None:
        store.change("Event", namespace, name, lambda e: {**e, "count": e["count"] + 1, "lastTimestamp": stamp})
        return
    store.create(
        "Event",
        {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {"kind": kind, "namespace": about.namespace, "name": about.name, "uid": about.uid},
            "type": severity,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "eventTime": None,
            "source": _SOURCE,
        },
    )


def _is_ours(pod: Pod) -> bool:
    return held_back(pod) in (None, HeldBack.GATED)


def _with_condition(data: Data, condition: Data) -> list[Data]:
    others = [c for c in data["status"].get("conditions") or () if c["type"] != condition["type"]]
    return [*others, condition]


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
