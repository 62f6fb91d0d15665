"""What a support bundle does not hold: nothing of the kind, or not asked for?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sevenhop.core.events import SyncState
from sevenhop.sources.files import load_files

PVC = "PersistentVolumeClaim"


def pod(name: str, *, node: str = "", text: str = "") -> dict[str, Any]:
    """A pod with a volume claim; with a verdict if there is a text."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "a"},
        "spec": {"nodeName": node, "volumes": [{"name": "w", "persistentVolumeClaim": {"claimName": "weights"}}]},
        "status": {"conditions": [condition] if text else []},
    }


def state_of_claims(tmp_path: Path, *pods: dict[str, Any], kinds: int = 4) -> SyncState:
    """The state of the kind of claims after reading a bundle that holds none."""
    others = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r", "namespace": "a"}},
    ]
    file = tmp_path / "bundle.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*pods, *others[: kinds - 1]]}))
    return load_files([file]).objects().states[PVC]


@pytest.mark.parametrize(
    ("pods", "kinds", "expected"),
    [
        pytest.param([pod("waits")], 4, SyncState.SYNCED, id="a dump without claims: there are none"),
        pytest.param([pod("waits")], 3, SyncState.NO_SOURCE, id="a few kinds: claims were not asked for"),
        pytest.param([pod("waits"), pod("runs", node="n")], 4, SyncState.NO_SOURCE, id="a running pod uses one"),
        pytest.param(
            [pod("waits", text="0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")],
            4,
            SyncState.NO_SOURCE,
            id="the scheduler found the claim",
        ),
        pytest.param(
            [pod("waits", text='persistentvolumeclaim "weights" not found. not found')],
            4,
            SyncState.SYNCED,
            id="the scheduler did not find it either",
        ),
    ],
)
def test_a_kind_without_objects(tmp_path: Path, pods: list[dict[str, Any]], kinds: int, expected: SyncState) -> None:
    """ "There are none" is claimed only of a whole dump that nothing contradicts."""
    assert state_of_claims(tmp_path, *pods, kinds=kinds) is expected
