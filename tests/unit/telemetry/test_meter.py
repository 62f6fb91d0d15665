"""What is counted as it happens."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.channels.channel import PermanentDeliveryError, RetryableDeliveryError, UncertainDeliveryError
from sevenhop.core.engine import Step
from sevenhop.core.events import Event, SourceChanged, StepDone, StepResult, SyncState, Tick
from sevenhop.core.remediation.permit import GuardName, Refusal
from sevenhop.runtime import outbox as outbox_module
from sevenhop.telemetry.meter import Meter
from sevenhop.telemetry.table import METRICS, DeliveryOutcome, MetricType
from sevenhop.telemetry.times import StepTimes
from tests.builders import NOON, Feed, at, node, notify
from tests.unit.runtime.harness import Script, delivering, quick_clock, running, until
from tests.unit.telemetry.pages import read, value

TIMES = StepTimes(at(0), at(0.5), 0.002, 0.001)


def took(meter: Meter, *events: Event, step: Step | None = None) -> None:
    meter.stepped(events, step or Step(), TIMES)


def test_events_are_counted_by_type_and_kind() -> None:
    """A whole step at once, each type and kind for itself."""
    meter, feed = Meter("c"), Feed()
    took(meter, *feed.applied(node("a"), node("b")), *feed.deleted(node("a")), Tick(at=NOON))

    def count(event: str, kind: str) -> float:
        return value(meter, "sevenhop_events_total", cluster=meter.cluster, event=event, kind=kind)

    assert (count("applied", "Node"), count("deleted", "Node"), count("tick", "")) == (2, 1, 1)


def test_the_lag_is_that_of_the_oldest_event() -> None:
    """From its observation until it is stored; an event dated in our future counts as none."""
    meter = Meter("c")
    took(meter, Tick(at=at(-2)), Tick(at=at(0)))
    took(meter, Tick(at=at(60)))

    assert value(meter, "sevenhop_event_lag_seconds_sum", cluster="c") == pytest.approx(2.5)
    assert value(meter, "sevenhop_event_lag_seconds_count", cluster="c") == 2


@given(st.lists(st.text(max_size=30), max_size=50))
def test_words_that_are_not_known_make_no_new_series(words: list[str]) -> None:
    """However many kinds a source invents, there are never more series than the table allows."""
    meter = Meter("c")
    took(meter, *(SourceChanged(at=NOON, kind=word, state=SyncState.SYNCED) for word in words))

    kinds = {dict(labels)["kind"] for name, labels in read(meter) if name == "sevenhop_events_total"}
    known = METRICS["sevenhop_events_total"].labels[-1].values
    assert known is not None
    assert kinds <= known


def test_refusals_of_the_guards_are_counted_and_handed_on() -> None:
    """The executor gets the very answer."""
    refusal = Refusal(GuardName.FREEZE, "until Monday")
    meter = Meter("c")
    ask = meter.counting(lambda _act, _now: refusal)

    assert ask(None, NOON) is refusal  # type: ignore[arg-type]
    assert value(meter, "sevenhop_guard_refusals_total", cluster="c", guard="freeze") == 1


def test_ends_of_steps_in_the_cluster_are_counted() -> None:
    """By what came of them."""
    meter = Meter("c")
    took(meter, StepDone(at=NOON, effect_id="x", result=StepResult.REFUSED))

    assert value(meter, "sevenhop_action_steps_total", cluster="c", result="refused") == 1


def test_two_meters_do_not_meet() -> None:
    """Each has a registry of its own, so a process may have several."""
    one, other = Meter("one"), Meter("other")
    took(one, Tick(at=NOON))

    assert value(one, "sevenhop_events_total", cluster="one", event="tick", kind="") == 1
    assert [name for name, _ in read(other) if name == "sevenhop_events_total"] == []


def test_clusters_of_one_process_are_told_apart() -> None:
    """One page, one series for each cluster; and how long a step took is of the process."""
    meter = Meter("one")
    took(meter, Tick(at=NOON))
    meter.of("two").counted([Tick(at=NOON), Tick(at=NOON)], Step(), NOON)
    meter.of("two").delivered("slack", DeliveryOutcome.DELIVERED, 0.1)

    def ticks(cluster: str) -> float:
        return value(meter, "sevenhop_events_total", cluster=cluster, event="tick", kind="")

    assert (ticks("one"), ticks("two")) == (1, 2)
    assert value(meter, "sevenhop_deliveries_total", cluster="two", receiver="slack", outcome="delivered") == 1
    assert value(meter, "sevenhop_step_duration_seconds_count", part="engine") == 1


async def test_each_call_of_a_receiver_has_its_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retried, in doubt, a fault of ours, delivered, refused: each is counted, as the outbox meets it."""
    monkeypatch.setattr(outbox_module, "FIRST_RETRY_S", 0.01)
    answers: list[Exception | str] = [
        RetryableDeliveryError("busy"), UncertainDeliveryError("?"), RuntimeError("ours"), "ok",
               PermanentDeliveryError("no")]  # fmt: skip
    meter = Meter("c")
    from sevenhop.stores.sqlite import SqliteStore

    store, clock = SqliteStore(tmp_path), quick_clock()
    store.commit([], [notify(1), notify(1, incident="i-2")], now=clock().timestamp())
    async with delivering(store, {"slack": Script(answers)}, clock) as (outbox, _):
        outbox.watches.append(lambda receiver, _effect, outcome, took_s: meter.delivered(receiver, outcome, took_s))
        await until(lambda: not store.receivers())
    store.close()

    found = {
        dict(labels)["outcome"]: n for (name, labels), n in read(meter).items() if name == "sevenhop_deliveries_total"
    }
    assert found == {"retried": 1, "uncertain": 1, "fault": 1, "delivered": 1, "refused": 1}
    assert value(meter, "sevenhop_delivery_duration_seconds_count", receiver="slack") == 5


async def test_a_receiver_that_takes_nothing_grows_old(tmp_path: Path) -> None:
    """The age counts from when the message was made, over failed attempts, and ends with the first that is taken."""
    from sevenhop.stores.sqlite import SqliteStore

    store, clock = SqliteStore(tmp_path), quick_clock()
    made = clock() - timedelta(minutes=5)
    store.commit([], [notify(1)], now=made.timestamp())
    slack = Script([RetryableDeliveryError("busy")] * 2)
    async with delivering(store, {"slack": slack}, clock) as (outbox, _):
        await until(lambda: len(slack.calls) == 2)
        assert abs(outbox.waiting_since["slack"] - made) < timedelta(seconds=1)
        await until(lambda: not store.receivers() and not outbox.waiting_since)
    store.close()


async def test_the_runtime_counts_what_it_handles(tmp_path: Path) -> None:
    """A real loop with a real store: events, both parts of a step, and the alert's change with its reason."""
    meter = Meter("test")
    async with running(tmp_path, {"slack": (slack := Script())}) as plant:
        plant.embedded.watches.append(meter.stepped)
        plant.told.synced(node("n1"))
        plant.told.node("n1", ready=False)
        await until(lambda: len(slack.messages) == 1 and plant.embedded.is_idle)

    assert value(meter, "sevenhop_events_total", cluster="test", event="applied", kind="Node") == 2
    assert value(meter, "sevenhop_events_total", cluster="test", event="outcome", kind="") == 1
    assert value(meter, "sevenhop_step_duration_seconds_count", part="store") >= 2
    changed = {"cluster": "test", "state": "firing", "reason": "held"}
    reasons = {labels for name, labels in read(meter) if name == "sevenhop_alert_changes_total"}
    assert any(("state", changed["state"]) in labels for labels in reasons)


def test_every_counted_metric_is_in_the_table_and_made() -> None:
    """A row that nobody fills would be a promise on the page only."""
    from sevenhop.runtime import watched
    from sevenhop.runtime.scaled import watched as watched_scaled
    from sevenhop.telemetry import gpu_sources, levels, meter, table

    modules = (gpu_sources, levels, meter, watched, watched_scaled)
    sources = "".join(Path(module.__file__ or "").read_text("utf-8") for module in modules)
    assert [name for name in METRICS if f'"{name}"' not in sources] == []
    assert {row.type for row in METRICS.values()} == set(MetricType)
    assert table.MOST_TEXT == 200
