"""What the agent says of itself: once in its log, as numbers for Prometheus, and in its refusals to start."""

from __future__ import annotations

import logging

import aiohttp
import pytest

from sevenhop.agent import status
from sevenhop.agent.agent import Counts
from sevenhop.agent.saying import MAX_LINES, Said
from sevenhop.cli.main import main

COUNTS = Counts(
    readings=9, gpus=8, sent=7, rejected=0, waiting=1, dropped={"summary": 3, "change": 0, "xid": 0},
    malformed_lines=2, overwritten_lines=0, replaced_processes=1, abandoned_processes=0, problems=("a", "b"),
)  # fmt: skip


def test_a_problem_is_said_once_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    """However often it is seen."""
    caplog.set_level(logging.INFO)
    said = Said()
    for problems in (["a"], ["a"], ["a", "b"], ["b"], ["b"], ["a", "b"]):
        said.update(problems)
    assert caplog.messages == ["a", "b", "no longer: a", "a"]


def test_a_flood_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand different things are a few lines and a number."""
    said = Said()
    said.update(str(number) for number in range(1000))
    assert len(caplog.messages) == MAX_LINES
    assert said.unsaid == 1000 - MAX_LINES


async def test_numbers_for_prometheus() -> None:
    """Served beside a health check that answers whatever the GPUs do."""
    runner = await status.serve("127.0.0.1", 0, lambda: COUNTS)
    host, port = runner.addresses[0][:2]
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://{host}:{port}/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok\n")
        async with session.get(f"http://{host}:{port}/metrics") as answer:
            lines = (await answer.text()).splitlines()
    await runner.cleanup()
    assert 'sevenhop_agent_dropped_events_total{sort="summary"} 3' in lines
    assert "sevenhop_agent_malformed_lines_total 2" in lines
    assert "sevenhop_agent_problems 2" in lines


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which node this is"),
        (["--node", "n"], "--service"),
        (["--node", "n", "--service", "sevenhop:8443"], "--service"),
        (["--node", "n", "--service", "http://s", "--check", "0"], "more than 0"),
        (["--node", "n", "--service", "http://s", "--listen", "nowhere"], "--listen: expected host:port"),
    ],
)
def test_what_it_does_not_start_with(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line with what to write instead."""
    monkeypatch.delenv("NODE_NAME", raising=False)
    monkeypatch.delenv("SEVENHOP_SERVICE", raising=False)
    assert main(["gpu-agent", *words]) == 2
    assert said in capsys.readouterr().err
