"""What is read once and kept, such as a pod's spec in brief, is read anew when what it was read from changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from bench.engines import START, Feed, new_engine
from bench.generate import line, pod
from bench.lines import cluster_objects
from sevenhop.core.engine import Engine
from sevenhop.core.events import Event
from sevenhop.core.facts.schema import Facts
from sevenhop.core.subject import Subject

AT = START + timedelta(seconds=1)
KEY = ("team-0", "model-00000-aaaaa-000000")
Change = Callable[[dict[str, Any]], None]


def _of_status(made: dict[str, Any]) -> None:
    made["status"]["conditions"][1]["status"] = "False"


def _image(made: dict[str, Any]) -> None:
    made["spec"]["containers"][0]["image"] = "vllm/vllm-openai:v0.12.0"
    made["status"]["containerStatuses"][0].pop("imageID")


def _gpus(made: dict[str, Any]) -> None:
    for amounts in made["spec"]["containers"][0]["resources"].values():
        amounts["nvidia.com/gpu"] = "4"


def _priority(made: dict[str, Any]) -> None:
    made["spec"]["priority"] = 2_000_000  # by the policy of a cluster without words of its own: critical


def _owner(made: dict[str, Any]) -> None:
    made["metadata"]["ownerReferences"] = []


def _deleted(made: dict[str, Any]) -> None:
    made["metadata"]["deletionTimestamp"] = "2026-11-30T03:05:00Z"


def _engine(*versions: Change, node_name: str = "node-00000") -> Engine:
    """Knows eight pods: one was listed like the first version, and then became like each of the others."""
    engine, feed = new_engine(), Feed()
    listed = cluster_objects(2, 1, 8)
    at = next(i for i, obj in enumerate(listed) if obj["kind"] == "Pod")
    for number, change in enumerate(versions):
        made: dict[str, Any] = pod(0, 0, gpus=2, node_name=node_name, version=number + 1)
        made = msgspec.json.decode(msgspec.json.encode(made))
        change(made)
        if number == 0:
            feed.list_all(engine, [*listed[:at], made, *listed[at + 1 :]])
            continue
        events: list[Event] = []
        feed.kinds["Pod"].line(line("MODIFIED", made)[:-1], AT, events)
        engine.handle(events, AT)
    engine.handle([], AT)
    return engine


def _finished(made: dict[str, Any]) -> None:
    made["status"]["phase"] = "Succeeded"


def _nominated(made: dict[str, Any]) -> None:
    made["status"]["nominatedNodeName"] = "node-00001"


def _without_hash(made: dict[str, Any]) -> None:
    del made["metadata"]["labels"]["pod-template-hash"]


def _facts(*versions: Change) -> dict[Subject, Facts]:
    return _engine(*versions).inventory.facts


def _nothing(_: dict[str, Any]) -> None:
    """The pod as it was."""


@pytest.mark.parametrize(
    "change", [_of_status, _image, _gpus, _priority, _owner, _deleted], ids=lambda each: each.__name__
)
def test_a_change_is_read_as_if_it_had_always_been(change: Change) -> None:
    """A pod that becomes another one, or that again, has the facts of one that was listed so."""
    listed_so, became_so = _facts(change), _facts(_nothing, change)
    assert listed_so != _facts(_nothing), "the change has to change a fact"
    assert became_so == listed_so
    assert _facts(change, _nothing) == _facts(_nothing)


def test_what_nobody_reads_does_not_keep_older_versions() -> None:
    """Discovery lets go of a pod's older version when the newer one says the same, whether it was settled or not."""
    engine, feed = new_engine(), Feed()
    feed.list_all(engine, cluster_objects(2, 1, 8))
    objects, discovery = engine.inventory.state.objects, engine.inventory.state.discovery
    for version in (2, 3):
        events: list[Event] = []
        made = pod(0, 0, gpus=2, node_name="node-00000", version=version)
        feed.kinds["Pod"].line(line("MODIFIED", made)[:-1], AT, events)
        engine.handle(events, AT)
        key = (made["metadata"]["namespace"], made["metadata"]["name"])
        assert objects.pods()[key].metadata.resource_version == str(version)
        assert discovery._seen["Pod", key] is objects.pods()[key]


def test_a_pod_that_finishes_leaves_its_node() -> None:
    """A status alone frees what the pod held, for placement too."""
    engine = _engine(_nothing, _finished)
    assert KEY not in engine.inventory.state.placement.views["node-00000"].residents
    assert KEY in _engine(_nothing).inventory.state.placement.views["node-00000"].residents


def test_a_pod_that_waits_is_nominated_by_its_status() -> None:
    """Placement learns of a nomination, which comes with the status of a pod without a node."""
    engine = _engine(_nothing, _nominated, node_name="")
    assert KEY in engine.inventory.state.placement.views["node-00001"].nominated


def test_a_controller_finds_the_components_of_its_pods() -> None:
    """A pod that turns out to be made by another controller, of the same component, is found by that one too."""
    assert ("team-0", "ReplicaSet.apps/model-00000-aaaaa") in _engine(_nothing, _without_hash).inventory.state.families
