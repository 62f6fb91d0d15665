"""
Why a pod has no node: computed from pod, nodes, volumes, claims, quotas and gates.

The scheduler's own text is a cross-check, and the fall-back where nodes cannot be seen.  The binding demand is the one
that, dropped alone, would let the pod run.
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

import msgspec

from sevenhop.core.events import SyncState
from sevenhop.core.hops.causes_scheduling import CAUSES
from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis, Evidence
from sevenhop.core.hops.failures_quote import clean
from sevenhop.core.hops.scheduler_text import classify_scheduler_message
from sevenhop.core.hops.scheduling_agreement import Said, contradicts, denies_preemption, scheduler_said
from sevenhop.core.hops.scheduling_binding import Binding, binding
from sevenhop.core.hops.scheduling_gpus import is_accelerator
from sevenhop.core.hops.scheduling_not_created import why_not_created as why_not_created
from sevenhop.core.hops.scheduling_queues import gated, left_to_another
from sevenhop.core.hops.scheduling_surge import Surge, blocked_surge
from sevenhop.core.hops.scheduling_words import evidence, not_preempted, reasons, summary, without_verdict, would_help
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.claims import UNSEEN_HOLDERS
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.evaluation import Evaluation, SchedulingClass, class_of, evaluate
from sevenhop.core.placement.fit import HeldBack, held_back, scheduler_counts, unmodelled
from sevenhop.core.placement.preemption import Preemption, PreemptionReason, preempt
from sevenhop.core.words import counted, inflected

_SHOWN_CHARS = 400

_OF_UNSEEN = frozenset(
    ("dra-unsatisfiable", "dra-claim-missing", "device-class-missing", "pvc-missing", "pvc-unbound", "pv-unavailable",
     "volume-zone", "pvc-in-use", "volume-limit")
)  # fmt: skip
"""Causes that stand in claims and volumes, which a bundle often lacks."""

_TROUBLE_TEXT = {
    # How the scheduler puts it (kube-scheduler 1.36).
    "pvc-missing": 'persistentvolumeclaim "x" not found',
    "pvc-unbound": "pod has unbound immediate PersistentVolumeClaims",
    "pv-unavailable": "persistentvolumeclaim bound to non-existent persistentvolume",
    "dra-claim-missing": "waiting for resource claim to be created",
    "device-class-missing": "device class x does not exist",
}


def why_pending(cluster: Cluster, pod: Pod) -> Diagnosis:
    """
    Why the pod has no node, or category `none` if nothing keeps it.

    Where our verdict and the scheduler's own words contradict each other, the cause is `unknown` and both are shown.
    """
    match held_back(pod):
        case HeldBack.NOT_PENDING:
            return _well("none", "has a node, or will never want one", ())
        case HeldBack.GATED:
            return gated(cluster, pod)
        case HeldBack.OTHER_SCHEDULER:
            return left_to_another(cluster, pod)
        case None:
            pass
    said = scheduler_said(cluster, pod)
    wanted = class_of(cluster, pod)
    if not cluster.order:
        return _without_nodes(cluster, pod, wanted, said)
    if wanted.trouble:
        return _trouble(cluster, pod, wanted, said)
    evaluation = evaluate(cluster, wanted)
    if evaluation.fits:
        return _fits(cluster, pod, evaluation, said)
    verdict = _verdict(cluster, pod, wanted, evaluation)
    if verdict.found is None or verdict.bound is None:
        return _preempting(cluster, pod, evaluation, verdict.room, said)
    return _refused(cluster, pod, verdict.found, verdict.bound, evaluation, said)


class _Verdict(msgspec.Struct, frozen=True, gc=False):
    """What all pods of one class and priority share; nothing is bound where preemption helps."""

    room: Preemption
    bound: Binding | None = None
    found: Diagnosis | None = None


def _verdict(cluster: Cluster, pod: Pod, wanted: SchedulingClass, evaluation: Evaluation) -> _Verdict:
    """Worked out once for two thousand pods that wait for the same, until something changes."""
    spec = pod.spec
    left_out = unmodelled(pod)
    key = (wanted, spec.priority, spec.preemption_policy, pod.status.nominated_node_name, left_out)
    known = cluster.remembered(key)
    if isinstance(known, _Verdict):
        return known
    room = preempt(cluster, pod, evaluation)
    if room.reason in (PreemptionReason.HELPS, PreemptionReason.UNDER_WAY):
        verdict = _Verdict(room)
    else:
        bound, found = _bound(cluster, wanted, evaluation)
        found = msgspec.structs.replace(
            found,
            not_preempted=not_preempted(room, spec.priority or 0),
            unmodelled=(*evaluation.problems, *left_out, *_unseen_kinds(cluster)),
        )
        verdict = _Verdict(room, bound, found)
    cluster.remember(key, verdict)
    return verdict


def _bound(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation) -> tuple[Binding, Diagnosis]:
    """What binds, and all that does not depend on priority; pods of one class and many priorities share it."""
    key = ("bound", wanted)
    known = cast("tuple[Binding, Diagnosis] | None", cluster.remembered(key))
    if known is None:
        bound = binding(cluster, wanted, evaluation)
        known = (bound, _found(cluster, wanted, evaluation, bound))
        cluster.remember(key, known)
    return known


def _found(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation, bound: Binding) -> Diagnosis:
    row = CAUSES[bound.cause]
    counts = reasons(evaluation)
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=bound.cause,
        confidence=_confidence(cluster),
        summary=summary(cluster, wanted, evaluation, bound),
        evidence=evidence(cluster, wanted, evaluation, bound),
        next_steps=row.next_steps,
        excluded=tuple(sorted(counts, key=lambda kv: (not _is_binding(kv[0], bound), -kv[1], kv[0]))),
        would_help=would_help(cluster, wanted, evaluation, bound),
    )


def _refused(
    cluster: Cluster, pod: Pod, found: Diagnosis, bound: Binding, evaluation: Evaluation, said: Said | None
) -> Diagnosis:
    problems = [problem for problem in evaluation.problems if problem != UNSEEN_HOLDERS]
    if bound.cause in ("dra-unsatisfiable", "dra-extended-resource") and problems:
        text = f"whether its devices can be allocated is not known: {', '.join(problems)}"
        return _unknown(cluster, pod, text, evaluation, said)
    if contradicts(said, bound.demands, dict(scheduler_counts(evaluation))):
        text = f"we find that {bound.cause} binds ({found.summary}); the scheduler names other reasons"
        return _unknown(cluster, pod, text, evaluation, said, disagree=True)
    if said is not None:
        found = msgspec.structs.replace(found, evidence=(*found.evidence, *_said_evidence(said)))
    if found.category is Category.RESOURCE:
        surge = blocked_surge(cluster, pod)
        if surge is not None:
            found = _as_surge(found, surge, bound)
    return _with_autoscaler(cluster, pod, found)


def _is_binding(slug: str, bound: Binding) -> bool:
    return slug in bound.demands or slug.removeprefix("insufficient ") in bound.demands


def _as_surge(found: Diagnosis, surge: Surge, bound: Binding) -> Diagnosis:
    row = CAUSES["rollout-surge"]
    found = msgspec.structs.replace(found, hop=row.hop, category=row.category, cause="rollout-surge")
    namespace, name = surge.deployment
    what = bound.resource or "what it needs"
    old = ", ".join(n for _, n in surge.old_pods[:3])
    many, nodes = len(surge.old_pods), counted(len(surge.nodes), "node")
    # What is short for everybody else is no shortage for a rollout that holds it itself.
    now = without_verdict(found.summary, bound)
    if surge.is_ending:
        held = f"{many} of them still {inflected(many, 'holds', 'hold')} {what}"
        return msgspec.structs.replace(
            found,
            summary=f"waits for old pods of its own rollout to end: {held}; then it fits on {nodes}; now it {now}",
            evidence=(
                Evidence(
                    f"{'rayservice' if surge.service else 'deployment'}/{name}", f"old pods that are ending: {old}"
                ),
                *found.evidence,
            ),
            next_steps=("Wait for the old pods to end; one that does not is stuck.",),
            would_help=("The old pods of its own rollout having ended.",),
        )
    if surge.service:
        return msgspec.structs.replace(
            found,
            summary=(
                f"the upgrade of {name} waits for itself: its new cluster needs {what} that {counted(many, 'pod')} of "
                f"its active one {inflected(many, 'holds', 'hold')} until the new one serves; "
                f"without {inflected(many, 'it', 'them')} this pod fits on {nodes}; now it {now}"
            ),
            evidence=(Evidence(f"rayservice/{name}", f"pods of the active cluster: {old}"), *found.evidence),
            next_steps=(
                f"Take back the change of rayservice {namespace}/{name}, or find room for a second cluster meanwhile.",
                "Where it may be down, delete the active RayCluster; an incremental upgrade needs less at once.",
            ),
            would_help=("Capacity for both clusters until the new one serves.",),
        )
    return msgspec.structs.replace(
        found,
        summary=(
            f"the rollout of {name} waits for itself: its new pod needs {what} that {counted(many, 'old pod')} of its "
            f"own {inflected(many, 'holds', 'hold')} (maxSurge {surge.max_surge}); "
            f"without {inflected(many, 'it', 'them')} the new one fits on {nodes}; now it {now}"
        ),
        evidence=(Evidence(f"deployment/{name}", f"maxSurge {surge.max_surge}; old pods {old}"), *found.evidence),
        next_steps=(
            f"Set maxSurge: 0 and maxUnavailable: 1 on deployment {namespace}/{name}; take nobody else's capacity.",
            *row.next_steps,
        ),
        would_help=("maxSurge: 0, so that an old pod leaves before the new one comes.",),
    )


def _with_autoscaler(cluster: Cluster, pod: Pod, found: Diagnosis) -> Diagnosis:
    """
    What an autoscaler says about this very pod.

    On its way is a cause of its own: nobody should act meanwhile.  That it is at its maximum or backs off does not
    change what is short; it is evidence.
    """
    for event in reversed(cluster.events_about(pod.metadata.key)):
        component = event.reporting_component or (event.source.component if event.source else "")
        said = classify_scheduler_message(event.text) if _is_autoscaler(component, event.reason) else None
        if said is None or said.category is not Category.AUTOSCALER:
            continue
        seen = Evidence(f"pod/{pod.metadata.name} event {event.reason}", _shown(event.text))
        if said.cause == "autoscaler-adding" and found.category is Category.RESOURCE and found.cause != "rollout-surge":
            return msgspec.structs.replace(
                found,
                hop=said.hop,
                category=said.category,
                cause=said.cause,
                confidence=Confidence.LIKELY,
                summary=f"a node is being added for it; meanwhile: {found.summary}",
                evidence=(seen, *found.evidence),
                next_steps=said.next_steps,
            )
        return msgspec.structs.replace(
            found, evidence=(*found.evidence, seen), summary=f"{found.summary}; autoscaler: {said.summary}"
        )
    return found


@lru_cache(maxsize=256)  # pods alike are told the same, thousands of times
def _shown(text: str) -> str:
    """Words of others: masked, on one line, cut."""
    return clean(text)[:_SHOWN_CHARS]


def _is_autoscaler(component: str, reason: str) -> bool:
    return "autoscaler" in component or "karpenter" in component or reason in ("TriggeredScaleUp", "NotTriggerScaleUp")


def _trouble(cluster: Cluster, pod: Pod, wanted: SchedulingClass, said: Said | None) -> Diagnosis:
    row = CAUSES[wanted.trouble]
    if contradicts(said, (wanted.trouble,), {_TROUBLE_TEXT[wanted.trouble]: None}):
        text = f"we find that {wanted.trouble_text}; the scheduler names other reasons"
        return _unknown(cluster, pod, text, None, said, disagree=True)
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=wanted.trouble,
        confidence=_confidence(cluster),
        summary=f"{wanted.trouble_text}, so no node is tried",
        evidence=(Evidence(f"pod/{pod.metadata.name}", wanted.trouble_text), *_said_evidence(said)),
        next_steps=row.next_steps,
        not_preempted="other pods are not what it waits for",
        unmodelled=unmodelled(pod),
    )


def _fits(cluster: Cluster, pod: Pod, evaluation: Evaluation, said: Said | None) -> Diagnosis:
    nodes = [cluster.order[i].name for i in evaluation.groups()[0]]
    named = ", ".join(nodes[:3]) + (", …" if len(nodes) > 3 else "")
    where = f"fits on {len(nodes)} of {counted(len(cluster.order), 'node')} ({named})"
    unseen = [p for p in evaluation.problems if p.endswith(("was not seen", "were not seen"))]
    if said is not None:
        by_text = _by_text_alone(pod, evaluation, said) if unseen else None
        if by_text is not None:
            return by_text
        text = f"we find that it {where}; the scheduler's last word is that it fits nowhere (it may be old)"
        return _unknown(cluster, pod, text, evaluation, said, disagree=True)
    if unseen:
        return _unknown(cluster, pod, f"{where} as far as can be seen: {', '.join(unseen)}", evaluation, said)
    found = _well("none", f"{where}; the scheduler has not placed it yet", evaluation.problems)
    confidence = Confidence.LIKELY if evaluation.problems else _confidence(cluster)
    return msgspec.structs.replace(found, confidence=confidence)


def _by_text_alone(pod: Pod, evaluation: Evaluation, said: Said) -> Diagnosis | None:
    """What the scheduler says of claims and volumes that were not collected: its words are all there is."""
    read = classify_scheduler_message(said.text)
    if read is None or read.cause not in _OF_UNSEEN:
        return None
    seen = (Evidence(said.source, _shown(said.text)),)
    return msgspec.structs.replace(read, evidence=seen, unmodelled=(*evaluation.problems, *unmodelled(pod)))


def _preempting(cluster: Cluster, pod: Pod, evaluation: Evaluation, room: Preemption, said: Said | None) -> Diagnosis:
    if room.reason is PreemptionReason.HELPS and denies_preemption(said):
        text = f"we find that evicting pods on {room.node} would make room; the scheduler says that it does not help"
        return _unknown(cluster, pod, text, evaluation, said, disagree=True)
    victims = ", ".join(f"{namespace}/{name}" for namespace, name in room.victims[:3])
    if room.reason is PreemptionReason.UNDER_WAY:
        text = f"waits for pods of lower priority to leave {room.node}, which the scheduler has preempted"
    else:
        text = f"fits on no node as it is; the scheduler makes room on {room.node} by preempting {victims}"
    found = _well("preempting", text, evaluation.problems)
    return msgspec.structs.replace(found, excluded=reasons(evaluation), confidence=_confidence(cluster))


def _without_nodes(cluster: Cluster, pod: Pod, wanted: SchedulingClass, said: Said | None) -> Diagnosis:
    """No node is known: the scheduler's words are all there is."""
    wants_gpu = any(is_accelerator(resource) for resource, _ in wanted.demand.needs)
    texts = [(said.source, said.text)] if said is not None else []
    texts += [
        (f"pod/{pod.metadata.name} event {e.reason}", e.text) for e in reversed(cluster.events_about(pod.metadata.key))
    ]
    for source, text in texts:
        read = classify_scheduler_message(text, wants_gpu=wants_gpu)
        if read is not None:
            read = msgspec.structs.replace(read, evidence=(Evidence(source, _shown(text)),))
            return read if read.category is Category.AUTOSCALER else _with_autoscaler(cluster, pod, read)
    if wanted.trouble:
        found = _trouble(cluster, pod, wanted, said)
        return msgspec.structs.replace(found, confidence=Confidence.LIKELY)
    state = cluster.objects.states.get("Node", SyncState.NOT_SYNCED)
    return _unknown(cluster, pod, f"no node is known ({state}), and the scheduler says nothing", None, said)


def _well(cause: str, text: str, problems: tuple[str, ...]) -> Diagnosis:
    row = CAUSES[cause]
    return Diagnosis(
        hop=None,
        category=row.category,
        cause=cause,
        confidence=Confidence.CERTAIN,
        summary=text,
        next_steps=row.next_steps if cause != "none" else (),
        unmodelled=problems,
    )


def _unknown(
    cluster: Cluster,
    pod: Pod,
    text: str,
    evaluation: Evaluation | None,
    said: Said | None,
    *,
    disagree: bool = False,
) -> Diagnosis:
    row = CAUSES["unknown"]
    problems = evaluation.problems if evaluation is not None else ()
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause="unknown",
        confidence=Confidence.UNKNOWN,
        summary=text,
        evidence=_said_evidence(said),
        next_steps=row.next_steps,
        excluded=reasons(evaluation) if evaluation is not None else (),
        disagreement=_shown(said.text) if disagree and said is not None else "",
        unmodelled=(*problems, *unmodelled(pod), *_unseen_kinds(cluster)),
    )


def _said_evidence(said: Said | None) -> tuple[Evidence, ...]:
    return (Evidence(said.source, _shown(said.text)),) if said is not None else ()


def _confidence(cluster: Cluster) -> Confidence:
    """Computed from objects is certain, if all nodes and pods are known."""
    return Confidence.LIKELY if _unseen_kinds(cluster) else Confidence.CERTAIN


def _unseen_kinds(cluster: Cluster) -> tuple[str, ...]:
    return tuple(
        f"{kind}s are not fully known ({cluster.objects.states.get(kind, SyncState.NOT_SYNCED)})"
        for kind in ("Node", "Pod")
        if not cluster.objects.is_known(kind)
    )
