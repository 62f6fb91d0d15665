"""Every sample manifest of the shared data, against a table written by a person who read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sevenhop.core.inventory.discovery import Discovery
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.inventory.workloads import Workload
from sevenhop.core.objects.decode import UndecodableError, convert
from sevenhop.core.objects.kinds import kind_of
from sevenhop.frameworks import FRAMEWORKS
from tests.shared import shared_path

EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("samples.yaml").read_text("utf-8"))


def documents(path: Path) -> list[Any]:
    return [d for d in yaml.load_all(path.read_text("utf-8"), yaml.CSafeLoader) if d is not None]


def put(objects: Objects, document: Any) -> str:
    """Keep a document; what it is, where it is no input."""
    kind = kind_of(str(document.get("apiVersion", "")), str(document.get("kind", "")))
    if "kind" not in document:
        return "no object"
    if kind is None:
        return str(document["kind"])
    meta = document.get("metadata", {})
    meta.setdefault("name", meta.get("generateName", ""))
    try:
        objects.put(kind.name, convert(kind, document))
    except UndecodableError:
        return "unreadable"
    return ""


def said(workload: Workload) -> dict[str, Any]:
    products = sorted({part.product for part in workload.components if part.gpus_per_replica and part.product})
    return {
        "framework": workload.framework.value,
        "model": workload.model.name,
        "version": workload.model.version,
        "components": {
            part.name: [part.role, part.desired, part.gpus_per_replica, part.pods_per_replica]
            for part in workload.components
        },
        "product": products[0] if products else "",
    }


def wanted(row: dict[str, Any], actual: dict[str, Any]) -> dict[str, Any]:
    """What the table leaves out is empty; the product only counts where it is written down."""
    return {"model": "", "version": "", "product": actual["product"], **row}


@pytest.mark.parametrize("name", EXPECTED)
def test_sample(name: str) -> None:
    """
    Workloads, components, models, versions and GPUs are those that a person reads in the manifest.
    """
    expected = EXPECTED[name]
    objects = Objects()
    unread = [put(objects, document) for document in documents(shared_path(f"data/samples/{name}"))]

    discovery = Discovery(objects, FRAMEWORKS)
    discovery.settle()

    actual = {key[1]: said(workload) for key, workload in discovery.workloads.items()}
    assert {
        n: wanted(row, actual.get(n, {"product": ""})) for n, row in expected.get("workloads", {}).items()
    } == actual
    assert sorted(expected.get("skipped", [])) == sorted(key[1] for _, key, _ in discovery.skipped)
    assert sorted(expected.get("unread", [])) == sorted(reason for reason in unread if reason)


def test_the_table_has_every_sample() -> None:
    """
    A sample that nobody wrote down is as good as skipped in silence.
    """
    root = shared_path("data/samples")

    assert sorted(str(path.relative_to(root)) for path in root.rglob("*.yaml")) == sorted(EXPECTED)


def test_every_skipped_object_has_a_reason() -> None:
    """
    All samples at once: what is no workload says why, in words.
    """
    objects = Objects()
    for path in sorted(shared_path("data/samples").rglob("*.yaml")):
        for document in documents(path):
            put(objects, document)

    discovery = Discovery(objects, FRAMEWORKS)
    discovery.settle()

    assert discovery.skipped
    assert [entry for entry in discovery.skipped if len(entry[2]) < 10] == []
