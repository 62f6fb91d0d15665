"""A start without memory: what channels still show is asked for first."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from sevenhop.channels.channel import PermanentDeliveryError, RetryableDeliveryError
from sevenhop.core.effects import Row
from sevenhop.core.events import Recalled
from sevenhop.core.incidents.incident import incident_key
from sevenhop.core.incidents.keeping import BEGAN
from sevenhop.core.subject import Subject
from sevenhop.runtime import embedded as embedded_module
from sevenhop.runtime.recall import Recall
from tests.builders import node
from tests.unit.runtime.harness import NOON, RecallingScript, Script, quick_clock, running, until

CAUSE = Subject.parse("node:n1")


def shown(episode: int = 7) -> Recalled:
    """What a channel shows of an incident about node n1."""
    return Recalled(
        at=NOON,
        receiver="slack",
        key=incident_key("test", CAUSE, "discovery"),
        episode=episode,
        is_open=True,
        reference="C1/17.1",
        revision=3,
        title="n1 is not ready",
        severity="critical",
        causes=("node-gone",),
        cause=str(CAUSE),
        family="discovery",
        opened_at=NOON - timedelta(hours=1),
    )


async def test_what_is_still_true_is_edited_and_not_posted(tmp_path: Path) -> None:
    """The state was lost; Slack shows the incident, and the node is still gone: no second page."""
    slack = RecallingScript([[shown()]])
    async with running(tmp_path, {"slack": slack}) as plant:
        plant.told.synced(node("n1", ready=False))
        await until(lambda: slack.messages != [])

    assert [(n.episode, n.anew, n.reference) for n in slack.messages] == [(7, False, "C1/17.1")]


async def test_what_is_no_longer_true_is_told_as_ended(tmp_path: Path) -> None:
    """Nobody is left with a message that says "firing" for ever."""
    slack = RecallingScript([[shown()]])
    async with running(tmp_path, {"slack": slack}, clock=quick_clock(2000)) as plant:
        plant.told.synced(node("n1"))
        await until(lambda: slack.messages != [])

    assert [(n.message.status, n.reference) for n in slack.messages] == [("resolved", "C1/17.1")]


async def test_what_cannot_be_seen_yet_is_not_told_as_ended(tmp_path: Path) -> None:
    """The state was lost and the API server does not answer for an hour: no end, and then no second page."""
    slack = RecallingScript([[shown()]])
    async with running(tmp_path, {"slack": slack}, clock=quick_clock(20_000)) as plant:
        await asyncio.sleep(0.2)  # 67 minutes, and the wait is ten
        told_blindly = list(slack.messages)
        plant.told.synced(node("n1", ready=False))
        await until(lambda: slack.messages != [])

    assert told_blindly == []
    assert [(n.message.status, n.anew) for n in slack.messages[:1]] == [("firing", False)]


async def test_a_channel_that_does_not_answer_is_asked_again_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Watching begins without it."""
    monkeypatch.setattr(embedded_module, "RECALL_WITHIN_S", 0.05)
    slack = RecallingScript([RetryableDeliveryError("no answer"), RetryableDeliveryError("no answer"), []])
    async with running(tmp_path, {"slack": slack, "console": (console := Script())}) as plant:
        plant.told.synced(node("n2", ready=False))
        await until(lambda: console.messages != [])
        await until(lambda: slack.asked == 3)


@pytest.mark.parametrize("is_old", [False, True], ids=["it began lately", "of an earlier version, without that row"])
async def test_with_memory_nobody_is_asked(tmp_path: Path, *, is_old: bool) -> None:
    """More than an hour after the empty start the store knows everything itself."""
    clock = quick_clock(50_000)
    async with running(tmp_path, {"slack": (first := RecallingScript([[]]))}, clock=clock) as plant:
        plant.told.synced(node("n1", ready=False))
        await until(lambda: first.messages != [] and plant.embedded.is_idle)
        if is_old:
            plant.store.commit([Row(BEGAN, "", None)], now=0)
    await asyncio.sleep(0.1)  # 83 minutes

    async with running(tmp_path, {"slack": (second := RecallingScript([]))}, clock=clock) as plant:
        plant.told.synced(node("n1", ready=False))
        await until(lambda: plant.embedded.is_idle)

    assert (first.asked, second.asked) == (1, 0)


async def test_a_crash_just_after_an_empty_start_does_not_end_the_doubt(tmp_path: Path) -> None:
    """A second start within the hour asks again: the first may have died before it was answered."""
    async with running(tmp_path, {"slack": RecallingScript([RetryableDeliveryError("x")] * 50)}) as plant:
        plant.told.synced(node("n2", ready=False))
        await until(lambda: plant.embedded.is_idle and len(list(plant.store.rows())) > 1)

    slack = RecallingScript([[shown()]])
    async with running(tmp_path, {"slack": slack}) as plant:
        plant.told.synced(node("n1", ready=False), node("n2", ready=False))
        await until(lambda: any(n.reference == "C1/17.1" for n in slack.messages))

    assert [n.anew for n in slack.messages if n.cause == str(CAUSE)] == [False]


async def test_who_may_not_read_the_history_is_asked_once(caplog: pytest.LogCaptureFixture) -> None:
    """A missing scope does not mend itself: it is said, and not asked again."""
    slack = RecallingScript([PermanentDeliveryError("missing_scope: add channels:history")])
    recall = Recall({"slack": slack, "console": Script()}, quick_clock())

    assert await recall.once() == []
    assert await recall.once() == []

    assert slack.asked == 1
    assert "add channels:history" in caplog.text
