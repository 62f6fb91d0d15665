"""Questions to whichever worker has a cluster: answered by the one that has it now, or a clear line in time."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Self

import msgspec
import pytest

from sevenhop.runtime.answers import Said
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.scaled import questions
from sevenhop.runtime.scaled.questions import CLOCKS_DIFFER, Answering, Asking, Question


class Lists:
    """As much of Redis as asking and answering use."""

    def __init__(self) -> None:
        self.lists: dict[str, list[bytes]] = defaultdict(list)

    def pipeline(self, *, transaction: bool) -> Self:
        assert transaction
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is held."""

    def rpush(self, key: str, value: bytes) -> None:
        self.lists[key].append(value)

    def expire(self, key: str, seconds: int) -> None:
        assert seconds > 0

    async def execute(self) -> None:
        """Done at once."""

    async def delete(self, key: str) -> None:
        self.lists.pop(key, None)

    async def blmove(self, key: str, _to: str, seconds: float, *_sides: str) -> bytes | None:
        for _ in range(int(seconds / 0.005) + 1):
            if self.lists[key]:
                return self.lists[key][0]
            await asyncio.sleep(0.005)
        return None

    async def blpop(self, keys: Sequence[str], seconds: float) -> tuple[str, bytes] | None:
        for _ in range(int(seconds / 0.005) + 1):
            for key in keys:
                if self.lists[key]:
                    return key, self.lists[key].pop(0)
            await asyncio.sleep(0.005)
        return None


class Owner:
    """A worker that has partition 0; `losses` questions come just when it has lost the cluster."""

    def __init__(
        self, redis: Lists, losses: int = 0, fails: bool = False, clock: Callable[[], datetime] | None = None
    ) -> None:
        self.asked: list[Question] = []
        self._losses, self._fails = losses, fails
        self._answering = Answering(redis, lambda: [0], self.answer, clock or Clock())  # type: ignore[arg-type]

    def answer(self, question: Question) -> Said | None:
        self.asked.append(question)
        if self._fails:
            raise ZeroDivisionError("a fault of ours")
        return Said({"about": question.cluster}) if len(self.asked) > self._losses else None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._answering.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "ASK_AGAIN_S", 0.1)
    monkeypatch.setattr(questions, "_LISTEN_S", 0.05)


def asking(redis: Lists) -> Asking:
    return Asking(redis, 1, Clock())  # type: ignore[arg-type]


async def ask(redis: Lists, patience_s: float = 60.0) -> Said:
    return await asking(redis).ask("prod", "get", {"view": "plans"}, patience_s)


async def test_the_owner_answers() -> None:
    """It is asked once, with what was asked about."""
    redis = Lists()
    async with Owner(redis) as owner:
        assert await ask(redis) == Said({"about": "prod"})
    [question] = owner.asked
    assert (question.cluster, question.what, question.query) == ("prod", "get", {"view": "plans"})


async def test_who_lost_the_cluster_at_that_moment_is_asked_again() -> None:
    """Or whoever has it then: a question that went lost with its worker is asked anew, within the same wait."""
    redis = Lists()
    async with Owner(redis, losses=1) as owner:
        assert (await ask(redis)).status == 200
    assert len(owner.asked) == 2


async def test_nobody_answers() -> None:
    """A clear line in time, and no question is answered once nobody waits for it."""
    redis = Lists()
    said = await ask(redis, 0.3)
    assert said.status == 503
    assert said.data["error"].startswith("no worker answers for prod now")
    async with Owner(redis, clock=lambda: Clock()() + CLOCKS_DIFFER) as owner:
        await asyncio.sleep(0.2)
    assert owner.asked == []


async def test_an_owner_whose_clock_is_ahead_answers() -> None:
    """By more than anybody waits: nothing would ever be answered, and takeovers would be blamed."""
    redis, patience_s = Lists(), 20.0
    async with Owner(redis, clock=lambda: Clock()() + timedelta(seconds=patience_s + 5)):
        assert (await ask(redis, patience_s)).status == 200


async def test_a_listing_that_fails() -> None:
    """The asker is told, and the worker goes on answering."""
    redis = Lists()
    async with Owner(redis, fails=True):
        said = [await ask(redis), await ask(redis)]
    assert [each.status for each in said] == [500, 500]
    assert "ZeroDivisionError" in said[0].data["error"]


async def test_what_cannot_be_read_is_left_out() -> None:
    """Text of somebody else, or of a newer worker."""
    redis = Lists()
    redis.lists["{sevenhop:p0}:questions"] += [b"nonsense", b"{}"]
    newer: dict[str, Any] = {"id": "n", "cluster": "prod", "what": "x", "until": Clock()() + timedelta(minutes=1)}
    redis.lists["{sevenhop:p0}:questions"].append(msgspec.json.encode(Question(v=99, **newer)))
    async with Owner(redis) as owner:
        assert (await ask(redis)).status == 200
    assert len(owner.asked) == 1
    assert b"upgrade" in redis.lists["sevenhop:answer:n"][0]
