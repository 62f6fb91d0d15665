"""Whoever stops everything: all clusters are asked, also those told of late; or it is said that some are not."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from sevenhop.core.effects import Reply
from sevenhop.core.events import BreakerReset, SwitchSet
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.scaled import directory, fleet_front
from sevenhop.runtime.scaled.decisions import NoAnswerError, Request
from sevenhop.runtime.scaled.directory import Directory, UnseenError, WhichError
from sevenhop.runtime.scaled.fleet_front import FleetFront

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
ANN = Person(id="unix:ann", name="ann")
STOP = SwitchSet(at=NOON, request_id="r", person=ANN, is_on=True)
RESET = BreakerReset(at=NOON, request_id="r", person=ANN)

Look = tuple[list[str] | UnseenError, list[int]] | UnseenError
"""What is seen at one look: clusters that are known, and partitions that nobody has told of."""


class Seen(Directory):
    """A directory with one look after the other; the last one stays."""

    def __init__(self, *looks: Look) -> None:
        self.looks = list(looks)

    async def untold(self) -> list[int]:
        look = self.looks[0]
        if isinstance(look, UnseenError):
            if len(self.looks) > 1:
                self.looks.pop(0)
            raise look
        return look[1]

    async def clusters(self) -> list[str]:
        look = self.looks[0]
        assert not isinstance(look, UnseenError)
        if len(self.looks) > 1:
            self.looks.pop(0)
        if isinstance(look[0], UnseenError):
            raise look[0]
        return look[0]


class Owners:
    """The workers that have the clusters; those of `deaf` never answer."""

    def __init__(self, *deaf: str) -> None:
        self.asked: list[str] = []
        self.deaf = deaf

    async def ask(self, cluster: str, event: Request) -> Reply:
        self.asked.append(cluster)
        await asyncio.sleep(0)
        if cluster in self.deaf:
            raise NoAnswerError("no worker has answered yet")
        return Reply(request_id=event.request_id, accepted=True, text="the kill switch is on")


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """All scripted looks come well within the time that workers have to tell, on a loaded machine too."""
    monkeypatch.setattr(fleet_front, "ALL_TOLD_WITHIN_S", 60.0)
    monkeypatch.setattr(fleet_front, "LOOK_S", 0.01)


@pytest.fixture
def little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """For those who never tell."""
    monkeypatch.setattr(fleet_front, "ALL_TOLD_WITHIN_S", 0.1)


async def ask(owners: Owners, *looks: Look, event: Request = STOP, cluster: str = "") -> Reply:
    front = FleetFront(Seen(*looks), owners)  # type: ignore[arg-type]
    return await front.ask(event, cluster)


async def test_all_that_are_known_are_asked_at_once() -> None:
    """Each once, and the answer names them."""
    owners = Owners()
    reply = await ask(owners, (["a", "b"], []))
    assert (reply.accepted, reply.text) == (True, "the kill switch is on (in a, b)")
    assert owners.asked == ["a", "b"]


async def test_clusters_that_are_told_of_late_are_stopped_too() -> None:
    """Redis has just begun anew: what this worker knows is stopped at once, the others as their workers tell."""
    owners = Owners()
    reply = await ask(owners, (["a"], [0, 1, 2]), (["a", "c"], [1]), (["a", "b", "c"], []))
    assert (reply.accepted, reply.text) == (True, "the kill switch is on (in a, c, b)")
    assert owners.asked == ["a", "c", "b"]


@pytest.mark.usefixtures("little_time")
async def test_a_partition_that_nobody_tells_of_is_no_yes() -> None:
    """Its clusters may run on: "stopped" is not said of them."""
    reply = await ask(Owners(), (["a"], [3, 5]))
    assert not reply.accepted
    assert reply.text == (
        "the kill switch is on (in a); not in others; Redis began anew, and no worker has told since which clusters "
        "are in partitions 3, 5: say it again in a minute"
    )


@pytest.mark.usefixtures("little_time")
async def test_nothing_is_known_yet() -> None:
    """Neither that there is no cluster, nor that any was stopped."""
    reply = await ask(Owners(), ([], [0]))
    assert not reply.accepted
    assert reply.text.startswith("no cluster is known yet, and nothing was done; not in others; Redis began anew")


AWAY = UnseenError("Redis does not answer")


@pytest.mark.parametrize("look", [AWAY, (AWAY, [])], ids=["at once", "after the first answer"])
async def test_redis_goes_away_in_between(look: Look) -> None:
    """What was asked is waited for, and the rest is looked for again."""
    owners = Owners()
    reply = await ask(owners, (["a"], [1]), look, (["a", "b"], []))
    assert (reply.accepted, owners.asked) == (True, ["a", "b"])


async def test_redis_is_just_starting() -> None:
    """A stop is wanted most when things are being restarted."""
    owners = Owners()
    reply = await ask(owners, AWAY, AWAY, (AWAY, []), (["a", "b"], []))
    assert (reply.accepted, owners.asked) == (True, ["a", "b"])


async def test_redis_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which clusters there are cannot be known; nothing was done."""
    monkeypatch.setattr(fleet_front, "REDIS_BACK_WITHIN_S", 0.1)
    owners = Owners()
    reply = await ask(owners, UnseenError("Redis does not answer: X; ask again"))
    assert (reply.accepted, reply.text) == (False, "Redis does not answer: X; ask again; nothing was done")
    assert owners.asked == []


async def test_one_that_does_not_answer_is_named() -> None:
    """The others are stopped, and it is no yes."""
    reply = await ask(Owners("b"), (["a", "b"], []))
    assert not reply.accepted
    assert reply.text == "a: the kill switch is on\nb: no worker has answered yet"


async def test_a_single_cluster_answers_for_itself() -> None:
    """As one process would."""
    assert (await ask(Owners(), (["a"], []))).text == "the kill switch is on"
    with pytest.raises(NoAnswerError):
        await ask(Owners("a"), (["a"], []))


async def test_the_only_one_that_is_known_may_not_be_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is about one cluster is not done in whichever was told of first."""
    monkeypatch.setattr(directory, "TOLD_WITHIN_S", 0.1)
    owners = Owners()
    reply = await ask(owners, (["a"], [1]), event=RESET)
    assert not reply.accepted
    assert "say which cluster, with --cluster: a; Redis began anew" in reply.text
    assert (await ask(owners, (["a"], [1]), event=RESET, cluster="a")).accepted
    assert (await ask(owners, (["a"], []), event=RESET)).accepted


async def test_once_all_have_told_the_only_one_is_meant() -> None:
    """A worker that has just begun tells within seconds; nobody is sent away for that."""
    assert await Seen((["a"], [1]), (["a"], [])).pick("") == "a"
    assert await Seen((["a"], [1]), (["a", "b"], [])).pick("b") == "b"
    assert await Seen(([], [0, 1]), (["a"], [1]), (["a"], [])).pick("") == "a"


async def test_a_name_that_is_not_known_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not called unknown for good."""
    monkeypatch.setattr(directory, "TOLD_WITHIN_S", 0.1)
    with pytest.raises(WhichError, match=r"no cluster is called 'b' here; there are a; Redis began anew"):
        await Seen((["a"], [1])).pick("b")


def test_served_are_those_that_are_rebuilt() -> None:
    """Before that a worker does not know all clusters of a partition."""
    made: dict[int, Any] = {0: SimpleNamespace(is_ready=True), 1: SimpleNamespace(is_ready=False)}
    found = Directory(SimpleNamespace(partitions=made), None, 2, lambda: NOON, str)  # type: ignore[arg-type]
    assert found._served() == [0]
