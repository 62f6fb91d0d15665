"""The outbox: in order per receiver, never lost, and asked about before it is sent again."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from sevenhop.channels.channel import PermanentDeliveryError, RetryableDeliveryError, UncertainDeliveryError
from sevenhop.core.events import Outcome
from sevenhop.runtime import outbox as outbox_module
from sevenhop.stores.sqlite import SqliteStore, StoreBusyError
from tests.builders import notify
from tests.unit.runtime.harness import HANG, NOON, Answer, Script, delivering, until


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path)
    yield opened
    opened.close()


def put(store: SqliteStore, *notifies: object) -> None:
    store.commit([], notifies, now=NOON.timestamp())  # type: ignore[arg-type]


async def test_one_receiver_hears_everything_in_order(store: SqliteStore) -> None:
    """A retry of the first message holds back the second: a resolve never overtakes its page."""
    slack = Script([RetryableDeliveryError("busy", retry_after=1.0)])
    put(store, notify(1, incident="a-1"), notify(1, incident="b-1"))

    async with delivering(store, {"slack": slack}):
        await until(lambda: store.waiting()[0] == 0)

    assert [call for call, _ in slack.calls] == ["a-1/slack/1", "a-1/slack/1", "b-1/slack/1"]


async def test_a_receiver_that_hangs_does_not_hold_back_another(store: SqliteStore) -> None:
    """Each receiver has its own queue."""
    put(store, notify(receiver="slack"), notify(receiver="console"))

    async with delivering(store, {"slack": Script([HANG]), "console": (console := Script())}):
        await until(lambda: console.delivered == ["i-1/console/1"])


async def test_a_newer_revision_takes_the_place_of_one_that_waits(store: SqliteStore) -> None:
    """While the receiver asks to wait, what became of the incident meanwhile is told instead, as loud as was owed."""
    slack = Script([RetryableDeliveryError("busy", retry_after=30.0)])
    put(store, notify(1, anew=True))

    async with delivering(store, {"slack": slack}) as (outbox, _):
        await until(lambda: len(slack.calls) == 1 and outbox.failures != {})
        put(store, notify(2))
        outbox.nudge()
        await until(lambda: slack.delivered != [])

    assert slack.delivered == ["i-1/slack/2"]
    assert slack.messages[0].anew


@pytest.mark.parametrize(
    ("asked_s", "at_least_s"),
    [pytest.param(20.0, 20.0, id="what the receiver asks for"), pytest.param(None, 1.0, id="one second by itself")],
)
async def test_a_refusal_for_now_is_tried_again_when_asked(
    store: SqliteStore, asked_s: float | None, at_least_s: float
) -> None:
    """Retry-After is kept, to the second."""
    put(store, notify())
    slack = Script([RetryableDeliveryError("busy", retry_after=asked_s)])

    async with delivering(store, {"slack": slack}) as (outbox, _):
        await until(lambda: outbox.failures != {})
        parcel = store.first("slack")
        assert parcel is not None
        assert parcel.due - NOON.timestamp() >= at_least_s
        await until(lambda: slack.delivered != [])

    assert slack.calls == [("i-1/slack/1", False), ("i-1/slack/1", False)]


def test_the_wait_doubles_up_to_a_minute() -> None:
    """A receiver that stays down is not hammered."""
    waits = [outbox_module.retry_delay_s(attempts, None) for attempts in range(1, 10)]

    assert waits[:4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == outbox_module.LONGEST_RETRY_S


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(UncertainDeliveryError("no answer in time"), id="timed out"),
        pytest.param(KeyError("ts"), id="a fault of ours in the channel"),
    ],
)
async def test_what_may_have_arrived_is_asked_about_first(store: SqliteStore, failure: Exception) -> None:
    """After an uncertain attempt every further one says so, until one is certain."""
    put(store, notify())
    later = RetryableDeliveryError("cannot look it up")
    slack = Script([failure, later])

    async with delivering(store, {"slack": slack}):
        await until(lambda: slack.delivered != [])

    assert [uncertain for _, uncertain in slack.calls] == [False, True, True]


async def test_what_was_under_way_in_a_crash_is_asked_about_first(store: SqliteStore) -> None:
    """An earlier process died in `sending`."""
    put(store, notify())
    parcel = store.first("slack")
    assert parcel is not None
    store.begin_sending(parcel.seq)
    slack = Script()

    async with delivering(store, {"slack": slack}):
        await until(lambda: slack.delivered != [])

    assert slack.calls == [("i-1/slack/1", True)]


async def test_a_refusal_for_good_is_told_to_the_core_and_logged_once(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """It leaves the queue, with its reason, and what is behind it goes on."""
    put(store, notify(1, incident="a-1"), notify(1, incident="b-1"))
    slack = Script([PermanentDeliveryError("invalid_auth: renew the token")])

    async with delivering(store, {"slack": slack}) as (_, heard):
        await until(lambda: store.waiting()[0] == 0)

    outcomes = [(e.effect_id, e.delivered, e.detail) for e in heard if isinstance(e, Outcome)]
    assert outcomes == [("a-1/slack/1", False, "invalid_auth: renew the token"), ("b-1/slack/1", True, "")]
    refusals = [r.message for r in caplog.records if r.levelno == logging.ERROR]
    assert refusals == ["receiver slack refuses incident a-1: invalid_auth: renew the token"]


async def test_a_delivered_message_tells_the_core_its_reference(store: SqliteStore) -> None:
    """The next edit needs the channel's own id of the message."""
    put(store, notify())

    async with delivering(store, {"slack": Script(["C1/17.1"])}) as (_, heard):
        await until(lambda: any(isinstance(e, Outcome) for e in heard))

    assert [e.reference for e in heard if isinstance(e, Outcome)] == ["C1/17.1"]


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(RetryableDeliveryError("rate limited"), id="for now"),
        pytest.param(PermanentDeliveryError("invalid_auth"), id="for good"),
        pytest.param(UncertainDeliveryError("no answer"), id="uncertain"),
    ],
)
async def test_a_failing_receiver_is_a_fact_about_ourselves(store: SqliteStore, failure: Answer) -> None:
    """The core hears when deliveries begin to fail, with the receiver's words, and when they are well again."""
    put(store, notify(1, incident="a-1"), notify(1, incident="b-1"))

    async with delivering(store, {"slack": Script([failure])}) as (outbox, heard):
        await until(lambda: len(heard.states()) == 3)
        assert outbox.failures == {}

    assert heard.states() == [("synced", ""), ("stale", f"slack: {failure}"), ("synced", "")]


async def test_messages_for_a_receiver_that_is_gone_stay_and_are_named(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Taking a receiver out of the settings loses nothing: the log says what waits, others are served."""
    put(store, notify(receiver="pager"), notify(receiver="slack"))

    async with delivering(store, {"slack": (slack := Script())}) as (outbox, _):
        await until(lambda: slack.delivered != [])
        assert outbox.unclaimed() == {"pager": 1}

    assert "receiver pager is no longer configured, and 1 message waits for it" in caplog.text
    assert store.receivers() == ["pager"]


async def test_a_message_that_cannot_be_read_does_not_stop_the_others(
    store: SqliteStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged row would otherwise end every process that meets it; the core hears of it, and writes it again."""
    put(store, notify(1, incident="a-1"), notify(1, incident="b-1"))
    with sqlite3.connect(tmp_path / "state.db") as other:
        other.execute("update outbox set effect = '{' where incident = 'a-1'")
    other.close()

    async with delivering(store, {"slack": (slack := Script())}) as (_, heard):
        await until(lambda: slack.delivered == ["b-1/slack/1"])

    assert "message a-1/slack/1 for slack cannot be read, and is written again later" in caplog.text
    refused = [e.effect_id for e in heard if isinstance(e, Outcome) and not e.delivered]
    assert refused == ["a-1/slack/1"]


async def test_a_full_disk_between_sending_and_recording_sends_nothing_twice(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What arrived is recorded as soon as the store takes it; until then the process remembers it and does not send."""
    monkeypatch.setattr(outbox_module, "STORE_RETRY_S", 0.01)
    refusals = 3
    finish = store.finish

    def busy(*args: object, **more: object) -> None:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            raise StoreBusyError("database or disk is full")
        finish(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "finish", busy)
    put(store, notify())

    async with delivering(store, {"slack": (slack := Script())}):
        await until(lambda: store.waiting()[0] == 0)
        await asyncio.sleep(0.02)

    assert slack.delivered == ["i-1/slack/1"]


async def test_what_is_superseded_while_the_store_is_busy_is_not_sent(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between taking a message and noting that it is under way a newer one may take its place: one post, not two."""
    monkeypatch.setattr(outbox_module, "STORE_RETRY_S", 0.01)
    begin, refusals = store.begin_sending, 1

    def busy(seq: int) -> bool:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            put(store, notify(2))
            raise StoreBusyError("database is locked")
        return begin(seq)

    monkeypatch.setattr(store, "begin_sending", busy)
    put(store, notify(1, anew=True))

    async with delivering(store, {"slack": (slack := Script())}):
        await until(lambda: store.waiting()[0] == 0)

    assert slack.delivered == ["i-1/slack/2"]
    assert slack.messages[0].anew


async def test_an_edit_goes_to_the_newest_message(store: SqliteStore) -> None:
    """
    What was asked for while a post anew was under way names the older message; it is the newer one that is edited, also
    by a process that comes after a crash, until the incident has ended.
    """
    slack = Script(["C/1", "C/2", "C/2"])
    put(store, notify(1, anew=True))
    async with delivering(store, {"slack": slack}) as (outbox, _):
        await until(lambda: len(slack.messages) == 1)
        put(store, msgspec.structs.replace(notify(2, anew=True), reference="C/1"))
        outbox.nudge()
        await until(lambda: len(slack.messages) == 2)
    put(store, msgspec.structs.replace(notify(3), reference="C/1"))
    async with delivering(store, {"slack": slack}) as (outbox, _):
        await until(lambda: len(slack.messages) == 3)
        put(store, msgspec.structs.replace(notify(4, status="resolved"), reference="C/1"))
        outbox.nudge()
        await until(lambda: len(slack.messages) == 4)

    assert [told.reference for told in slack.messages] == ["", "C/1", "C/2", "C/2"]
    assert not [row for row in store.rows() if row.table == outbox_module.SHOWN]
