"""`sevenhop demo --kill`: what counts as lost and as done twice, and that it really kills."""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from sevenhop.cli.main import main
from sevenhop.demo.kill.clock import SharedClock
from sevenhop.demo.kill.counting import Seen, doubled_of, lost_of
from sevenhop.demo.kill.play import play
from sevenhop.demo.kill.slack import LocalSlack
from sevenhop.demo.page import Page

WELL = Seen(
    kills=Counter({"at a random moment": 3}),
    rounds=2,
    approved=frozenset({"a", "b"}),
    ends={"a": "restored", "b": "undone", "c": "expired"},
    numbers=(4, 3, 4, 3, 4),
    messages=3,
    audit=40,
)


def test_a_clean_run_has_lost_nothing() -> None:
    """A plan that was undone may have cut, or not; one that nobody approved has not."""
    assert lost_of(WELL) == doubled_of(WELL) == []
    assert lost_of(replace(WELL, numbers=(4, 3, 4))) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"approved": frozenset({"z"})}, "plan z was approved and has no end", id="a yes without an end"),
        pytest.param({"ends": {**WELL.ends, "b": "unknown"}}, "plan b ended as unknown", id="nobody knows"),
        pytest.param({"numbers": (4, 3)}, "left with 3 of 4", id="not given back"),
        pytest.param({"numbers": (4,)}, "cut only 0 times", id="given back what was never taken"),
        pytest.param({"open_messages": (("k-1", "firing"),)}, "about k-1 was left firing", id="never green"),
        pytest.param({"audit_problems": ("record 3 is missing",)}, "record 3 is missing", id="audit"),
        pytest.param({"messages": 0}, "nobody was told", id="no message at all"),
    ],
)
def test_what_is_lost(change: dict[str, Any], words: str) -> None:
    """Each promise that was not kept is named."""
    assert any(words in line for line in lost_of(replace(WELL, **change)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"numbers": (4, 3, 4, 3, 4, 3, 4)}, "cut 3 times by 2 plans", id="once too often"),
        pytest.param({"numbers": (4, 3, 2, 4)}, "more than one replica", id="too far"),
        pytest.param({"posted_twice": 1}, "1 messages were posted twice", id="a message"),
    ],
)
def test_what_is_done_twice(change: dict[str, Any], words: str) -> None:
    """Patches and messages beyond the first are named."""
    assert any(words in line for line in doubled_of(replace(WELL, **change)))


async def test_the_local_slack_notices_a_second_post() -> None:
    """Two posts of one transition are one too many; an edit is none, and the newest body counts."""

    def body(status: str, effect: str) -> dict[str, Any]:
        said = {"key": "k", "episode": 1, "status": status, "effect": effect, "at": "t"}
        return {"text": "x", "metadata": {"event_type": "sevenhop_incident", "event_payload": said}}

    slack = LocalSlack()
    async with slack.serve() as url, aiohttp.ClientSession() as session:

        async def call(method: str, data: dict[str, Any]) -> Any:
            async with session.post(url + method, json=data) as response:
                return await response.json()

        first = await call("chat.postMessage", body("firing", "e1"))
        assert (slack.posted_twice, slack.open_ones()) == (0, [("k-1", "firing")])
        await call("chat.update", {**body("resolved", "e2"), "ts": first["ts"]})
        assert (slack.posted_twice, slack.open_ones()) == (0, [])
        await call("chat.postMessage", body("firing", "e1"))
        assert slack.posted_twice == 1
        async with session.get(url + "conversations.history") as response:
            assert len((await response.json())["messages"]) == 2


def test_two_processes_agree_on_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process goes on where the killed one was, at the same speed."""
    begins = datetime(2026, 11, 30, 3, tzinfo=UTC)
    monkeypatch.setattr("sevenhop.demo.kill.clock.time.time", lambda: 1_002.0)
    assert {SharedClock(begins, 1_000.0, 60.0)() for _ in range(2)} == {begins.replace(minute=2)}
    assert SharedClock(begins, 1_000.0, 60.0).real_s(120.0) == 2.0


@pytest.mark.parametrize("number", ["0", "-1", "1001"])
def test_a_number_of_kills_that_leads_nowhere_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with what is possible, exit code 2."""
    assert main(["demo", f"--kill={number}"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "--kill" in err


@pytest.mark.timeout(150)
def test_it_survives_two_kills() -> None:
    """A process of its own, killed for real; at the end everything is given back and green."""
    stream = io.StringIO()
    assert asyncio.run(play(Page(stream), 2, speed=60.0))
    assert "2 × kill -9: lost 0, done twice 0" in stream.getvalue()
    assert "chain ok" in stream.getvalue()
