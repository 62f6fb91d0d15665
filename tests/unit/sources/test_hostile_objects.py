"""Objects with anything anywhere: read, or a problem, never an end of the program."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sevenhop.core import bundle
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.placement.what_if import what_if
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.sources.files import load_files

_GPU = {"limits": {"nvidia.com/gpu": "1"}}
_TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "vllm/vllm-openai:v0.15.1", "resources": _GPU}]}}
OBJECTS: tuple[dict[str, Any], ...] = (
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "labels": {"a": "b"}, "ownerReferences": [{"kind": "ReplicaSet"}]},
        "spec": {
            "containers": [{"name": "c", "image": "i", "args": ["--model", "a/b"], "resources": _GPU}],
            "nodeSelector": {"x": "y"},
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}],
            "priority": 5,
        },
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1"}]},
    },
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node", "labels": {"nvidia.com/gpu.product": "X"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1", "pods": "110"},
            "capacity": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "2", "pods": "110"},
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "slice"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "node",
            "pool": {"name": "node", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "gpu-0",
                    "attributes": {"type": {"string": "gpu"}},
                    "capacity": {"memory": {"value": "80Gi"}},
                    "taints": [{"key": "k", "effect": "NoSchedule"}],
                }
            ],
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claim", "namespace": "n"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "count": 1}}]}},
    },
    {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "limits", "namespace": "n"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "4"}, "default": {"memory": "1Gi"}}]},
    },
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quota", "namespace": "n"},
        "spec": {
            "hard": {"pods": "1"},
            "scopes": ["NotTerminating"],
            "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]},
        },
        "status": {"hard": {"pods": "1"}, "used": {"pods": "1"}},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r", "namespace": "n"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE},
        "status": {"replicas": 0, "conditions": [{"type": "ReplicaFailure", "status": "True", "message": "x"}]},
    },
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {"selectors": []}},
    {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "l", "namespace": "n"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": _TEMPLATE}},
    },
    {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "i", "namespace": "n"},
        "spec": {"predictor": {"model": {"storageUri": "hf://a/b"}, "workerSpec": {"tensorParallelSize": 2}}},
    },
)

Path_ = tuple[str | int, ...]


def _paths(value: Any, at: Path_ = ()) -> list[Path_]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([at] if at else []), *(path for key, each in items for path in _paths(each, (*at, key)))]


PLACES = [(number, path) for number, obj in enumerate(OBJECTS) for path in _paths(obj)]
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["-5Gi", "1e999", "NaN", "2026-13-45T99:99:99Z", "\x1b[31m", "{{ x }}", "9" * 400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), JUNK), min_size=1, max_size=4))
def test_anything_anywhere(tmp_path: Path, changes: list[tuple[tuple[int, Path_], Any]]) -> None:
    """
    A value of any type in any field leads to an answer, if need be one that knows less.
    """
    objects = [copy.deepcopy(obj) for obj in OBJECTS]
    for (number, (*way, last)), junk in changes:
        place: Any = objects[number]
        try:
            for step in way:
                place = place[step]
            place[last] = junk
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took this place away
    file = tmp_path / "objects.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    loaded = load_files([file])
    report = bundle.diagnose(loaded.objects(), FRAMEWORKS, Policy(), now=None)
    what_if(loaded.objects(), list(loaded.objects().pods())[:1])

    assert len(loaded.items) + len(loaded.problems) + sum(loaded.skipped.values()) >= len(objects) - len(changes)
    assert all(row.cause for row in report.pods)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"devices": [1]}, id="a device that is a number"),
        pytest.param({"devices": [{"taints": ["x"]}]}, id="a taint that is a text"),
        pytest.param({"devices": [{"basic": {"attributes": []}}]}, id="attributes that are a list"),
        pytest.param({"pool": {"generation": "x"}}, id="a generation that is no number"),
        pytest.param({"nodeSelector": {"nodeSelectorTerms": 1}}, id="terms that are a number"),
    ],
)
def test_a_slice_of_another_shape(tmp_path: Path, spec: dict[str, Any]) -> None:
    """
    It is a problem with its place, and everything else is read.
    """
    broken = {**OBJECTS[2], "metadata": {"name": "broken"}, "spec": {"driver": "d", **spec}}
    file = tmp_path / "objects.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [broken, OBJECTS[1]]}))

    loaded = load_files([file])
    bundle.diagnose(loaded.objects(), FRAMEWORKS, Policy(), now=None)

    assert [kind for kind, _ in loaded.items] == ["Node"]
    assert "broken" in loaded.problems[0].message
