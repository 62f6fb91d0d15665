"""Killed before and after every write and every call: each transition stands in the channel once."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sevenhop.channels.slack.api import SlackApi
from sevenhop.channels.slack.channel import SlackChannel
from sevenhop.channels.slack.settings import SlackSettings
from sevenhop.core.effects import Row
from sevenhop.core.incidents.keeping import BEGAN
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.incidents.state import ADOPT_WITHIN
from sevenhop.stores.sqlite import SqliteStore
from tests.builders import node
from tests.fakes.slack_server import CHANNEL, TOKEN, Posted, SlackServer
from tests.unit.runtime import harness
from tests.unit.runtime.harness import NOON, Plant, quick_clock, until

SETTINGS = DeskSettings(recall_wait=timedelta(seconds=5))
MOST_LIVES = 30


class State(StrEnum):
    """A young one asks the channel before every first message; an old one relies on itself; a lost one has nothing."""

    OLD = "old state"
    YOUNG = "young state"
    LOST = "state lost"


class Killed(BaseException):
    """Not an `Exception`, so that nothing handles it: the process is gone."""


class Fate:
    """Kills the process at its `kill_at`-th point; what is dead does nothing any more."""

    def __init__(self) -> None:
        self.kill_at = 0
        self.passed: list[str] = []
        self.is_dead = False

    def live(self, kill_at: int) -> None:
        self.kill_at, self.passed, self.is_dead = kill_at, [], False

    def point(self, where: str) -> None:
        if not self.is_dead:
            self.passed.append(where)
            self.is_dead = len(self.passed) == self.kill_at
        if self.is_dead:
            raise Killed(where)


@pytest.fixture
def fate(monkeypatch: pytest.MonkeyPatch) -> Fate:
    """Over every write of the store and every call to Slack."""
    made = Fate()

    def around(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def write(*args: Any, **more: Any) -> Any:
            made.point(f"before {name}")
            answer = real(*args, **more)
            made.point(f"after {name}")
            return answer

        return write

    class MortalStore(SqliteStore):
        pass

    for name in ("commit", "begin_sending", "postpone", "finish"):
        setattr(MortalStore, name, around(name, getattr(SqliteStore, name)))
    call = SlackApi.call

    async def mortal_call(self: SlackApi, method: str, **arguments: Any) -> dict[str, Any]:
        made.point(f"before {method}")
        answer = await call(self, method, **arguments)
        made.point(f"after {method}")
        return answer

    monkeypatch.setattr(harness, "SqliteStore", MortalStore)
    monkeypatch.setattr(SlackApi, "call", mortal_call)
    return made


class World:
    """A node that breaks and is mended once people know, a Slack, and one process after another."""

    def __init__(self, folder: Path, name: str, slack: SlackServer, fate: Fate, state: State) -> None:
        self.folder = folder / name
        self.node = name
        self.slack = slack
        self.fate = fate
        self.loses_state = state is State.LOST
        self.is_ready = False
        self.clock = quick_clock()
        if state is State.OLD:
            store = SqliteStore(self.folder)
            began = msgspec.json.encode(NOON - 2 * ADOPT_WITHIN)
            store.commit([Row(BEGAN, "", began)], now=0)
            store.close()

    async def play(self, kills: Iterable[int]) -> list[str]:
        """One life per kill until the story is over; gives the points that the last life passed."""
        for kill_at in kills:
            self.fate.live(kill_at)
            if await self._live():
                return self.fate.passed
            if self.loses_state:
                shutil.rmtree(self.folder)
        raise AssertionError("it never ended")

    async def _live(self) -> bool:
        """Whether it got to the end of the story."""
        channel = _channel(self.slack)
        try:
            plant = Plant(self.folder, {"slack": channel}, [harness.node_rule()], self.clock, SETTINGS)
        except Killed:
            return False
        task = asyncio.create_task(plant.embedded.run([plant.told]))
        try:
            plant.told.synced(node(self.node, ready=self.is_ready))
            await until(lambda: task.done() or (self._shows("firing", "resolved") and plant.embedded.is_idle))
            if not self.is_ready and not task.done():
                self.is_ready = True
                plant.told.node(self.node, ready=True)
            await until(lambda: task.done() or (self._shows("resolved") and plant.embedded.is_idle))
        finally:
            task.cancel()
            await asyncio.wait([task])
            died_of = None if task.cancelled() else task.exception()
            await channel.close()
            plant.store.close()
        if died_of is not None and not self.fate.is_dead:
            raise died_of
        return not self.fate.is_dead

    def _shows(self, *statuses: str) -> bool:
        return any(post.payload["status"] in statuses for post in self._posts())

    def _posts(self) -> list[Posted]:
        return [parent for parent in self.slack.parents if parent.payload["cause"] == f"node:{self.node}"]

    def faults(self) -> list[str]:
        """What people would complain about."""
        told = [
            [*(edit["metadata"]["event_payload"]["status"] for edit in post.edits), post.payload["status"]]
            for post in self._posts()
        ]
        found = [] if len(told) == 1 else [f"{len(told)} posts: {told}"]
        found += [f"in a wrong order: {each}" for each in told if each != sorted(each)]
        replies = [len(self.slack.thread_of(post)) for post in self._posts()]
        # Killed between the last edit and its details, a process without memory sees nothing left to tell.
        right = (0, 1) if self.loses_state else (1,)
        return found + [f"{count} replies" for count in replies if count not in right]


def _channel(slack: SlackServer) -> SlackChannel:
    settings = {"type": "slack", "token": TOKEN, "channel": CHANNEL, "base_url": slack.base_url}
    return SlackChannel(SlackSettings.model_validate({**settings, "timeout": timedelta(seconds=5)}))


def once(kill_at: int) -> Iterator[int]:
    """One kill, and then lives without."""
    yield kill_at
    yield from [0] * MOST_LIVES


@pytest.mark.parametrize("state", [State.OLD, State.LOST])
async def test_one_kill_at_any_point(tmp_path: Path, fate: Fate, state: State) -> None:
    """Every write and every call of the story, before and after it, is a point where the process dies once."""
    found: dict[str, list[str]] = {}
    points, kill_at = 1, 0
    async with SlackServer() as slack:
        while kill_at < points:
            kill_at += 1
            world = World(tmp_path, f"n{kill_at}", slack, fate, state)
            await world.play(once(kill_at))
            points = max(points, len(fate.passed))
            if faults := world.faults():
                found[f"{kill_at}"] = faults

    assert found == {}
    assert points > 15


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("seed", range(4))
async def test_kills_in_a_row(tmp_path: Path, fate: Fate, seed: int, state: State) -> None:
    """A process that dies again while it recovers from a death."""
    dice = random.Random(seed)
    async with SlackServer() as slack:
        world = World(tmp_path, "n1", slack, fate, state)
        await world.play([*(dice.randint(1, 24) for _ in range(12)), *([0] * MOST_LIVES)])

        assert world.faults() == []
