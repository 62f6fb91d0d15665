"""The document of `sevenhop diagnose -o json`, field by field: a contract with whoever reads it by program."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from sevenhop.cli.main import main
from sevenhop.core.hops.causes import CAUSES
from tests.placement_builders import GPU, custom, node, pod
from tests.shared import shared_path

Text = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Hop = Literal["gpu", "discovery", "scheduling", "pod", "model", "service", "gateway"]
Category = Literal[
    "resource", "policy", "topology", "quota", "dependency", "gated", "device-plugin", "autoscaler", "image", "config",
    "runtime", "probe", "device", "model-artifact", "engine", "unknown", "none",
]  # fmt: skip
Confidence = Literal["certain", "likely", "unknown"]
Framework = Literal[
    "dynamo", "kuberay", "kserve", "lws", "llm-d", "kubeai", "aibrix", "production-stack", "rbg", "nim", "plain",
    "grove", "kaito",
]  # fmt: skip


class _Row(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A field that is not named here is none that anybody may rely on, and must be named first."""


class Model(_Row):
    name: str
    version: str


class Version(_Row):
    model: Model
    ready: Count
    pods: list[Text]


class Component(_Row):
    name: Text
    role: str
    desired: Count | None
    ready: Count
    gpu_per_replica: Count
    pods: list[Text]
    model: Model
    versions: list[Version]


class Workload(_Row):
    namespace: str
    name: Text
    framework: Framework
    kind: Text
    model: Model
    tier: Literal["critical", "standard", "batch"] | None
    owner: str
    components: list[Component]


class Evidence(_Row):
    source: Text
    text: str


class Pod(_Row):
    namespace: str
    name: Text
    workload: Text | None
    component: Text | None
    phase: Text
    node: str
    hop: Hop | None
    category: Category
    cause: Text
    confidence: Confidence
    summary: Text
    evidence: list[Evidence]
    next_steps: list[Text]
    excluded: dict[str, Count]
    would_help: list[Text]
    not_preempted: str
    disagreement: str
    unmodelled: list[Text]


class Subject(_Row):
    kind: Text
    namespace: str
    name: Text


class Finding(_Row):
    subject: Subject
    hop: Hop | None
    category: Category
    cause: Text
    confidence: Confidence
    summary: Text
    evidence: list[Evidence]
    next_steps: list[Text]


class Capacity(_Row):
    product: Text
    resource: Text
    allocatable: Count
    bound: Count | None
    releasing: Count | None
    free: Count | None
    cordoned: Count
    unhealthy: Count
    largest_free_block: Count | None


class Skipped(_Row):
    kind: Text
    namespace: str
    name: Text
    reason: Text


class Problem(_Row):
    where: Text
    message: Text


class WhatIf(_Row):
    pod: Annotated[str, msgspec.Meta(pattern="^[^/]+/[^/]+$")]
    fits: bool
    nodes: list[Text]
    reason: str


class Document(_Row):
    schema: Literal["sevenhop.dev/diagnosis/v1"]
    workloads: list[Workload]
    pods: list[Pod]
    findings: list[Finding]
    capacity: list[Capacity]
    skipped: list[Skipped]
    problems: list[Problem]
    what_if: list[WhatIf] | msgspec.UnsetType = msgspec.UNSET


def diagnosed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Document:
    """The document, checked in every field."""
    main(["diagnose", *arguments, "-o", "json"])
    document = msgspec.json.decode(capsys.readouterr().out, type=Document)
    rows: list[Pod | Finding] = [*document.pods, *document.findings]
    for row in rows:
        assert row.cause in CAUSES, row.cause
        # Nothing wrong has no hop; what is wrong has one, unless it is unknown where.
        assert (row.hop is not None) or row.category in ("none", "unknown"), row
    for workload in document.workloads:
        assert len({part.name for part in workload.components}) == len(workload.components)
    for pool in document.capacity:
        held = (pool.bound, pool.releasing, pool.free, pool.largest_free_block)
        if None in held:
            # Only devices of a DRA driver, whose holders stand in claims that are not in the file.
            assert held == (None,) * 4
            assert "." in pool.resource
            assert "/" not in pool.resource.partition("/")[0]
            continue
        assert pool.bound is not None
        assert pool.releasing is not None
        assert pool.free is not None
        assert pool.largest_free_block is not None
        assert pool.largest_free_block <= pool.free
        assert pool.releasing <= pool.bound
    return document


def write(folder: Path, *items: dict[str, Any]) -> str:
    file = folder / "bundle.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def everything() -> list[dict[str, Any]]:
    """A bundle with something in every part of the document."""
    image = "vllm/vllm-openai:v0.11.0"
    spec = {
        "containers": [{"name": "e", "image": image, "args": ["--model", "m"], "resources": {"limits": {GPU: "2"}}}]
    }
    template = {"metadata": {"labels": {"app": "chat"}}, "spec": spec}
    quota = {"hard": {"pods": "1"}, "used": {"pods": "1"}}
    owner = [{"kind": "Deployment", "apiVersion": "apps/v1", "name": "chat", "uid": "uid-chat", "controller": True}]
    return [
        node("g1", gpus=2),
        node("g2", gpus=4, capacity=8),
        custom("apps/v1", "Deployment", "chat", "prod", spec={"replicas": 2, "template": template}),
        custom(
            "apps/v1",
            "ReplicaSet",
            "chat-1",
            "prod",
            metadata={"ownerReferences": owner},
            spec={"replicas": 2, "template": template},
        ),
        pod("chat-1-a", gpus=8, owner=("ReplicaSet", "chat-1", "uid-chat-1")),
        pod("other", on="g1", gpus=1),
        pod("lost", on="g2", phase="Failed"),
        custom("v1", "ResourceQuota", "q", "prod", status=quota),
        custom("apps/v1", "Deployment", "web", "prod", spec={"template": {"spec": {"containers": [{"name": "w"}]}}}),
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "prod"}},
    ]


def test_every_part_of_the_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A document with something in each part, and nothing in it that is not promised."""
    document = diagnosed(capsys, "-f", write(tmp_path, *everything()), "--what-if", "delete prod/other")

    for part in ("workloads", "pods", "findings", "capacity", "skipped", "problems", "what_if"):
        assert getattr(document, part), part
    (workload,) = document.workloads
    assert (workload.namespace, workload.name, workload.framework) == ("prod", "chat", "plain")
    assert [(c.name, c.desired, c.gpu_per_replica, c.pods) for c in workload.components] == [
        ("engine", 2, 2, ["chat-1-a"])
    ]
    waiting = next(row for row in document.pods if row.name == "chat-1-a")
    assert (waiting.workload, waiting.hop, waiting.cause) == ("chat", "discovery", "gpus-unhealthy")
    assert next(row for row in document.pods if row.name == "lost").workload is None
    assert {"ReplicaSet", "Node"} <= {row.subject.kind for row in document.findings}
    assert (document.problems[0].where, document.problems[0].message) == (
        f"{tmp_path / 'bundle.json'}:1",
        "Pod without metadata.name",
    )


def test_an_empty_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All parts are there and empty; what-if only where it was asked."""
    document = diagnosed(capsys, "-f", write(tmp_path))

    assert (document.workloads, document.pods, document.findings, document.capacity) == ([], [], [], [])
    assert document.what_if is msgspec.UNSET


def test_every_sample_keeps_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    """Manifests of every framework."""
    document = diagnosed(capsys, "-f", str(shared_path("data/samples")))

    assert len({workload.framework for workload in document.workloads}) > 8


def test_recorded_verdicts_keep_the_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a real scheduler and real controllers wrote."""
    with gzip.open(shared_path("data/scheduler/verdicts.jsonl.gz")) as lines:
        cases = [json.loads(line) for number, line in enumerate(lines) if number % 25 == 0]
    for case in cases:
        items = [obj for objects in case["objects"].values() for obj in objects]
        document = diagnosed(capsys, "-f", write(tmp_path, *items))
        assert document.pods or document.findings
