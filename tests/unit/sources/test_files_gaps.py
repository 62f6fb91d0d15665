"""What was lost of a bundle is not known to be absent: neither of its kind, nor of a kind that has no other object."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sevenhop.core.events import SyncState
from sevenhop.sources.files import Loaded, load_files
from tests.placement_builders import node, pod

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "weights", "namespace": "prod"},
    "status": {"phase": "Bound"},
}
SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r", "namespace": "prod"}}
EVENT = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "prod"}}
BUNDLE = [node("first"), node("n"), CLAIM, pod("first-pod", on="n"), pod("p", on="n"), SET, EVENT]
"""By kind, as `kubectl` lists them, and enough kinds for what is absent to say something."""


def _list(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "items": items, "kind": "List"}


FORMS: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "a list, indented": lambda items: json.dumps(_list(items), indent=4),
    "a list on one line": lambda items: json.dumps(_list(items)),
    "one per line": lambda items: "\n".join(map(json.dumps, items)),
    "a list in YAML": lambda items: yaml.safe_dump(_list(items)),
    "documents": yaml.safe_dump_all,
}


def _load(folder: Path, text: str) -> Loaded:
    file = folder / ("bundle.json" if text.startswith(("{", "[")) else "bundle.yaml")
    file.write_text(text)
    return load_files([file])


def _broken(text: str, name: str) -> str:
    """The same with a bracket that nothing closes instead of a name."""
    return text.replace(f'"name": "{name}"', '"name": [', 1).replace(f"name: {name}\n", "name: [\n", 1)


@pytest.mark.parametrize("form", FORMS)
def test_a_whole_bundle_has_no_gap(tmp_path: Path, form: str) -> None:
    """Each kind is known, also one of which there is nothing."""
    loaded = _load(tmp_path, FORMS[form](BUNDLE))
    states = loaded.objects().states
    assert (len(loaded.items), loaded.problems, set(states.values())) == (len(BUNDLE), [], {SyncState.SYNCED})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("weights", "PersistentVolumeClaim", id="the only one of its kind"),
        pytest.param("first", "Node", id="the first of all"),
        pytest.param("first-pod", "Pod", id="the first of its kind"),
        pytest.param("p", "Pod", id="the last of its kind"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_lost_may_exist(tmp_path: Path, form: str, name: str, kind: str) -> None:
    """Where the kind of the lost one cannot be told, it is that of a neighbour, or one that is not seen at all."""
    loaded = _load(tmp_path, _broken(FORMS[form](BUNDLE), name))
    assert name not in {obj.metadata.name for _, obj in loaded.items}
    assert len(loaded.problems) == 1
    assert loaded.objects().states[kind] is SyncState.NO_SOURCE


@pytest.mark.parametrize("form", FORMS)
def test_kinds_far_from_the_gap_stay_known(tmp_path: Path, form: str) -> None:
    """What is lost among nodes says nothing of the pods that follow later."""
    loaded = _load(tmp_path, _broken(FORMS[form](BUNDLE), "first"))
    assert loaded.objects().states["Pod"] is SyncState.SYNCED


@pytest.mark.parametrize(
    ("key", "said"),
    [
        pytest.param("kind", "an object without kind", id="kind"),
        pytest.param("apiVersion", "an object without apiVersion", id="apiVersion"),
    ],
)
def test_an_object_that_lacks_one_of_the_two_is_told(tmp_path: Path, key: str, said: str) -> None:
    """It is no values file: it was an object, and is lost."""
    less = {name: value for name, value in CLAIM.items() if name != key}
    loaded = _load(tmp_path, yaml.safe_dump_all([*BUNDLE[:2], less, *BUNDLE[3:]]))
    assert [problem.message for problem in loaded.problems] == [said]
    assert loaded.objects().states["PersistentVolumeClaim"] is SyncState.NO_SOURCE


def test_a_values_file_between_manifests_is_none(tmp_path: Path) -> None:
    """A file of its own that holds no object takes nothing away from what the others say."""
    (tmp_path / "values.yaml").write_text("replicas: 2\nimage: {tag: x}\n")
    (tmp_path / "bundle.yaml").write_text(yaml.safe_dump_all(BUNDLE))
    assert set(load_files([tmp_path]).objects().states.values()) == {SyncState.SYNCED}
