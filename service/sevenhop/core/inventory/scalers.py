"""Who else sets a replica count: autoscalers, by the object that they scale."""

from __future__ import annotations

from sevenhop.core.objects.base import Custom, Object
from sevenhop.core.objects.cluster import HorizontalPodAutoscaler
from sevenhop.core.objects.kinds import kind_of

SCALERS: tuple[str, ...] = (
    "HorizontalPodAutoscaler.autoscaling",
    "ScaledObject.keda.sh",
    "PodAutoscaler.autoscaling.aibrix.ai",
    "VariantAutoscaling.llmd.ai",
)


def scaled_by(scaler: Object) -> tuple[str, str] | None:
    """(kind, name) of what an autoscaler scales; None if it does not say."""
    if isinstance(scaler, HorizontalPodAutoscaler):
        target = scaler.spec.scale_target_ref
        return _target(target.api_version, target.kind, target.name)
    if isinstance(scaler, Custom):
        ref = scaler.spec.get("scaleTargetRef")
        if isinstance(ref, dict):
            # KEDA scales a Deployment where neither kind nor version is given.
            return _target(
                str(ref.get("apiVersion", "apps/v1")), str(ref.get("kind", "Deployment")), str(ref.get("name", ""))
            )
    return None


def _target(api_version: str, kind: str, name: str) -> tuple[str, str] | None:
    known = kind_of(api_version, kind)
    if not name:
        return None
    return (known.name if known else kind, name)
