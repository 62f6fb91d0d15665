"""Deployment, StatefulSet and LeaderWorkerSet by themselves: plain engines, llm-d and LeaderWorkerSet."""

from __future__ import annotations

from collections.abc import Sequence

from sevenhop.core.inventory.scalers import SCALERS, scaled_by
from sevenhop.core.inventory.templates import LWS, replicas_of
from sevenhop.core.inventory.workloads import Component, Framework, Workload
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Edit, ObjectRef
from sevenhop.core.remediation.reduction import Chooser, Conflict, ConflictReason, Ruler, ScalingSpec, View
from sevenhop.frameworks.reading import number, spec_of
from sevenhop.frameworks.scaling.choosers import chooser_of, makers_of
from sevenhop.frameworks.scaling.proven import look, made_by_another
from sevenhop.frameworks.scaling.row import row
from sevenhop.frameworks.scaling.way import Change, Way, called, ref_of

DEPLOYMENT, STATEFUL_SET = "Deployment.apps", "StatefulSet.apps"
LWS_VERSIONS = ("v1",)

_CHOOSERS = {DEPLOYMENT: Chooser.REPLICA_SET, STATEFUL_SET: Chooser.HIGHEST, LWS: Chooser.HIGHEST}


def find(view: View, workload: Workload, component: Component, pods: Sequence[Pod]) -> Way | Conflict:
    target = _target(view, workload, component)
    if isinstance(target, Conflict):
        return target
    kind, name = target
    if kind not in _CHOOSERS:
        return _not_proven(view, ObjectRef(kind, workload.namespace, name))
    obj = look(view, kind, workload.namespace, name, LWS_VERSIONS if kind == LWS else ())
    if isinstance(obj, Conflict):
        return obj
    return made_by_another(kind, obj) or through_scale(kind, obj, pods, floor=pair_floor(workload, component))


def _not_proven(view: View, ref: ObjectRef) -> Conflict:
    """With who made it, as far as that is a kind that people know: a Rollout of Argo makes ReplicaSets, too."""
    obj = view.get(ref.kind, ref.namespace, ref.name)
    owner = obj.metadata.controller() if obj is not None else None
    made = f" (made by {owner.kind} {owner.name})" if owner is not None else ""
    return Conflict(ConflictReason.NOT_PROVEN, f"scaling {called(ref)}{made} is not proven")


def _target(view: View, workload: Workload, component: Component) -> tuple[str, str] | Conflict:
    """(kind, name) of the controller, also where an autoscaler is what the inventory shows as ruling it."""
    scale = component.scale
    if scale is None:
        return Conflict(
            ConflictReason.NO_TARGET,
            f"nothing sets the replicas of {component.name}: a bare pod, a Job or a DaemonSet has no count",
        )
    if scale.kind not in SCALERS:
        return (scale.kind, scale.name)
    scaler = view.get(scale.kind, scale.namespace, scale.name)
    ruled = scaled_by(scaler) if scaler is not None else None
    if ruled is None:
        ref = ObjectRef(scale.kind, workload.namespace, scale.name)
        return Conflict(ConflictReason.UNKNOWN, f"what {called(ref)} scales cannot be seen")
    return ruled


def through_scale(
    kind: str,
    obj: Object,
    pods: Sequence[Pod],
    *,
    marked: ObjectRef | None = None,
    floor: int = 0,
    notes: tuple[str, ...] = (),
) -> Way | Conflict:
    """By `/scale` of a Deployment, a StatefulSet or a LeaderWorkerSet; a group is one replica."""
    target = ref_of(kind, obj)
    replicas = replicas_of(obj)
    if replicas is None:
        return Conflict(ConflictReason.UNKNOWN, f"the replicas of {called(target)} cannot be read")
    size = max(1, number(spec_of(obj), "leaderWorkerTemplate", "size") or 1) if kind == LWS else 1

    def change(after: int, _victims: Sequence[Pod]) -> Change:
        edits = (Edit("/spec/replicas", replicas, after),) if after != replicas else ()
        return Change(edits)

    return Way(
        ruler=Ruler(
            target=target,
            replicas=replicas,
            floor=floor,
            unit_pods=size,
            # Who made the pods tells more than the kind: a StatefulSet's old pods may have been adopted.
            chooser=chooser_of(pods) if pods else _CHOOSERS[kind],
            makers=makers_of(pods),
            notes=notes,
        ),
        marked=marked or target,
        change=change,
        subresource="scale",
    )


def pair_floor(workload: Workload, component: Component) -> int:
    """Prefill without decode, or decode without prefill, serves nobody: one of each stays."""
    pair = {"prefill": "decode", "decode": "prefill"}
    other = pair.get(component.role)
    return 1 if other and any(part.role == other and part.desired != 0 for part in workload.components) else 0


_PATCHES = tuple((kind, sub) for kind in (DEPLOYMENT, STATEFUL_SET) for sub in ("scale", ""))
_PATCHES_LWS = ((LWS, "scale"), (LWS, ""))

PLAIN: ScalingSpec = row(
    Framework.PLAIN,
    "`/scale` of the Deployment or StatefulSet; refused where an autoscaler rules it.",
    _PATCHES,
    find,
)
LLM_D: ScalingSpec = row(
    Framework.LLM_D,
    "`/scale` of the Deployment, StatefulSet or LeaderWorkerSet; refused where an HPA, a ScaledObject or a "
    "VariantAutoscaling rules it. One prefill and one decode replica stay.",
    (*_PATCHES, *_PATCHES_LWS),
    find,
    (LWS,),
)
LEADER_WORKER_SET: ScalingSpec = row(
    Framework.LWS,
    "`/scale` of the LeaderWorkerSet: whole groups, the highest first. A DisaggregatedSet is refused.",
    _PATCHES_LWS,
    find,
    (LWS,),
)
