"""What is read when somebody asks."""

from __future__ import annotations

import asyncio
from datetime import datetime

import msgspec
import pytest

from sevenhop.core.alerts.rule import Severity
from sevenhop.core.events import SyncState
from sevenhop.core.facts.schema import Facts, Unknown, UnknownReason
from sevenhop.core.subject import Subject, SubjectKind
from sevenhop.telemetry import levels as levels_module
from sevenhop.telemetry.levels import Levels, engine_samples, fact_samples, outbox_samples, source_samples
from sevenhop.telemetry.meter import Meter
from sevenhop.telemetry.scrape import families
from sevenhop.telemetry.table import METRICS, MOST_TEXT
from tests.builders import at
from tests.unit.engine.machines import Machine, full_cluster, waiting_pod
from tests.unit.telemetry.pages import value

METER = Meter("test")


class Status(msgspec.Struct, kw_only=True):
    kind: str
    state: SyncState = SyncState.SYNCED
    objects: int = 0
    errors: int = 0
    lists: int = 1
    unreadable: int = 0
    last_success_at: datetime | None = None


@pytest.fixture(scope="module")
def short() -> Machine:
    """A decode worker waits for GPUs long enough for its alert to fire."""
    machine = Machine()
    machine.tell([*machine.feed.applied(*full_cluster()), *machine.feed.synced()], 0)
    machine.put(waiting_pod(), seconds=10)
    machine.until(600)
    return machine


def test_a_source_that_is_silent_grows_stale() -> None:
    """Its age counts from the last word of the API server; of one that never said anything, from our start."""
    rows = [Status(kind="Pod", last_success_at=at(90)), Status(kind="Node", state=SyncState.NOT_SYNCED)]
    samples = source_samples("c", rows, at(100), at(0))

    def age(kind: str) -> float:
        return value(METER, "sevenhop_source_staleness_seconds", samples, cluster="c", kind=kind)

    assert (age("Pod"), age("Node")) == (10, 100)


def test_a_kind_is_in_one_state() -> None:
    """1 for the state that it is in, 0 for all others, so that an alert on one ends."""
    samples = source_samples("c", [Status(kind="Pod", state=SyncState.FORBIDDEN)], at(0), at(0))
    states = {labels[2]: number for name, labels, number in samples if name == "sevenhop_source_state"}

    assert states == {state: float(state is SyncState.FORBIDDEN) for state in SyncState}


def test_kinds_that_are_not_served_are_left_out() -> None:
    """There are none, which is no news; seventy empty series would be noise."""
    assert source_samples("c", [Status(kind="Pod", state=SyncState.ABSENT)], at(0), at(0)) == []


async def test_pods_carry_what_they_serve(short: Machine) -> None:
    """The labels that the rest of the world joins on."""
    samples = await fact_samples("test", list(short.engine.inventory.facts.items()), 100)
    name = "sevenhop_pod_info"
    pods = {
        labels[2]: dict(zip(METRICS[name].label_names, labels, strict=True)) for n, labels, _ in samples if n == name
    }

    found = pods["llama-70b-decode-0"]
    assert found["inference_workload"] == "llama-70b"
    assert found["inference_workload_component"] == "decode"
    assert found["model"] == "meta-llama/Llama-3.1-70B"
    assert (found["tier"], found["node"], found["namespace"]) == ("critical", "gpu-0", "prod")
    assert pods["llama-70b-decode-2"]["node"] == ""


async def test_pods_beyond_the_limit_are_counted_and_left_out(short: Machine) -> None:
    """The page stays small; what it lacks is said."""
    facts = list(short.engine.inventory.facts.items())
    in_all = sum(subject.kind is SubjectKind.POD for subject, _ in facts)
    samples = await fact_samples("test", facts, 2)

    assert sum(name == "sevenhop_pod_info" for name, _, _ in samples) == 2
    assert ("sevenhop_pod_info_left_out", ("test",), float(in_all - 2)) in samples


async def test_labels_hold_no_password_and_no_novel() -> None:
    """A model that is named by an address is shown without its credentials; a long name is cut."""
    subject = Subject(SubjectKind.POD, "prod", "p")
    samples = await fact_samples("c", [(subject, {"model": "https://me:pw123456@host/m", "node": "n" * 999})], 10)
    page = str(families(samples)[0].samples)

    assert "pw123456" not in page
    assert "n" * MOST_TEXT in page
    assert "n" * (MOST_TEXT + 1) not in page


async def test_unknown_facts_by_reason() -> None:
    """Of each kind of subject, summed up."""
    blind = Unknown(UnknownReason.STALE)
    facts: list[tuple[Subject, Facts]] = [
        (Subject(SubjectKind.NODE, "", name), {"node.ready": blind, "node.gpus": 2}) for name in ("a", "b")
    ]

    assert ("sevenhop_unknown_facts", ("c", "node", "stale"), 2.0) in await fact_samples("c", facts, 0)


async def test_a_large_cluster_is_looked_at_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others get their turn in the middle of it."""
    monkeypatch.setattr(levels_module, "SLICE", 10)
    facts: list[tuple[Subject, Facts]] = [(Subject(SubjectKind.NODE, "", str(n)), {}) for n in range(100)]
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await fact_samples("c", facts, 0)
    task.cancel()
    assert turns >= 9


async def test_facts_are_not_counted_for_every_scrape(short: Machine) -> None:
    """Several Prometheus servers cost what one does; after some seconds it is looked again."""
    clock = [0.0]
    found = Levels(short.engine, list, lambda: at(0), pod_limit=100, monotonic=lambda: clock[0])
    first = await found._of_facts("test")
    clock[0] = levels_module.FACTS_EVERY_S - 0.1
    assert await found._of_facts("test") is first
    clock[0] = levels_module.FACTS_EVERY_S
    assert await found._of_facts("test") is not first


def test_an_open_incident_shows_by_severity_and_its_decisions_by_reason(short: Machine) -> None:
    """What people were told, and why, in the words of `explain`."""
    samples = engine_samples("test", short.engine)

    def shown(name: str, **labels: str) -> float:
        return value(METER, name, samples, cluster="test", **labels)

    (incident,) = [each for each in short.engine.desk.incidents.values() if each.is_open]
    assert {s: shown("sevenhop_incidents_open", severity=s) for s in Severity} == {
        severity: float(severity is incident.severity) for severity in Severity
    }
    assert shown("sevenhop_notify_decisions_total", reason="first_firing") >= 1
    assert shown("sevenhop_alerts", state="firing") >= 1
    assert shown("sevenhop_rules") == len(short.engine.alerts.rules)
    assert shown("sevenhop_pods_disagreeing") == 0


def test_a_verdict_against_the_schedulers_is_counted_once() -> None:
    """While it lasts it is one mistake of ours, however often it is computed again; its end does not take it back."""
    machine = Machine()
    free = [obj for obj in full_cluster() if obj.metadata.name != "gpu-1"][:1]  # one node, empty: it fits
    from tests.unit.engine.machines import LLAMA

    machine.tell([*machine.feed.applied(*free, LLAMA), *machine.feed.synced()], 0)
    machine.put(waiting_pod(), seconds=10)
    machine.until(20)
    pending = machine.engine.inventory.state.pending
    assert (pending.disagreeing(), pending.disagreements) == (1, 1)
    machine.put(waiting_pod(since=11), seconds=30)
    machine.until(40)
    assert (pending.disagreeing(), pending.disagreements) == (1, 1)
    machine.delete(waiting_pod(), seconds=50)
    machine.until(60)
    assert (pending.disagreeing(), pending.disagreements) == (0, 1)


def test_every_receiver_has_its_queue() -> None:
    """Also one with nothing to do, and one that is no longer configured and has something waiting."""
    samples = outbox_samples("c", {"old": 3, "team": 1}, {"team": at(0)}, ["team"], ["team", "console"], at(90))

    def shown(name: str, receiver: str) -> float:
        return value(METER, f"sevenhop_outbox_{name}", samples, cluster="c", receiver=receiver)

    assert [shown("messages", r) for r in ("old", "team", "console")] == [3, 1, 0]
    assert [shown("age_seconds", r) for r in ("team", "console")] == [90, 0]
    assert [shown("failing", r) for r in ("team", "console")] == [1, 0]


def test_sources_that_are_no_kind_have_a_state_too() -> None:
    """Such as the agents on GPU nodes; parts of ourselves have metrics of their own."""
    machine = Machine()
    states = machine.engine.inventory.state.objects.states
    states["gpu-agent"], states["outbox"] = SyncState.STALE, SyncState.STALE
    found = {
        labels[1:]: number
        for name, labels, number in engine_samples("c", machine.engine)
        if name == "sevenhop_source_state"
    }

    assert (found["gpu-agent", "stale"], found["gpu-agent", "synced"]) == (1, 0)
    assert {kind for kind, _ in found} == {"gpu-agent"}
