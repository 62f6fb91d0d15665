"""Pods that no scheduler looks at yet: gates of queues and gangs, and pods left to another scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sevenhop.core.hops.causes_scheduling import CAUSES
from sevenhop.core.hops.diagnosis import Confidence, Diagnosis, Evidence
from sevenhop.core.hops.scheduler_text import classify_scheduler_message
from sevenhop.core.hops.scheduling_binding import binding
from sevenhop.core.hops.scheduling_words import evidence as evidence_for
from sevenhop.core.hops.scheduling_words import reasons, summary, would_help
from sevenhop.core.objects.base import Custom, condition
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.evaluation import class_of, evaluate

KUEUE_GATES = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")
_KUEUE_WORKLOADS = "Workload.kueue.x-k8s.io"
_KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
_KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
_SHORT_BY_TEXT = frozenset(("gpu-shortage", "gpu-unavailable", "gpu-fragmentation", "device-plugin-suspected"))
_GROVE_GATE = "grove.io/podgang-pending-creation"

_POD_GROUPS = {
    "scheduling.k8s.io/group-name": "PodGroup.scheduling.volcano.sh",
    "pod-group-name": "PodGroup.scheduling.run.ai",
}
"""Annotation of a pod that names its PodGroup: kind of the PodGroup."""


def gated(cluster: Cluster, pod: Pod) -> Diagnosis:
    """Why a pod with scheduling gates is held, with the queue named where one holds it."""
    gates = [g.name for g in pod.spec.scheduling_gates]
    evidence = [Evidence(f"pod/{pod.metadata.name}", f"schedulingGates {', '.join(gates)}")]
    if any(g in KUEUE_GATES for g in gates):
        workload = _kueue_workload(cluster, pod)
        if workload is not None:
            return _kueue(workload, evidence)
    if _GROVE_GATE in gates:
        text = "held until all pods of its gang exist"
        return _computed("gang-waiting", text, evidence)
    queue = pod.metadata.labels.get(_KUEUE_QUEUE)
    rest = f" (queue {queue})" if queue else ""
    return _computed("scheduling-gate", f"held by scheduling gate {', '.join(gates)}{rest}", evidence)


def left_to_another(cluster: Cluster, pod: Pod) -> Diagnosis:
    """
    A pod of another scheduler, which nobody here simulates.

    Its own words are taken where there are some: on the pod, or on its PodGroup.
    """
    name = pod.spec.scheduler_name
    for source, text in _own_words(cluster, pod):
        said = classify_scheduler_message(text)
        if said is not None and said.confidence is not Confidence.UNKNOWN:
            more = (Evidence(source, text[:200]),)
            return _counted(cluster, pod, said, more) or _with_evidence(said, more)
    state = (
        "it has placed other pods here" if cluster.placed_by(name) else "no pod here was placed by it: is it installed?"
    )
    evidence = [Evidence(f"pod/{pod.metadata.name}", f"schedulerName {name}; {state}")]
    return _computed("other-scheduler", f"left to the scheduler {name}; {state}", evidence)


def _counted(cluster: Cluster, pod: Pod, said: Diagnosis, more: tuple[Evidence, ...]) -> Diagnosis | None:
    """
    What another scheduler says of short GPUs, counted on the nodes where they are visible; None where it is not that.

    Its text tells neither too few from too scattered, nor either from a pod that is too large.
    """
    if not cluster.order or said.cause not in _SHORT_BY_TEXT:
        return None
    wanted = class_of(cluster, pod)
    evaluation = evaluate(cluster, wanted) if not wanted.trouble else None
    if evaluation is None or evaluation.fits:
        return None
    bound = binding(cluster, wanted, evaluation)
    if bound.gpus is None:
        return None
    row = CAUSES[bound.cause]
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=bound.cause,
        confidence=Confidence.LIKELY,
        summary=f"{summary(cluster, wanted, evaluation, bound)}; the scheduler {pod.spec.scheduler_name} decides",
        evidence=(*more, *evidence_for(cluster, wanted, evaluation, bound)),
        next_steps=row.next_steps,
        excluded=tuple(reasons(evaluation)),
        would_help=would_help(cluster, wanted, evaluation, bound),
        unmodelled=(f"the scheduler {pod.spec.scheduler_name}", *evaluation.problems),
    )


def kueue_finding(workload: Custom) -> Diagnosis | None:
    """Why a Kueue Workload is not admitted; None if it is, or has finished."""
    if _condition(workload, "Admitted")[0] == "True" or _condition(workload, "Finished")[0] == "True":
        return None
    return _kueue(workload, [])


def _kueue(workload: Custom, evidence: list[Evidence]) -> Diagnosis:
    queue = str(workload.spec.get("queueName", ""))
    named = f"queue {queue}" if queue else "its queue"
    status, message = _condition(workload, "QuotaReserved")
    source = f"workload.kueue.x-k8s.io/{workload.metadata.name}"
    if status == "True":
        checks = "has quota, and waits for admission checks"
        return _computed("kueue-waiting", f"{named}: {checks}", [*evidence, Evidence(source, checks)])
    if workload.spec.get("active") is False:
        return _computed("queue-misconfigured", f"{named}: the workload is deactivated", evidence)
    said = classify_scheduler_message(message) if message else None
    if said is None or said.confidence is Confidence.UNKNOWN:
        seen = Evidence(source, message or "no condition")
        return _computed("kueue-waiting", f"waits for quota in {named}", [*evidence, seen])
    more = (*evidence, Evidence(source, message[:200]))
    return _with_evidence(said, more, summary=f"{named}: {said.summary}")


def _with_evidence(said: Diagnosis, more: tuple[Evidence, ...], summary: str = "") -> Diagnosis:
    return Diagnosis(
        hop=said.hop,
        category=said.category,
        cause=said.cause,
        confidence=said.confidence,
        summary=summary or said.summary,
        evidence=more,
        next_steps=said.next_steps,
        excluded=said.excluded,
    )


def _kueue_workload(cluster: Cluster, pod: Pod) -> Custom | None:
    """By the name of the pod's group, else what the pod or one of its owners controls."""
    objects = cluster.objects
    group = pod.metadata.labels.get(_KUEUE_GROUP)
    named = objects.custom(_KUEUE_WORKLOADS).get((pod.metadata.namespace, group)) if group else None
    if named is not None:
        return named
    uid, seen = pod.metadata.uid, set[str]()
    reference = pod.metadata.controller()
    while uid and uid not in seen:
        seen.add(uid)
        for kind, child in objects.children(uid):
            if kind == _KUEUE_WORKLOADS and isinstance(child, Custom):
                return child
        uid = reference.uid if reference is not None else ""
        found = objects.by_uid(uid)
        reference = found[1].metadata.controller() if found is not None else None
    return None


def _own_words(cluster: Cluster, pod: Pod) -> Iterator[tuple[str, str]]:
    scheduled = condition(pod.status.conditions, "PodScheduled")
    if scheduled is not None and scheduled.status == "False" and scheduled.message:
        yield f"pod/{pod.metadata.name} condition PodScheduled", scheduled.message
    for annotation, kind in _POD_GROUPS.items():
        name = pod.metadata.annotations.get(annotation)
        group = cluster.objects.custom(kind).get((pod.metadata.namespace, name)) if name else None
        for each in _conditions(group) if group is not None else ():
            # Volcano: Unschedulable is True while the gang waits; KAI writes UnschedulableOnNodePool.
            if str(each.get("type", "")).startswith("Unschedulable") and each.get("status") == "True":
                yield f"podgroup/{name}", str(each.get("message", ""))
    for event in reversed(cluster.events_about(pod.metadata.key)):
        if event.reason in ("FailedScheduling", "Unschedulable"):
            yield f"pod/{pod.metadata.name} event {event.reason}", event.text


def _conditions(custom: Custom) -> list[dict[str, Any]]:
    found = custom.status.get("conditions") or custom.status.get("schedulingConditions") or []
    return [c for c in found if isinstance(c, dict)]


def _condition(custom: Custom, kind: str) -> tuple[str, str]:
    for each in _conditions(custom):
        if each.get("type") == kind:
            return str(each.get("status", "")), str(each.get("message", ""))
    return "", ""


def _computed(cause: str, summary: str, evidence: list[Evidence]) -> Diagnosis:
    row = CAUSES[cause]
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=cause,
        confidence=Confidence.CERTAIN,
        summary=summary,
        evidence=tuple(evidence),
        next_steps=row.next_steps,
    )
