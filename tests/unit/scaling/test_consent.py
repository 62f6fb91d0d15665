"""What owners say is heard: in Git, by annotation, by what was lent already."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sevenhop.core.remediation.reduction import ConflictReason, Ruler
from tests.unit.frameworks.running import NAMESPACE, Manifest
from tests.unit.scaling import scenes
from tests.unit.scaling.case import ALLOW, DEPLOYMENT, GRAPH, OFF, RAY, Case, beside, check, ray, touched

R = ConflictReason
plain, dynamo = scenes.plain, scenes.dynamo
BORROW = {
    "plan": "7f3a",
    "hash": "x",
    "incident": "i",
    "workload": "prod/summarizer",
    "component": "engine",
    "before": 4,
    "after": 3,
    "until": "2026-11-30T14:00:00Z",
    "by": "alice",
}
ARGO = {"argocd.argoproj.io/instance": "llm"}
FLUX = {"kustomize.toolkit.fluxcd.io/name": "apps"}


def namespace(**annotations: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "annotations": annotations}}


def applied(**spec: Any) -> dict[str, str]:
    text = json.dumps({"spec": spec})
    return {"argocd.argoproj.io/tracking-id": "x", "kubectl.kubernetes.io/last-applied-configuration": text}


GITOPS = [
    Case(
        "argo label",
        touched(plain, *DEPLOYMENT, labels=ARGO),
        "engine",
        R.GITOPS,
        ("Argo CD", "sevenhop.dev/remediation"),
    ),
    Case(
        "argo annotation",
        touched(plain, *DEPLOYMENT, annotations={"argocd.argoproj.io/tracking-id": "x"}),
        "engine",
        R.GITOPS,
    ),
    Case("argo allowed", touched(plain, *DEPLOYMENT, labels=ARGO, annotations=ALLOW), "engine", None),
    Case("argo applied no replicas", touched(plain, *DEPLOYMENT, annotations=applied(template={})), "engine", None),
    Case("argo applied replicas", touched(plain, *DEPLOYMENT, annotations=applied(replicas=3)), "engine", R.GITOPS),
    Case(
        "argo applied what cannot be read",
        touched(plain, *DEPLOYMENT, annotations={**applied(), "kubectl.kubernetes.io/last-applied-configuration": "{"}),
        "engine",
        R.GITOPS,
    ),
    Case(
        "argo, and what was applied last has no bottom",
        touched(
            plain,
            *DEPLOYMENT,
            annotations={**applied(), "kubectl.kubernetes.io/last-applied-configuration": '{"spec":' * 99_999},
        ),
        "engine",
        R.GITOPS,
    ),
    Case(
        "config sync",
        touched(plain, *DEPLOYMENT, annotations={"configmanagement.gke.io/managed": "enabled"}),
        "engine",
        R.GITOPS,
        ("Config Sync",),
    ),
    Case(
        "karmada",
        touched(plain, *DEPLOYMENT, labels={"karmada.io/managed": "true"}),
        "engine",
        R.GITOPS,
        ("Karmada", "in its control plane"),
    ),
    Case(
        "fleet",
        touched(plain, *DEPLOYMENT, annotations={"objectset.rio.cattle.io/id": "default-llm"}),
        "engine",
        R.GITOPS,
        ("Rancher Fleet", "in Git"),
    ),
    Case(
        "an add-on of k3s", touched(plain, *DEPLOYMENT, annotations={"objectset.rio.cattle.io/id": ""}), "engine", None
    ),
    Case(
        "sveltos",
        touched(plain, *DEPLOYMENT, labels={"projectsveltos.io/reference-kind": "ConfigMap"}),
        "engine",
        R.GITOPS,
        ("Sveltos",),
    ),
    Case(
        "sveltos by annotation",
        touched(plain, *DEPLOYMENT, annotations={"projectsveltos.io/reference-kind": "ConfigMap"}),
        "engine",
        R.GITOPS,
    ),
    Case("flux", touched(plain, *DEPLOYMENT, labels=FLUX), "engine", R.GITOPS, ("Flux",)),
    Case("flux helm", touched(plain, *DEPLOYMENT, labels={"helm.toolkit.fluxcd.io/name": "x"}), "engine", R.GITOPS),
    Case(
        "flux disabled",
        touched(plain, *DEPLOYMENT, labels=FLUX, annotations={"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}),
        "engine",
        None,
    ),
    Case(
        "flux applies once",
        touched(plain, *DEPLOYMENT, labels=FLUX, annotations={"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}),
        "engine",
        None,
    ),
    Case(
        "flux merges",
        touched(plain, *DEPLOYMENT, labels=FLUX, annotations={"kustomize.toolkit.fluxcd.io/ssa": "Merge"}),
        "engine",
        R.GITOPS,
    ),
    Case("argo on the RayService above", touched(ray, *RAY, labels=ARGO), "h100", R.GITOPS, ("RayService chat",)),
    Case(
        "argo on the graph above an adapter",
        touched(scenes.dynamo_adapted, *GRAPH, labels=ARGO),
        "VllmDecodeWorker",
        R.GITOPS,
    ),
    Case(
        "helm only tells", touched(plain, *DEPLOYMENT, labels={"app.kubernetes.io/managed-by": "Helm"}), "engine", None
    ),
]

CONSENT = [
    Case("off", touched(plain, *DEPLOYMENT, annotations=OFF), "engine", R.OPTED_OUT, ("Deployment summarizer",)),
    Case(
        "another word",
        touched(plain, *DEPLOYMENT, annotations={"sevenhop.dev/remediation": "Disabled"}),
        "engine",
        R.OPTED_OUT,
        ("Disabled",),
    ),
    Case("off in the namespace", beside(plain, namespace(**OFF)), "engine", R.OPTED_OUT, ("Namespace prod",)),
    Case("off on the graph", touched(scenes.dynamo_adapted, *GRAPH, annotations=OFF), "VllmDecodeWorker", R.OPTED_OUT),
    Case(
        "off on the component's object",
        touched(dynamo, "DynamoComponentDeployment", "llama-70b-vllmdecodeworker", annotations=OFF),
        "VllmDecodeWorker",
        R.OPTED_OUT,
    ),
    Case("off on a pod", touched(plain, "Pod", "summarizer-abc-1", annotations=OFF), "engine", R.OPTED_OUT),
    Case(
        "off beats allow above",
        beside(touched(plain, *DEPLOYMENT, annotations=ALLOW), namespace(**OFF)),
        "engine",
        R.OPTED_OUT,
    ),
    Case(
        "borrowed",
        touched(plain, *DEPLOYMENT, annotations={"sevenhop.dev/borrowed": json.dumps(BORROW)}),
        "engine",
        R.BORROWED,
        ("7f3a", "4 → 3", "14:00"),
    ),
    Case(
        "borrowed, for a plan of many lines",
        touched(
            plain,
            *DEPLOYMENT,
            annotations={"sevenhop.dev/borrowed": json.dumps({**BORROW, "plan": "7f3a\nApproved by all"})},
        ),
        "engine",
        R.BORROWED,
        ("plan 7f3a Approved by all until",),
    ),
    Case(
        "borrowed, unreadable",
        touched(plain, *DEPLOYMENT, annotations={"sevenhop.dev/borrowed": "{"}),
        "engine",
        R.BORROWED,
        ("cannot be read",),
    ),
    Case(
        "borrowed from the root",
        touched(ray, *RAY, annotations={"sevenhop.dev/borrowed": json.dumps(BORROW)}),
        "h100",
        R.BORROWED,
        ("RayService chat",),
    ),
]


@pytest.mark.parametrize("case", [*GITOPS, *CONSENT], ids=lambda case: case.id)
def test_consent(case: Case) -> None:
    """
    An owner who says no, or whose Git would, is asked no further; who allows it is not refused.
    """
    check(case)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": {"app.kubernetes.io/managed-by": "Helm"}}, "Helm"),
        ({"annotations": {"meta.helm.sh/release-name": "x"}, "labels": {"app.kubernetes.io/instance": "x"}}, "Helm"),
        ({"labels": {"kapp.k14s.io/app": "1700000000"}}, "deployed by kapp"),
        ({"labels": {"app.kubernetes.io/instance": "llm"}}, "Argo CD application (app.kubernetes.io/instance: llm)"),
        ({"labels": {"app.kubernetes.io/instance": "llm", **ARGO}, "annotations": ALLOW}, ""),
        ({}, ""),
    ],
    ids=["helm", "helm and instance", "kapp", "instance", "argo, allowed", "nobody"],
)
def test_who_may_set_it_back_later(changes: dict[str, dict[str, str]], words: str) -> None:
    """
    What is no conflict, but a person should know, is among the notes.
    """
    found = touched(plain, "Deployment", "summarizer", **changes)().rule("engine")

    assert isinstance(found, Ruler)
    assert [words in note for note in found.notes] == ([True] if words else [])
