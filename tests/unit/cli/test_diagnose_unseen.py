"""What a bundle does not hold is unknown; and pods of one part that run different models are told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sevenhop.cli.main import main
from tests.placement_builders import custom, node, pod

DRIVER = "gpu.nvidia.com"
CANNOT = "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: not helpful."


def diagnosed(capsys: pytest.CaptureFixture[str], folder: Path, *items: dict[str, Any]) -> dict[str, Any]:
    file = folder / "bundle.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    main(["diagnose", "-f", str(file), "-o", "json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def with_claim(name: str, *, on: str = "", message: str = "") -> dict[str, Any]:
    made = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "two"}]
    return pod(name, on=on, message=message, status=made, resourceClaims=claims)


def devices(count: int = 2) -> list[dict[str, Any]]:
    has = [{"name": f"gpu-{n}", "attributes": {"productName": {"string": "NVIDIA L4"}}} for n in range(count)]
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    published = {"driver": DRIVER, "nodeName": "a", "pool": pool, "devices": has}
    selector = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
    wants = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": 2}}]}}
    return [
        node("a"),
        custom("resource.k8s.io/v1", "ResourceSlice", "s", spec=published),
        custom("resource.k8s.io/v1", "DeviceClass", DRIVER, spec=selector),
        custom("resource.k8s.io/v1", "ResourceClaimTemplate", "two", "prod", spec={"spec": wants}),
    ]


def claim(name: str) -> dict[str, Any]:
    results = [{"request": "gpu", "driver": DRIVER, "pool": "a", "device": f"gpu-{n}"} for n in range(2)]
    status = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": name, "uid": f"uid-{name}"}],
    }
    wants = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": 2}}]}}
    return custom("resource.k8s.io/v1", "ResourceClaim", f"{name}-gpu", "prod", spec=wants, status=status)


def test_devices_without_their_claims_are_not_free(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Who has them stands in ResourceClaims; without these nobody knows."""
    (unseen,) = diagnosed(capsys, tmp_path, *devices(), with_claim("run", on="a"))["capacity"]
    (seen,) = diagnosed(capsys, tmp_path, *devices(), with_claim("run", on="a"), claim("run"))["capacity"]

    assert [unseen[name] for name in ("allocatable", "bound", "releasing", "free", "largest_free_block")] == [
        2, None, None, None, None
    ]  # fmt: skip
    assert (seen["bound"], seen["free"]) == (2, 0)


@pytest.mark.parametrize(
    ("message", "count", "cause", "confidence"),
    [
        pytest.param("", 2, "unknown", "unknown", id="nobody says anything"),
        pytest.param(CANNOT, 2, "dra-unsatisfiable", "likely", id="the scheduler saw the claims"),
        pytest.param("", 1, "dra-unsatisfiable", "certain", id="too few even if all are free"),
    ],
)
def test_a_pod_that_waits_for_devices_whose_holders_are_unseen(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, message: str, count: int, cause: str, confidence: str
) -> None:
    """It does not fit for certain, nor is it a disagreement with a scheduler that sees more."""
    items = (*devices(count), with_claim("run", on="a"), with_claim("wait", message=message))
    (row,) = [row for row in diagnosed(capsys, tmp_path, *items)["pods"] if row["name"] == "wait"]

    assert (row["cause"], row["confidence"], row["disagreement"]) == (cause, confidence, "")


def replica(name: str, version: str, ready: str = "True") -> dict[str, Any]:
    made = pod(name, on="a", labels={"component": "predictor", "serving.kserve.io/inferenceservice": "q"})
    made["metadata"]["annotations"] = {
        "internal.serving.kserve.io/storage-initializer-sourceuri": f"hf://o/m:{version}"
    }
    made["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    return made


def test_a_canary_names_both_versions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Which pods run which model version, and how many of them are ready."""
    spec = {
        "predictor": {"canaryTrafficPercent": 10, "model": {"modelFormat": {"name": "x"}, "storageUri": "hf://o/m:v2"}}
    }
    isvc = custom("serving.kserve.io/v1beta1", "InferenceService", "q", "prod", spec=spec)
    old, new = replica("q-1", "v1"), replica("q-2", "v2", "False")
    both = diagnosed(capsys, tmp_path, node("a"), isvc, old, new)["workloads"][0]["components"][0]
    one = diagnosed(capsys, tmp_path, node("a"), isvc, new)["workloads"][0]["components"][0]

    assert [(row["model"]["version"], row["ready"], row["pods"]) for row in both["versions"]] == [
        ("v1", 1, ["q-1"]), ("v2", 0, ["q-2"])
    ]  # fmt: skip
    assert one["versions"] == []


UNREADABLE = {**pod("odd", on="n"), "spec": {"nodeName": "n", "containers": [{"name": "c", "image": {}}]}}


@pytest.mark.parametrize(
    ("pods", "free"),
    [
        pytest.param([pod("p", on="n", gpus=3)], 5, id="pods are there"),
        pytest.param([], None, id="nobody collected pods"),
        pytest.param([pod("p", on="n", gpus=3), UNREADABLE], None, id="one pod cannot be read"),
    ],
)
def test_gpus_are_free_only_where_pods_are_known(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, pods: list[dict[str, Any]], free: int | None
) -> None:
    """A pod that was not seen may have any of them."""
    host = node("n", gpus=8)
    host["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    (row,) = diagnosed(capsys, tmp_path, host, *pods)["capacity"]
    assert (row["allocatable"], row["free"]) == (8, free)
    assert (row["bound"] is None, row["largest_free_block"] is None) == (free is None, free is None)


@pytest.mark.parametrize(
    ("pods", "namespace", "said"),
    [
        pytest.param([], "", "No pods in there: what runs or waits is not known.", id="none collected"),
        pytest.param([pod("a", on="n")], "", "The one pod in there is well.", id="one"),
        pytest.param([pod("a", on="n"), pod("b", on="n")], "", "Every one of 2 pods is well.", id="two"),
        pytest.param(
            [pod("a", on="n"), UNREADABLE], "", "1 pod could be read and is well; others are", id="unreadable"
        ),
        pytest.param([pod("a", on="n")], "elsewhere", "No pods in there: nothing runs or waits yet.", id="narrowed"),
    ],
)
def test_that_all_is_well_is_said_of_what_was_seen(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, pods: list[dict[str, Any]], namespace: str, said: str
) -> None:
    """Neither of pods that could not be read, nor of other namespaces than the one that was asked for."""
    file = tmp_path / "bundle.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("n"), *pods]}))
    main(["diagnose", "-f", str(file), *(["-n", namespace] if namespace else [])])
    assert said in capsys.readouterr().out
