"""Would it fit: the nodes on which one pod could run now, and what keeps it from each of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.constraints import first_reasons, first_slug
from sevenhop.core.placement.evaluation import Evaluation, class_of, evaluate

DEFAULT_SCHEDULER = "default-scheduler"


class HeldBack(StrEnum):
    """Why the scheduler does not look at a pod at all."""

    NOT_PENDING = "not-pending"
    GATED = "scheduling-gate"
    OTHER_SCHEDULER = "other-scheduler"


class Fit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        nodes: Names of the nodes that fit, in the cluster's order.
        held_back: Set if no scheduler of ours would try; `nodes` is then empty.
        trouble: Slug of what keeps the pod from all nodes alike (``pvc-missing``, …); empty if nothing does.
        trouble_text: The same in words.
        excluded: First constraint that excludes a node, and of how many, most first.
        failing: Node name to its first failing constraint.
        unmodelled: What was not taken into account.
    """

    nodes: tuple[str, ...] = ()
    held_back: HeldBack | None = None
    trouble: str = ""
    trouble_text: str = ""
    excluded: tuple[tuple[str, int], ...] = ()
    failing: dict[str, str] = {}
    unmodelled: tuple[str, ...] = ()


def held_back(pod: Pod) -> HeldBack | None:
    """Whether a scheduler of ours would try this pod; None if it would."""
    if pod.spec.node_name or pod.is_finished or pod.is_terminating:
        return HeldBack.NOT_PENDING
    if pod.spec.scheduling_gates:
        return HeldBack.GATED
    if pod.spec.scheduler_name != DEFAULT_SCHEDULER:
        return HeldBack.OTHER_SCHEDULER
    return None


def fits(cluster: Cluster, pod: Pod, *, without: Iterable[Key] = ()) -> Fit:
    """
    Where the pod would fit, as kube-scheduler's filters answer; preemption is not part of it.

    Args:
        without: Pods to leave out, as if they were gone with what their claims held.
    """
    reason = held_back(pod)
    if reason is not None:
        return Fit(held_back=reason)
    with cluster.removed(without):
        wanted = class_of(cluster, pod)
        if wanted.trouble:
            return Fit(trouble=wanted.trouble, trouble_text=wanted.trouble_text, unmodelled=unmodelled(pod))
        evaluation = evaluate(cluster, wanted)
        failing = {
            view.name: first_slug(mask, evaluation.resources)
            for view, mask in zip(cluster.order, evaluation.masks, strict=True)
            if mask
        }
        return Fit(
            nodes=tuple(v.name for v, mask in zip(cluster.order, evaluation.masks, strict=True) if not mask),
            excluded=tuple(Counter(failing.values()).most_common()),
            failing=failing,
            unmodelled=(*evaluation.problems, *unmodelled(pod)),
        )


def unmodelled(pod: Pod) -> tuple[str, ...]:
    """What about this pod is not taken into account at all."""
    out = []
    if any(v.persistent_volume_claim or v.ephemeral or v.csi for v in pod.spec.volumes):
        out.append("attach limits of volume drivers")
    if pod.spec.scheduling_group is not None:
        out.append("gang scheduling of the pod's scheduling group")
    return tuple(out)


def scheduler_counts(evaluation: Evaluation) -> dict[str, int]:
    """Our verdict in the scheduler's own texts: reason to number of nodes."""
    out: Counter[str] = Counter()
    for mask, nodes in evaluation.counts().items():
        if mask:
            for text in first_reasons(mask, evaluation.resources):
                out[text] += nodes
    return dict(out)
