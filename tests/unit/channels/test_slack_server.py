"""The local Slack refuses what Slack refuses; without that, tests against it prove nothing."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack_limits import mentions_in, refusal_of
from tests.fakes.slack_server import CHANNEL, TOKEN, SlackServer
from tests.shared import ROOT


def section(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}, **more}


def header(text: str, kind: str = "plain_text") -> dict[str, Any]:
    return {"type": "header", "text": {"type": kind, "text": text}}


@pytest.mark.parametrize(
    ("message", "word"),
    [
        pytest.param({}, "no_text", id="nothing"),
        pytest.param({"text": "x" * 40_001}, "msg_too_long", id="text"),
        pytest.param({"text": "x", "blocks": "[]"}, "invalid_blocks_format", id="no list"),
        pytest.param({"text": "x", "blocks": [section("x")] * 51}, "invalid_blocks", id="51 blocks"),
        pytest.param({"text": "x", "blocks": [section("x" * 3_001)]}, "invalid_blocks", id="section"),
        pytest.param({"text": "x", "blocks": [section("")]}, "invalid_blocks", id="empty section"),
        pytest.param({"text": "x", "blocks": [header("x" * 151)]}, "invalid_blocks", id="header"),
        pytest.param({"text": "x", "blocks": [header("x", "mrkdwn")]}, "invalid_blocks", id="mrkdwn header"),
        pytest.param({"text": "x", "blocks": [{"type": "alert"}]}, "invalid_blocks", id="for modals only"),
        pytest.param({"text": "x", "blocks": [section("x", block_id="a")] * 2}, "invalid_blocks", id="ids"),
        pytest.param({"text": "x", "blocks": [section("x" * 2_900)] * 5}, "msg_blocks_too_long", id="together"),
        pytest.param({"text": "x", "metadata": {"key": 1}}, "invalid_metadata_format", id="metadata"),
        pytest.param(
            {"text": "x", "metadata": {"event_type": "a", "event_payload": {"b": "x" * 8_000}}},
            "metadata_too_large",
            id="large metadata",
        ),
        pytest.param({"text": "x", "blocks": [header("x" * 150), section("x" * 3_000)]}, "", id="at the limits"),
    ],
)
def test_limits(message: dict[str, Any], word: str) -> None:
    """Each limit at its edge, with Slack's word."""
    assert refusal_of(message) == word


def test_mentions_are_seen() -> None:
    """In the text and in mrkdwn; not where they are escaped, in plain text, or a date."""
    blocks = [section("<!here> &lt;!channel&gt; <!date^1^{time}|x>"), header("<@U1>")]

    assert mentions_in({"text": "hi <@U2>", "blocks": blocks}) == ["<@U2>", "<!here>"]


async def test_metadata_only_if_asked_and_newest_first() -> None:
    """As conversations.history answers, page by page, threads left out."""
    async with SlackServer() as slack, aiohttp.ClientSession() as session:
        client = AsyncWebClient(TOKEN, base_url=slack.base_url, session=session)
        metadata = {"event_type": "a", "event_payload": {"n": 1}}
        first = await client.chat_postMessage(channel=CHANNEL, text="1", metadata=metadata)
        await client.chat_postMessage(channel=CHANNEL, text="reply", thread_ts=first["ts"])
        await client.chat_postMessage(channel=CHANNEL, text="2")

        page = await client.conversations_history(channel=CHANNEL, limit=1, include_all_metadata=True)
        cursor = page["response_metadata"]["next_cursor"]
        rest = await client.conversations_history(channel=CHANNEL, cursor=cursor, include_all_metadata=True)
        bare = await client.conversations_history(channel=CHANNEL)

    assert [m["text"] for m in page["messages"] + rest["messages"]] == ["2", "1"]
    assert rest["messages"][0]["metadata"] == metadata
    assert "metadata" not in bare["messages"][1]


@pytest.mark.parametrize(
    ("call", "word"),
    [
        pytest.param({"token": "xoxb-other"}, "invalid_auth", id="token"),
        pytest.param({"channel": "C0"}, "channel_not_found", id="channel"),
        pytest.param({"thread_ts": "1.2"}, "thread_not_found", id="thread"),
    ],
)
async def test_refusals_come_as_slack_sends_them(call: dict[str, str], word: str) -> None:
    """HTTP 200 and ``ok: false``."""
    async with SlackServer() as slack, aiohttp.ClientSession() as session:
        token = call.get("token", TOKEN)
        client = AsyncWebClient(token, base_url=slack.base_url, session=session, retry_handlers=[])
        given: dict[str, Any] = {"channel": CHANNEL, "text": "x", **{k: v for k, v in call.items() if k != "token"}}
        with pytest.raises(SlackApiError) as caught:
            await client.chat_postMessage(**given)

    assert (caught.value.response["error"], caught.value.response.status_code) == (word, 200)


async def test_it_runs_on_its_own(tmp_path: Path) -> None:
    """For tests that kill processes: the address on its first line, a log, and its state over HTTP."""
    log = tmp_path / "slack.jsonl"
    command = [sys.executable, "-m", "tests.fakes.slack_server", "--port", "0", "--log", str(log)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        base_url = (await asyncio.wait_for(process.stdout.readline(), 20)).decode().strip()
        root = base_url.removesuffix("/api/")
        async with aiohttp.ClientSession() as session:
            faults = [{"method": "chat.postMessage", "kind": "ratelimited"}]
            await (await session.post(f"{root}/_fake/faults", json=faults)).read()
            client = AsyncWebClient(TOKEN, base_url=base_url, session=session, retry_handlers=[])
            with pytest.raises(SlackApiError):
                await client.chat_postMessage(channel=CHANNEL, text="limited")
            await client.chat_postMessage(channel=CHANNEL, text="taken")
            messages = await (await session.get(f"{root}/_fake/messages")).json()
    finally:
        process.send_signal(signal.SIGTERM)
        code = await process.wait()

    assert [message["text"] for message in messages] == ["taken"]
    entries = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [(entry["method"], entry["fault"]) for entry in entries] == [
        ("chat.postMessage", "ratelimited"),
        ("chat.postMessage", ""),
    ]
    assert code == 0
