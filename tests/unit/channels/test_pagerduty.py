"""PagerDuty: one of their incidents per incident and episode, against a server with their limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.channels.channel import PermanentDeliveryError, RetryableDeliveryError
from sevenhop.channels.pagerduty.channel import PATIENCE_S, PagerDutyChannel
from sevenhop.channels.pagerduty.event import MAX_DEDUP_KEY, MAX_EVENT_BYTES, MAX_SUMMARY, Step, event_of
from sevenhop.channels.pagerduty.settings import PagerDutySettings
from sevenhop.core.alerts.rule import Severity
from sevenhop.core.effects import Line, Message, Notify, PlanCard, Role
from sevenhop.core.events import Event
from sevenhop.core.remediation.states import PlanState
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.outbox import Outbox
from sevenhop.stores.sqlite import SqliteStore
from tests.fakes.pagerduty_server import KEY, PagerDutyServer
from tests.unit.channels.notifies import NOON, message, notify, resolved

OTHER = "f" * 32


def channel_to(server: PagerDutyServer, key: str = KEY, former: tuple[str, ...] = ()) -> PagerDutyChannel:
    settings = PagerDutySettings.model_validate(
        {"type": "pagerduty", "routing_key": key, "former_routing_keys": list(former), "base_url": server.base_url}
    )
    return PagerDutyChannel(settings, lambda: NOON)


@pytest.fixture
async def server() -> AsyncIterator[PagerDutyServer]:
    async with PagerDutyServer() as server:
        yield server


@pytest.fixture
async def channel(server: PagerDutyServer) -> AsyncIterator[PagerDutyChannel]:
    channel = channel_to(server)
    yield channel
    await channel.close()


def with_plan(state: PlanState, *buttons: str) -> Message:
    card = PlanCard(plan_id="7f3a0000", plan_hash="h", state=state, question="?", buttons=buttons, expires_at=NOON)
    return message(plan=card)


async def test_one_incident_from_trigger_to_resolve(server: PagerDutyServer, channel: PagerDutyChannel) -> None:
    """Whatever is told in between, a person is notified once, and it is resolved in the end."""
    first = await channel.deliver(notify(1), uncertain=False)
    loud = await channel.deliver(notify(2, anew=True, reference=first.reference), uncertain=False)
    await channel.deliver(notify(3, message=resolved(), reference=loud.reference), uncertain=False)

    [incident] = server.incidents
    assert (incident.dedup_key, incident.status, incident.notified) == ("k1-1", "resolved", 1)
    assert incident.log == ["trigger", "trigger", "resolve"]


async def test_the_next_episode_is_another_incident(server: PagerDutyServer, channel: PagerDutyChannel) -> None:
    """What comes back later wakes somebody again."""
    for episode in (1, 2):
        told = await channel.deliver(notify(1, episode=episode), uncertain=False)
        end = notify(2, episode=episode, message=resolved(), reference=told.reference)
        await channel.deliver(end, uncertain=False)

    assert [each.dedup_key for each in server.incidents] == ["k1-1", "k1-2"]


async def test_a_quiet_edit_that_says_nothing_new_is_not_sent(
    server: PagerDutyServer, channel: PagerDutyChannel
) -> None:
    """An edit of a count every second would fill PagerDuty's log and its limit of events."""
    first = await channel.deliver(notify(1), uncertain=False)
    edited = message(title="llama-70b/decode waits for 2 × H100 · 2/4 ready")
    again = await channel.deliver(
        notify(2, message=msgspec.structs.replace(edited, title=message().title + " · 2/4 ready"),
               reference=first.reference),
        uncertain=False,
    )  # fmt: skip

    assert len(server.events) == 1
    assert again.reference == first.reference


async def test_an_approval_acknowledges(server: PagerDutyServer, channel: PagerDutyChannel) -> None:
    """While the approved plan runs, nobody else is escalated to; the proposed plan is in the details."""
    first = await channel.deliver(notify(1, message=with_plan(PlanState.PROPOSED, "approve")), uncertain=False)
    assert server.incidents[0].details["Approve with"] == "sevenhop approve 7f3a0000"
    await channel.deliver(notify(2, message=with_plan(PlanState.RUNNING), reference=first.reference), uncertain=False)

    assert server.incidents[0].status == "acknowledged"


async def test_acknowledge_and_resolve_are_said_once(server: PagerDutyServer, channel: PagerDutyChannel) -> None:
    """They carry nothing but themselves: what goes on with the plan meanwhile, or after the end, is no other event."""
    told = await channel.deliver(notify(1, message=with_plan(PlanState.PROPOSED, "approve")), uncertain=False)
    ended = {"status": "resolved", "end_reason": "recovered"}
    for revision, (state, more) in enumerate(
        [(PlanState.APPROVED, {}), (PlanState.RUNNING, {}), (PlanState.RUNNING, ended), (PlanState.SUCCEEDED, ended)], 2
    ):
        edit = msgspec.structs.replace(with_plan(state), **more)
        told = await channel.deliver(notify(revision, message=edit, reference=told.reference), uncertain=False)

    assert [event["event_action"] for event in server.events] == ["trigger", "acknowledge", "resolve"]


async def test_a_run_that_has_failed_wakes_somebody_again(server: PagerDutyServer, channel: PagerDutyChannel) -> None:
    """
    PagerDuty notifies nobody of what is acknowledged, and we acknowledged it for a run that did not help.

    The next plan is a trigger, and its approval another acknowledge.
    """
    told = await channel.deliver(notify(1, message=with_plan(PlanState.PROPOSED, "approve")), uncertain=False)
    states = (PlanState.RUNNING, PlanState.UNDONE, PlanState.PROPOSED, PlanState.APPROVED)
    for revision, state in enumerate(states, 2):
        aloud = state is PlanState.UNDONE
        again = notify(revision, message=with_plan(state), reference=told.reference, anew=aloud)
        told = await channel.deliver(again, uncertain=False)

    sent = [event["event_action"] for event in server.events]
    assert sent == ["trigger", "acknowledge", "resolve", "trigger", "trigger", "acknowledge"]
    assert [each.status for each in server.incidents] == ["resolved", "acknowledged"]
    assert [each.notified for each in server.incidents] == [1, 1]


async def test_a_run_that_has_helped_wakes_nobody(server: PagerDutyServer, channel: PagerDutyChannel) -> None:
    """Until the alert ends, which takes a while, what is edited quietly leaves it acknowledged."""
    told = await channel.deliver(notify(1, message=with_plan(PlanState.PROPOSED, "approve")), uncertain=False)
    for revision, state in enumerate((PlanState.RUNNING, PlanState.SUCCEEDED), 2):
        again = notify(revision, message=with_plan(state), reference=told.reference)
        told = await channel.deliver(again, uncertain=False)
    await channel.deliver(notify(4, message=resolved(), reference=told.reference), uncertain=False)

    assert [event["event_action"] for event in server.events] == ["trigger", "acknowledge", "resolve"]


async def test_a_resolve_in_doubt_wakes_nobody(server: PagerDutyServer, channel: PagerDutyChannel) -> None:
    """A crash after the resolve arrived and before that was recorded: said again, it opens nothing."""
    first = await channel.deliver(notify(1), uncertain=False)
    for _ in range(2):
        end = notify(2, message=resolved(), reference=first.reference)
        await channel.deliver(end, uncertain=True)
    await channel.deliver(notify(2, message=resolved(), reference=""), uncertain=True)

    assert [each.status for each in server.incidents] == ["resolved"]


async def test_a_resolve_goes_to_the_key_of_the_trigger() -> None:
    """After the key was replaced, what is open under the old one is resolved there."""
    async with PagerDutyServer(keys=(KEY, OTHER)) as server:
        before = channel_to(server, KEY)
        first = await before.deliver(notify(1), uncertain=False)
        await before.close()
        after = channel_to(server, OTHER, former=(KEY,))
        await after.deliver(notify(2, message=resolved(), reference=first.reference), uncertain=False)
        await after.deliver(notify(1, key="k2"), uncertain=False)
        await after.close()

    assert [(each.routing_key, each.status) for each in server.incidents] == [(KEY, "resolved"), (OTHER, "triggered")]


async def test_a_refusal_says_why_and_shows_no_key(server: PagerDutyServer) -> None:
    """An event that PagerDuty calls invalid is not tried again; the reason is PagerDuty's, without the key."""
    channel = channel_to(server, OTHER)
    with pytest.raises(PermanentDeliveryError, match="'routing_key' is invalid") as told:
        await channel.deliver(notify(1), uncertain=False)
    await channel.close()

    assert OTHER not in str(told.value)


async def test_the_limit_of_events_is_waited_for() -> None:
    """Over the limit nothing is lost: it is tried again after the time that PagerDuty's limits page names."""
    async with PagerDutyServer(per_minute=1) as server:
        channel = channel_to(server)
        await channel.deliver(notify(1), uncertain=False)
        with pytest.raises(RetryableDeliveryError) as told:
            await channel.deliver(notify(1, key="k2"), uncertain=False)
        await channel.close()

    assert told.value.retry_after == PATIENCE_S


@given(title=st.text(max_size=3_000), text=st.text(max_size=3_000), count=st.integers(0, 80), incident=st.text())
def test_any_event_is_within_the_limits(title: str, text: str, count: int, incident: str) -> None:
    """No text from a cluster makes an event that PagerDuty refuses."""
    said = message(title=title, cluster=text, lines=tuple(Line(Role.NOTE, text, text or "x") for _ in range(count)))
    asked: Notify = notify(message=said, incident=incident or "i")
    for step in Step:
        event = event_of(asked, step, KEY)
        assert len(json.dumps(event).encode()) <= MAX_EVENT_BYTES
        assert len(event["dedup_key"]) <= MAX_DEDUP_KEY
        if step is Step.TRIGGER:
            assert 0 < len(event["payload"]["summary"]) <= MAX_SUMMARY
            assert event["payload"]["source"]


@pytest.mark.parametrize("severity", list(Severity))
def test_every_severity_has_one_of_theirs(severity: Severity) -> None:
    """Theirs are case-sensitive words."""
    event = event_of(notify(message=message(severity=severity)), Step.TRIGGER, KEY)

    assert event["payload"]["severity"] in {"critical", "error", "warning", "info"}


class _Hurried(Clock):
    """An hour of waiting passes in moments, and is counted."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time

    def real_s(self, seconds: float) -> float:
        self.time += timedelta(seconds=max(seconds, 0.0))
        return 0.001


async def test_nothing_is_lost_while_pagerduty_is_down_for_an_hour(tmp_path: Path) -> None:
    """Trigger and resolve of that hour arrive afterwards, in their order; the superseded edits do not."""
    clock = _Hurried()
    async with PagerDutyServer() as server:
        server.down_until = float("inf")
        store = SqliteStore(tmp_path)
        outbox = Outbox(store, {"ops": channel_to(server)}, clock)
        heard: list[Event] = []

        async def emit(events: list[Event]) -> None:
            heard.extend(events)

        outbox.start_with(emit)
        store.commit([], [notify(1), notify(1, key="k2")], now=NOON.timestamp())
        running = asyncio.create_task(outbox.run())
        while clock.time < NOON + timedelta(hours=1):  # noqa: ASYNC110  the clock has no event
            await asyncio.sleep(0.005)
        store.commit([], [notify(2, message=resolved())], now=clock.time.timestamp())
        outbox.nudge()
        server.down_until = 0.0
        while store.receivers():  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.005)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await outbox.close()
        store.close()

    assert {each.dedup_key: each.status for each in server.incidents}["k2-1"] == "triggered"
    assert all(each.notified == 1 for each in server.incidents)
    assert not [each for each in server.open() if each.dedup_key == "k1-1"]
