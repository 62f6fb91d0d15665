"""What owners say: leave it alone, it is in Git, it has given already."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sevenhop.core.incidents.text import plain
from sevenhop.core.objects.base import Object
from sevenhop.core.remediation.action import Edit, ObjectRef
from sevenhop.core.remediation.borrowed import BORROWED, decode_borrow
from sevenhop.core.remediation.consent import ALLOW, REMEDIATION, refusal_in
from sevenhop.core.remediation.reduction import Conflict, ConflictReason
from sevenhop.frameworks.scaling.way import called

_ARGO_ID = "argocd.argoproj.io/tracking-id"
_ARGO_LABEL = "argocd.argoproj.io/instance"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_INSTANCE = "app.kubernetes.io/instance"
_HELM = "meta.helm.sh/release-name"
# https://cloud.google.com/kubernetes-engine/config-sync/docs/reference/label-and-annotations
_CONFIG_SYNC = "configmanagement.gke.io/managed"
_FLUX = ("kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/name")
# On each object that these bring from another cluster or from Git: pkg/util/constants.go of Karmada, the annotations of
# Rancher's wrangler `apply` (k3s writes an empty id on what it only applies at its start), lib/k8s_utils of Sveltos.
_FROM_ABOVE = "Karmada"
_KARMADA = "karmada.io/managed"
_FLEET = "objectset.rio.cattle.io/id"
_SVELTOS = "projectsveltos.io/reference-kind"
# kapp and kapp-controller write the same label; https://carvel.dev/kapp/docs/v0.64.x/apply
_KAPP = "kapp.k14s.io/app"
# https://fluxcd.io/flux/components/kustomize/kustomizations/#controlling-the-apply-behavior-of-resources
_FLUX_SKIPS = {
    "kustomize.toolkit.fluxcd.io/reconcile": ("disabled",),
    "kustomize.toolkit.fluxcd.io/ssa": ("IfNotPresent", "Ignore"),
}


def opted_out(objects: Iterable[tuple[ObjectRef, Object]]) -> Conflict | None:
    """The first owner who says no."""
    for ref, obj in objects:
        no = refusal_in(obj.metadata.annotations, called(ref))
        if no:
            return Conflict(ConflictReason.OPTED_OUT, no)
    return None


def borrowed(objects: Iterable[tuple[ObjectRef, Object]]) -> Conflict | None:
    for ref, obj in objects:
        raw = obj.metadata.annotations.get(BORROWED)
        if raw is None:
            continue
        borrow = decode_borrow(raw)
        if isinstance(borrow, str):
            text = f"{called(ref)} carries {BORROWED}, which cannot be read ({borrow}); look at it and remove it"
        else:
            text = (
                f"{called(ref)} has given {borrow.before} → {borrow.after} for plan {plain(borrow.plan, 40)} "
                f"until {borrow.until:%Y-%m-%d %H:%M} UTC"
            )
        return Conflict(ConflictReason.BORROWED, text)
    return None


def in_git(objects: Iterable[tuple[ObjectRef, Object]], edits: Mapping[ObjectRef, tuple[Edit, ...]]) -> Conflict | None:
    """
    Whether Argo CD, Flux or another that keeps objects as they stand elsewhere would set a field back.

    Objects keep no `managedFields` here, so it is told by labels and annotations.  What Argo CD applied last stands in
    an annotation, unless it applies on the server's side: a field that is not in it is not Argo CD's.

    Args:
        edits: What would be written, by object; nothing for those that only get an annotation.
    """
    for ref, obj in objects:
        keeper = _keeper(obj)
        if not keeper or obj.metadata.annotations.get(REMEDIATION) == ALLOW:
            continue
        if keeper == "Argo CD" and _is_not_applied(obj, edits.get(ref, ())):
            continue
        where = "in its control plane" if keeper == _FROM_ABOVE else "in Git"
        return Conflict(
            ConflictReason.GITOPS,
            f'{keeper} keeps {called(ref)} as it stands {where} and may set it back; {REMEDIATION}: "{ALLOW}" on it '
            "says that it does not",
        )
    return None


def reverted_by(objects: Iterable[tuple[ObjectRef, Object]]) -> tuple[str, ...]:
    """Who may set it back later, for the plan's notes; not sure enough, or not soon enough, for a conflict."""
    notes = []
    for ref, obj in objects:
        labels = obj.metadata.labels
        if labels.get("app.kubernetes.io/managed-by") == "Helm" or _HELM in obj.metadata.annotations:
            notes.append(f"{called(ref)} is of a Helm release: the next upgrade sets it back")
        elif _KAPP in labels:
            notes.append(
                f"{called(ref)} is deployed by kapp: its next deploy sets it back, kapp-controller's by itself"
            )
        elif _INSTANCE in labels and not _keeper(obj):
            # Argo CD before version 3 tracks by this label, unless told otherwise; so do people, for themselves.
            notes.append(
                f"{called(ref)} may be of an Argo CD application ({_INSTANCE}: {labels[_INSTANCE]}), "
                "which would set it back"
            )
    return tuple(notes[:1])


def _keeper(obj: Object) -> str:
    labels, annotations = obj.metadata.labels, obj.metadata.annotations
    if _ARGO_ID in annotations or _ARGO_LABEL in labels or _ARGO_LABEL in annotations:
        return "Argo CD"
    if any(key in labels for key in _FLUX):
        skips = any(annotations.get(key, "") in words for key, words in _FLUX_SKIPS.items())
        return "" if skips else "Flux"
    if annotations.get(_CONFIG_SYNC) == "enabled":
        return "Config Sync"
    if labels.get(_KARMADA) == "true":
        return _FROM_ABOVE
    if annotations.get(_FLEET):
        return "Rancher Fleet"
    return "Sveltos" if _SVELTOS in labels or _SVELTOS in annotations else ""


def _is_not_applied(obj: Object, edits: tuple[Edit, ...]) -> bool:
    """Whether what was applied last is known, and has none of the fields."""
    raw = obj.metadata.annotations.get(_LAST_APPLIED)
    if raw is None:
        return False
    try:
        applied = json.loads(raw)
    except (ValueError, RecursionError):
        return False  # not known: then it may have them
    return isinstance(applied, dict) and not any(_has(applied, edit.pointer) for edit in edits)


def _has(data: Any, pointer: str) -> bool:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(data, dict) and key in data:
            data = data[key]
        elif isinstance(data, list) and key.isdecimal() and int(key) < len(data):
            data = data[int(key)]
        else:
            return False
    return True
