"""Most updates of pods say nothing new: they cost little, and what does say something is never taken for one."""

from __future__ import annotations

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
from sevenhop.core.subject import Subject, SubjectKind

POD = Subject(SubjectKind.POD, "team-0", "model-00000-aaaaa-000000")
AT = START + timedelta(seconds=1)


@pytest.fixture
def cluster() -> tuple[Engine, Feed]:
    """One node's worth of pods that all run, and the feed that told of them."""
    engine, feed = new_engine(), Feed()
    feed.list_all(engine, cluster_objects(2, 1, 8))
    return engine, feed


def _update(cluster: tuple[Engine, Feed], **changed: Any) -> Facts:
    engine, feed = cluster
    made = pod(0, 0, gpus=2, node_name="node-00000", version=2)
    made = msgspec.json.decode(msgspec.json.encode(made | {"status": made["status"] | changed}))
    events: list[Event] = []
    feed.kinds["Pod"].line(line("MODIFIED", made)[:-1], AT, events)
    assert len(events) == 1
    engine.handle(events, AT)
    return engine.inventory.facts[POD]


def _conditions(ready: str, *, at: str = "2026-11-30T03:00:00Z") -> list[dict[str, str]]:
    return [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-30T03:00:00Z"},
        {"type": "Ready", "status": ready, "lastTransitionTime": at},
        {"type": "example.com/Other", "status": "False", "message": "new"},
    ]


def test_a_condition_that_nobody_reads_changes_no_fact(cluster: tuple[Engine, Feed]) -> None:
    """A ready pod with another condition has the facts that it had."""
    before = dict(cluster[0].inventory.facts[POD])
    assert _update(cluster, conditions=_conditions("True")) == before


@pytest.mark.parametrize(
    ("changed", "fact", "value"),
    [
        pytest.param({"conditions": _conditions("False")}, "pod.ready", False, id="no longer ready"),
        pytest.param({"phase": "Succeeded"}, "pod.phase", "Succeeded", id="finished, its conditions lag behind"),
        pytest.param(
            {
                "containerStatuses": [
                    {"name": "engine", "ready": True, "restartCount": 2, "state": {"running": {"startedAt": None}}}
                ]
            },
            "pod.restarts_10m",
            2,
            id="restarted between two looks",
        ),
    ],
)
def test_what_is_read_is_seen(cluster: tuple[Engine, Feed], changed: dict[str, Any], fact: str, value: object) -> None:
    """Whatever a fact is made from is compared, also while the pod says that it is ready."""
    assert cluster[0].inventory.facts[POD][fact] != value
    assert _update(cluster, **changed)[fact] == value


def test_only_who_waits_in_a_pool_is_told_its_capacity(cluster: tuple[Engine, Feed]) -> None:
    """A pool with thousands of holders is summed up for itself and for who waits in it, not for every crash."""
    engine, feed = cluster
    inventory = engine.inventory
    component = Subject(SubjectKind.COMPONENT, "team-0", "model-00000/engine")
    pool = Subject(SubjectKind.POOL, "", next(iter(inventory.state.ledger.pools())))
    running, whole = inventory.context(component, AT), inventory.context(pool, AT)
    assert running is not None
    assert whole is not None
    assert (running.pool, whole.pool is None) == (None, False)
    events: list[Event] = []
    feed.kinds["Pod"].line(line("ADDED", pod(99, 0, gpus=2, node_name=""))[:-1], AT, events)
    engine.handle(events, AT)
    waiting = inventory.context(component, AT)
    brief = inventory.context(component, AT, brief=True)
    assert waiting is not None
    assert brief is not None
    assert waiting.pool is not None
    assert (brief.pool, brief.pods) == (None, waiting.pods)
