"""Who else sets a replica count: autoscalers, by the object that they scale."""

from __future__ import annotations

from sevenhop.core.inventory.framework import Scaler
from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.base import Custom, Object
from sevenhop.core.objects.cluster import HorizontalPodAutoscaler
from sevenhop.core.objects.kinds import kind_of

SCALERS: tuple[str, ...] = (
    "HorizontalPodAutoscaler.autoscaling",
    "ScaledObject.keda.sh",
    "PodAutoscaler.autoscaling.aibrix.ai",
    "VariantAutoscaling.llmd.ai",
)


class Scalers:
    """Which autoscalers scale an object, by its namespace, kind and name."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str, str], dict[tuple[str, Key], None]] = {}

    def __len__(self) -> int:
        """Of objects that anything scales."""
        return len(self._of)

    def of(self, namespace: str, kind: str, name: str) -> Scaler | None:
        """The first of those that scale it; None if nothing does."""
        here = self._of.get((namespace, kind, name))
        if not here:
            return None
        (scaler_kind, key) = min(here)
        return Scaler(scaler_kind, key[1])

    def put(self, kind: str, key: Key, before: Object | None, after: Object | None) -> list[tuple[str, Key]]:
        """An autoscaler changed, came or went; returns (kind, key) of what it scaled, and of what it scales now."""
        found = []
        for obj, is_there in ((before, False), (after, True)):
            target = scaled_by(obj) if obj is not None else None
            if target is None:
                continue
            slot = (key[0], *target)
            here = self._of.setdefault(slot, {})
            if is_there:
                here[(kind, key)] = None
            else:
                here.pop((kind, key), None)
            if not here:
                del self._of[slot]
            found.append((target[0], (key[0], target[1])))
        return found


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
