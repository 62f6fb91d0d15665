"""Healthy changes on a real control plane, recorded with `sevenhop record` and run through the shipped rules."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sevenhop.core.events import Applied
from sevenhop.sources.recording import Recording
from tests.e2e.rules import hurried_rules, patient_rules
from tests.e2e.scenes import Scene, is_ready, scene
from tests.e2e.service import sevenhop
from tests.shared import ROOT
from tests.testbed import build, nodes
from tests.testbed.client import Object
from tests.testbed.cluster import Cluster
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

LENGTH_S = 600 if os.environ.get("SEVENHOP_ROUNDS") == "soak" else 50
"""At least so long changes go on."""

LOAD_S = 4
"""A model on the test bed loads for so long."""

HURRY = "15s"
"""With this `for:` instead of minutes, everything that a healthy change passes through is over in time."""

GATE = "kueue.x-k8s.io/admission"


@pytest.fixture(scope="module")
def recording(testbed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `sevenhop record` wrote while models were scaled, rolled out, drained, queued, and put to zero and back."""
    path = tmp_path_factory.mktemp("recording") / "healthy.sevenhop.gz"
    command = [
        sys.executable,
        "-m",
        "sevenhop.cli.main",
        "record",
        str(path),
        "--kubeconfig",
        str(testbed.kubeconfig()),
    ]
    with scene(testbed) as here:
        _begin(here)
        recorder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            eventually(path.exists, what="the recording")
            until = time.monotonic() + LENGTH_S
            rounds = 0
            while not rounds or time.monotonic() < until:
                _one_round(here, rounds)
                rounds += 1
        finally:
            recorder.send_signal(signal.SIGTERM)
            out, err = recorder.communicate(timeout=20)
        print(f"{rounds} rounds of healthy changes; {out.strip()}")
        assert recorder.returncode == 0, err
    return path


def _model(here: Scene, name: str, replicas: int, **spec: Any) -> None:
    loads = {"sevenhop.dev/testbed": "slow-load", "sevenhop.dev/testbed-after": f"{LOAD_S}s"}
    server = build.vllm_deployment(
        name, here.namespace, f"org/{name}", gpus=1, replicas=replicas, pod_annotations=loads,
        node_selector=here.pool.node_selector, **spec,
    )  # fmt: skip
    (container,) = server["spec"]["template"]["spec"]["containers"]
    container["startupProbe"] = {"httpGet": {"path": "/health", "port": 8000}, "failureThreshold": 60}
    here.client.create(server)
    here.client.create(build.service(name, here.namespace, {"app": name}))


def _begin(here: Scene) -> None:
    here.pool.add_gpu_nodes(2)
    _model(here, "chat", 2)
    _model(here, "embed", 0)
    here.wait_for_pods(2, is_ready)


def _one_round(here: Scene, number: int) -> None:
    first = here.pool.names[0]
    _scale(here, "chat", 4)
    _scale(here, "embed", 1)  # from zero
    here.wait_for_pods(5, is_ready)
    _roll_out(here, "chat", f"vllm/vllm-openai:v0.16.{number}")
    eventually(lambda: _is_rolled_out(here, "chat"), timeout=60, every=0.3, what="the rollout")
    nodes.cordon(here.client, first)
    for pod in here.pods():
        if pod["spec"].get("nodeName") == first:  # one after the other, as disruption budgets have it
            here.client.delete("v1", "Pod", pod["metadata"]["name"], here.namespace)
            eventually(lambda: all(map(is_ready, here.pods())), timeout=30, every=0.3, what="the replacement")
    nodes.cordon(here.client, first, on=False)
    _backlog(here, f"batch-{number}")
    _scale(here, "chat", 2)
    _scale(here, "embed", 0)
    here.client.delete("apps/v1", "Deployment", f"batch-{number}", here.namespace)
    here.client.delete("v1", "Service", f"batch-{number}", here.namespace)
    here.wait_for_pods(2, is_ready)


def _backlog(here: Scene, name: str) -> None:
    """Two pods that a queue holds, let in one after the other."""
    _model(here, name, 2, schedulingGates=[{"name": GATE}])
    held = here.wait_for_pods(2, lambda pod: pod["spec"].get("schedulingGates"), f"app={name}")
    for pod in held:
        time.sleep(1)
        here.client.patch("v1", "Pod", pod["metadata"]["name"], here.namespace, {"spec": {"schedulingGates": None}})
    here.wait_for_pods(2, is_ready, f"app={name}")


def _scale(here: Scene, name: str, replicas: int) -> None:
    here.client.patch("apps/v1", "Deployment", name, here.namespace, {"spec": {"replicas": replicas}})


def _roll_out(here: Scene, name: str, image: str) -> None:
    path = "/spec/template/spec/containers/0/image"
    change = [{"op": "replace", "path": path, "value": image}]
    here.client.patch("apps/v1", "Deployment", name, here.namespace, change)


def _is_rolled_out(here: Scene, name: str) -> bool:
    found: Object = here.client.get("apps/v1", "Deployment", name, here.namespace)
    spec, status = found["spec"], found["status"]
    return bool(
        status.get("observedGeneration") == found["metadata"]["generation"]
        and status.get("updatedReplicas") == status.get("replicas") == status.get("readyReplicas") == spec["replicas"]
    )


def _fired(recording: Path, *more: str) -> list[dict[str, Any]]:
    answer = sevenhop("replay", str(recording), "-o", "json", *more)
    assert answer.returncode == 0, answer.stderr
    return [row for row in json.loads(answer.stdout) if row["state"] == "firing"]


def test_the_recording_has_seen_it(recording: Path) -> None:
    """Otherwise silence would prove nothing: pods that waited, were gated, loaded and were replaced."""
    pods = [event.obj for event in Recording(recording) if isinstance(event, Applied) and event.kind == "Pod"]
    names = {pod.metadata.name for pod in pods}
    print(f"{len(names)} pods, {len(pods)} changes of them")
    assert len(names) > 12
    assert any(pod.spec.scheduling_gates for pod in pods)  # type: ignore[attr-defined]


def test_nothing_fires(recording: Path) -> None:
    """With the shipped rules."""
    assert _fired(recording) == []


def test_nothing_fires_even_in_a_hurry(recording: Path, tmp_path: Path) -> None:
    """Nor if every rule waits for seconds instead of minutes: what healthy changes show is soon over."""
    rules = hurried_rules(tmp_path, dict.fromkeys(patient_rules(), HURRY))
    assert _fired(recording, "--rules", str(rules)) == []
