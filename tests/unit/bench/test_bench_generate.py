"""What the benchmarks are fed: the same every time, of the size and the mix that they say."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import msgspec
import pytest

from bench.generate import STARTING, Every, deployment, line, mixed_lines, node, pod
from sevenhop.core.objects.decode import decode
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod

DEPLOYMENTS, REPLICAS = 500, 8


def _lines(count: int, every: Every = Every.MIXED, seed: int = 7) -> list[bytes]:
    return list(mixed_lines(count, deployments=DEPLOYMENTS, replicas=REPLICAS, every=every, seed=seed))


def _parsed(lines: list[bytes]) -> list[tuple[str, dict[str, Any]]]:
    return [(found["type"], found["object"]) for found in map(msgspec.json.decode, lines)]


def _is_ready(obj: dict[str, Any]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in obj["status"]["conditions"])


def test_the_same_seed_gives_the_same_bytes() -> None:
    """Two runs measure the same lines; another seed gives others."""
    assert _lines(300) == _lines(300)
    assert _lines(300) != _lines(300, seed=8)


def test_a_watch_line_of_a_pod_has_about_eight_kilobytes() -> None:
    """The figures speak of 8 KB pods."""
    assert 7_000 <= len(line("MODIFIED", pod(1, 1, gpus=2, node_name="node-00000"))) <= 9_000


def test_the_mix_is_80_15_5() -> None:
    """Of a long run 80 % of the lines leave readiness as it was, 15 % flip it, 5 % create or delete."""
    ready: dict[str, bool] = {}
    found: Counter[str] = Counter()
    for change, obj in _parsed(_lines(5_000)):
        name, now = obj["metadata"]["name"], _is_ready(obj)
        flips = change == "MODIFIED" and now != ready.get(name, True)
        found["other" if change != "MODIFIED" else "flip" if flips else "status"] += 1
        ready[name] = now
    shares = {kind: count / 5_000 for kind, count in found.items()}
    assert shares == {
        "status": pytest.approx(0.80, abs=0.02),
        "flip": pytest.approx(0.15, abs=0.02),
        "other": pytest.approx(0.05, abs=0.01),
    }


def test_a_status_only_line_changes_the_status() -> None:
    """No two versions of a pod are equal, so that comparing them is not measured as free."""
    last: dict[str, Any] = {}
    for _, obj in _parsed(_lines(3_000)):
        assert obj["status"] != last.get(obj["metadata"]["name"])
        last[obj["metadata"]["name"]] = obj["status"]


@pytest.mark.parametrize("every", [Every.FACTS, Every.ALERTS], ids=lambda every: every.name)
def test_where_every_line_changes_facts_each_flips_a_pod(every: Every) -> None:
    """And a pod flips back only after more lines than one slice of the runtime has, or the two would cancel."""
    ready: dict[str, bool] = {}
    flipped_at: dict[str, int] = {}
    distances = []
    for number, (_, obj) in enumerate(_parsed(_lines(2_500, every))):
        name, now = obj["metadata"]["name"], _is_ready(obj)
        assert now != ready.get(name, True)
        ready[name] = now
        if name in flipped_at:
            distances.append(number - flipped_at[name])
        flipped_at[name] = number
    assert sorted(distances)[len(distances) // 10] > 200
    assert list(ready.values()).count(False) < 2 * STARTING


@pytest.mark.parametrize(
    ("obj", "kind"),
    [
        pytest.param(node(1), "Node", id="node"),
        pytest.param(pod(1, 1, gpus=2, node_name=""), "Pod", id="pod that waits"),
        pytest.param(pod(1, 1, gpus=2, node_name="n", fails=True), "Pod", id="pod that crashes"),
        pytest.param(deployment(1, 3, gpus=2)[0], "Deployment.apps", id="deployment"),
        pytest.param(deployment(1, 3, gpus=0)[1], "ReplicaSet.apps", id="replica set without GPUs"),
    ],
)
def test_objects_are_decoded_strictly(obj: dict[str, Any], kind: str) -> None:
    """None of them takes the slow way round that odd objects take."""
    strict = msgspec.json.Decoder(KINDS[kind].struct)
    raw = msgspec.json.encode(obj)
    assert strict.decode(raw) == decode(KINDS[kind], raw)


def test_a_pod_without_a_node_is_unschedulable() -> None:
    """The queue that is measured is one of pods that the scheduler has refused."""
    found = decode(KINDS["Pod"], msgspec.json.encode(pod(1, 1, gpus=2, node_name="")))
    assert isinstance(found, Pod)
    assert [(c.type, c.status, c.reason) for c in islice(found.status.conditions, 1)] == [
        ("PodScheduled", "False", "Unschedulable")
    ]
