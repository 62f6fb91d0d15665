"""Who else sets the replicas: HPA, KEDA, AIBrix, llm-d's variant autoscaler."""

from __future__ import annotations

from collections.abc import Collection

from sevenhop.core.inventory.scalers import SCALERS, scaled_by
from sevenhop.core.objects.base import Custom, Object
from sevenhop.core.objects.cluster import HorizontalPodAutoscaler
from sevenhop.core.objects.kinds import kind_of
from sevenhop.core.remediation.action import ObjectRef
from sevenhop.core.remediation.reduction import Conflict, ConflictReason, View
from sevenhop.frameworks.reading import number, text
from sevenhop.frameworks.scaling.way import in_namespace

_KEDA = "ScaledObject.keda.sh"
_PAUSED = "autoscaling.keda.sh/paused"
_PAUSED_AT = "autoscaling.keda.sh/paused-replicas"


def autoscaled(
    view: View, namespace: str, scaled: Collection[tuple[str, str]], obeys: Collection[ObjectRef] = ()
) -> Conflict | None:
    """
    The first autoscaler of any of these objects.

    Also where its least is low enough: what it went up to once it goes up to again.

    Args:
        scaled: (kind, name) of what is reduced, of what is above it, and of what is between it and its pods.
        obeys: Makers of autoscalers that take their limits from what is patched.
    """
    for kind in reversed(SCALERS):  # what makes an HPA is named before the HPA: that is what people edit
        for own_name, scaler in in_namespace(view, kind, namespace):
            if _is_asleep(kind, scaler):
                continue
            target = scaled_by(scaler)
            if target is None or target not in scaled or _obeys(view, scaler, obeys):
                continue
            name = f"{kind.partition('.')[0]} {own_name}"
            ruled = f"{target[0].partition('.')[0]} {target[1]}"
            return Conflict(
                ConflictReason.AUTOSCALED,
                f"{name}{_limits(scaler)} scales {ruled} and would set it back; lower its maximum, or pause it",
            )
    return None


def _is_asleep(kind: str, scaler: Object) -> bool:
    """KEDA leaves what is paused alone, unless it is paused at a number; https://keda.sh/docs/latest/concepts."""
    notes = scaler.metadata.annotations
    return kind == _KEDA and _PAUSED_AT not in notes and notes.get(_PAUSED, "").lower() == "true"


def _obeys(view: View, scaler: Object, makers: Collection[ObjectRef]) -> bool:
    """KServe makes a ScaledObject, and KEDA an HPA for it."""
    at: Object | None = scaler
    for _ in range(3):
        owner = at.metadata.controller() if at is not None else None
        row = kind_of(owner.api_version, owner.kind) if owner is not None else None
        if owner is None or row is None:
            return False
        namespace = scaler.metadata.namespace
        if any((row.name, namespace, owner.name) == (ref.kind, ref.namespace, ref.name) for ref in makers):
            return True
        at = view.get(row.name, namespace, owner.name)
    return False


def _limits(scaler: Object) -> str:
    if isinstance(scaler, HorizontalPodAutoscaler):
        least = 1 if scaler.spec.min_replicas is None else scaler.spec.min_replicas
        return f" ({least}–{scaler.spec.max_replicas})"
    if not isinstance(scaler, Custom):
        return ""
    held = scaler.metadata.annotations.get(_PAUSED_AT)
    if held is not None:
        return f" (paused at {held})"
    least_stated = number(scaler.spec, "minReplicaCount") or number(scaler.spec, "minReplicas")
    most = text(scaler.spec, "maxReplicaCount") or text(scaler.spec, "maxReplicas")
    return f" ({least_stated or 0}–{most})" if most else ""
