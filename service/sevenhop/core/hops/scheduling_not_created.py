"""Why pods do not even exist: what the API server refuses to a ReplicaSet, StatefulSet or Job."""

from __future__ import annotations

from collections.abc import Iterable

from sevenhop.core.hops.causes_scheduling import CAUSES
from sevenhop.core.hops.diagnosis import Confidence, Diagnosis, Evidence
from sevenhop.core.hops.failures_quote import clean
from sevenhop.core.hops.scheduler_text import classify_scheduler_message
from sevenhop.core.hops.scheduling_pod_security import ENFORCE, violations
from sevenhop.core.hops.scheduling_quota import Refusal, limit_refusals, quota_refusals
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.base import Object, condition
from sevenhop.core.objects.cluster import Controller, Event
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.events_about import recency
from sevenhop.core.words import counted

OWNERS = ("ReplicaSet.apps", "StatefulSet.apps", "Job.batch")
"""Kinds that make pods and for which `why_not_created` answers."""

_PRIORITY_CLASSES = "PriorityClass.scheduling.k8s.io"
_BUILT_IN = ("system-cluster-critical", "system-node-critical")
_SHOWN_CHARS = 400


def why_not_created(
    objects: Objects, kind: str, obj: Controller, *, events: Iterable[Object] | None = None
) -> Diagnosis | None:
    """
    What keeps the API server from making the pods that are missing; None if none is missing or nothing refuses them.

    Computed from quotas, limits, classes and namespace labels; the controller's condition and events say it too, and
    are all there is for what cannot be computed (webhooks, service accounts).

    Args:
        kind: One of `OWNERS`.
        events: Those about the controller, where the caller has them at hand; else all are searched.
    """
    missing = missing_pods(objects, kind, obj)
    if not missing:
        return None
    found = refusals(objects, obj)
    said = _own_words(kind, obj, objects.of("Event").values() if events is None else events)
    if said is not None:
        source, text = said
        read = classify_scheduler_message(text)
        cause = "resource-quota" if read is not None and read.cause == "quota-needs-requests" else ""
        cause = cause or (read.cause if read is not None else "")
        same = next((r for r in found if r.cause == cause), None)
        if same is not None:
            return _diagnosis(obj, kind, missing, same, Evidence(source, clean(text)[:_SHOWN_CHARS]))
        if read is not None and cause in CAUSES:
            stated = Refusal(cause, source, read.summary)
            return _diagnosis(obj, kind, missing, stated, None, text=text)
    return _diagnosis(obj, kind, missing, found[0], None) if found else None


def missing_pods(objects: Objects, kind: str, obj: Controller) -> int:
    """How many pods the controller wants and does not have; 0 for one that is suspended, done or being deleted."""
    if obj.metadata.deletion_timestamp is not None or obj.spec.suspend:
        return 0
    if kind == "Job.batch":
        over = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
        if any(c.status == "True" and c.type in over for c in obj.status.conditions):
            return 0
        wanted = 1 if obj.spec.parallelism is None else obj.spec.parallelism
    else:
        wanted = 1 if obj.spec.replicas is None else obj.spec.replicas
    pods = [child for child_kind, child in objects.children(obj.metadata.uid) if child_kind == "Pod"]
    have = sum(1 for pod in pods if isinstance(pod, Pod) and not pod.is_terminating)
    if not objects.is_known("Pod"):
        have = max(have, obj.status.replicas)
    return max(0, wanted - have)


def refusals(objects: Objects, obj: Controller) -> list[Refusal]:
    """All that admission has against the next pod of the controller, in the order in which it is asked."""
    namespace, spec = obj.metadata.namespace, obj.spec.template.spec
    out: list[Refusal] = []
    name = spec.priority_class_name
    if name and not _exists(objects, name) and _classes_were_collected(objects):
        text = f"PriorityClass {name} does not exist"
        out.append(Refusal("priority-class-missing", f"priorityclass/{name}", text))
    out += limit_refusals(objects, namespace, spec)
    found = objects.get("Namespace", "", namespace)
    level = found.metadata.labels.get(ENFORCE, "") if found is not None else ""
    against = violations(level, spec)
    if against:
        some = "; ".join(against[:3]) + (f"; and {len(against) - 3} more" if len(against) > 3 else "")
        text = f"namespace {namespace} enforces Pod Security {level}: {some}"
        out.append(Refusal("pod-security", f"namespace/{namespace}", text))
    out += quota_refusals(objects, namespace, spec)
    return out


def _exists(objects: Objects, priority_class: str) -> bool:
    return priority_class in _BUILT_IN or ("", priority_class) in objects.of(_PRIORITY_CLASSES)


def _classes_were_collected(objects: Objects) -> bool:
    """Not if none is here and yet some pod was admitted with one: then absence proves nothing."""
    if not objects.is_known(_PRIORITY_CLASSES):
        return False
    if objects.of(_PRIORITY_CLASSES):
        return True
    names = {pod.spec.priority_class_name for pod in objects.pods().values()}
    return all(_exists(objects, name) for name in names if name)


def _own_words(kind: str, obj: Controller, events: Iterable[Object]) -> tuple[str, str] | None:
    """The controller's last complaint: its condition, else its newest FailedCreate event."""
    name = f"{kind.partition('.')[0].lower()}/{obj.metadata.name}"
    failure = condition(obj.status.conditions, "ReplicaFailure")
    if failure is not None and failure.status == "True" and failure.message:
        return f"{name} condition ReplicaFailure", failure.message
    newest: Event | None = None
    for event in events:
        if not isinstance(event, Event) or event.reason != "FailedCreate":
            continue
        about = event.about
        same_uid = about.uid == obj.metadata.uid if about.uid else True
        if (about.namespace, about.name) != obj.metadata.key or about.kind != kind.partition(".")[0] or not same_uid:
            continue
        if newest is None or recency(event) > recency(newest):
            newest = event
    return (f"{name} event FailedCreate", newest.text) if newest is not None else None


def _diagnosis(
    obj: Controller, kind: str, missing: int, refusal: Refusal, also: Evidence | None, *, text: str = ""
) -> Diagnosis:
    row = CAUSES[refusal.cause]
    pods = f"{counted(missing, 'pod')} of {kind.partition('.')[0]} {obj.metadata.name}"
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=refusal.cause,
        confidence=Confidence.LIKELY if text else Confidence.CERTAIN,
        summary=f"{pods} may not be created: {refusal.text}",
        evidence=(
            Evidence(refusal.source, clean(text)[:_SHOWN_CHARS] or refusal.text),
            *((also,) if also is not None else ()),
        ),
        next_steps=row.next_steps,
    )
