"""The framework table against the digest of the frameworks' own sources (data/derived/mapping.yaml)."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from sevenhop.core.inventory.framework import FrameworkSpec
from sevenhop.core.objects.kinds import KINDS, kind_of
from sevenhop.frameworks import FRAMEWORKS
from tests.shared import shared_path

SPECS = {spec.framework.value: spec for spec in FRAMEWORKS}
OURS = {
    "kuberay-rayservice": "kuberay",
    "kuberay-raycluster": "kuberay",
    "kuberay-rayjob": "kuberay",
    "dynamo": "dynamo",
    "kserve-isvc-standard": "kserve",
    "kserve-isvc-knative": "kserve",
    "kserve-llmisvc": "kserve",
    "lws": "lws",
    "llm-d-modelservice": "llm-d",
    "production-stack-helm": "production-stack",
    "production-stack-operator": "production-stack",
    "aibrix-stormservice": "aibrix",
    "kubeai": "kubeai",
}
NO_FRAMEWORK = {"inferencepool"}  # folds what others run


def mapping() -> dict[str, Any]:
    found = yaml.safe_load(shared_path("data/derived/mapping.yaml").read_text("utf-8"))["frameworks"]
    assert isinstance(found, dict)
    return found


def labels_in(data: Any) -> set[str]:
    """Label keys anywhere under a join or component entry."""
    if isinstance(data, dict):
        return {k for k in data if "/" in k or k in ("model", "component")} | set().union(
            *map(labels_in, data.values())
        )
    if isinstance(data, list):
        return set().union(*map(labels_in, data)) if data else set()
    text = str(data).partition("=")[0]
    return (
        {text}
        if re.fullmatch(r"[a-z0-9.-]+/[a-z-]+|helm-release-name|model|role-name|storm-service-name", text)
        else set()
    )


def test_every_entry_is_read() -> None:
    """
    A framework that the digest knows has a row in our table.
    """
    assert set(OURS) | NO_FRAMEWORK == set(mapping())


@pytest.mark.parametrize(("entry", "framework"), OURS.items())
def test_roots(entry: str, framework: str) -> None:
    """
    Root kind, its API versions and its plural are those of the digest.
    """
    root = mapping()[entry]["root"]
    if isinstance(root, str):
        assert SPECS[framework].claims  # a Helm release: told by what it deploys
        return
    kind = kind_of(f"{root['group']}/{root['versions'][0]}", root["kind"])

    assert kind is not None
    assert kind.name in (*SPECS[framework].roots, *SPECS[framework].claims)
    assert set(root["versions"]) <= set(kind.versions)
    assert root["plural"] == kind.plural


@pytest.mark.parametrize(("entry", "framework"), OURS.items())
def test_labels(entry: str, framework: str) -> None:
    """
    Every label that joins a pod, or names its component, is one that our row reads.
    """
    row = mapping()[entry]
    spec: FrameworkSpec = SPECS[framework]
    wanted = labels_in(row.get("join_pod_to_root", {})) | labels_in(
        {k: v for k, v in row.get("component", {}).items() if k.endswith(("label", "labels", "group"))}
    )

    assert sorted(wanted - set(spec.labels)) == []


@pytest.mark.parametrize("entry", OURS)
def test_chain(entry: str) -> None:
    """
    Every kind between the root and its pods is watched, so that the chain can be walked.
    """
    chain = mapping()[entry].get("chain", [])
    links = [link for way in chain.values() for link in way] if isinstance(chain, dict) else chain
    words = {word for link in links for word in re.findall(r"(?<![A-Za-z])[A-Z][A-Za-z]+", str(link))}

    known = {kind.kind for kind in KINDS.values()}
    assert sorted(words - known) == []
