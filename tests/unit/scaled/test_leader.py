"""A Lease has one holder, its terms grow, and who cannot renew it stops before another begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from sevenhop.runtime.leader import DURATION_S, RENEW_WITHIN_S, TERM, Lease, LeaseLostError
from sevenhop.sources.kubernetes.api import ApiError

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Leases:
    """The part of an API server that keeps one Lease: conflicts by resourceVersion, 404 before it is made."""

    base_url = "http://api"

    def __init__(self) -> None:
        self.stored: dict[str, Any] | None = None
        self.version = 0
        self.is_down = False

    async def read(
        self, path: str, params: object = None, *, method: str = "GET", body: bytes = b"", **_: object
    ) -> bytes:
        await asyncio.sleep(0)
        if self.is_down:
            raise ApiError(503, "ServiceUnavailable")
        if method == "GET":
            if self.stored is None:
                raise ApiError(404, "NotFound")
            return msgspec.json.encode(self.stored)
        sent = msgspec.json.decode(body)
        if method == "POST" and self.stored is not None:
            raise ApiError(409, "AlreadyExists")
        if method == "PUT" and sent["metadata"].get("resourceVersion") != str(self.version):
            raise ApiError(409, "Conflict")
        self.version += 1
        sent["metadata"]["resourceVersion"] = str(self.version)
        self.stored = sent
        return msgspec.json.encode(sent)


class Time:
    """One time line for all replicas; clocks may differ from it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def lease(self, leases: Leases, who: str, *, skew: timedelta = timedelta(0)) -> Lease:
        async def sleep(_seconds: float) -> None:
            await asyncio.sleep(0)

        return Lease(
            leases,  # type: ignore[arg-type]
            "sevenhop/edge",
            who,
            now=lambda: NOON + timedelta(seconds=self.seconds) + skew,
            monotonic=lambda: self.seconds,
            sleep=sleep,
        )


async def settle(task: asyncio.Task[Any], until: Callable[[], bool] = bool, turns: int = 60) -> None:
    for _ in range(turns):
        if task.done() or until():
            return
        await asyncio.sleep(0)


async def test_one_of_two_gets_it() -> None:
    """Whoever asks at the same moment, one holds it and the other waits."""
    leases, time = Leases(), Time()
    tasks = [asyncio.create_task(time.lease(leases, who).acquire()) for who in "ab"]
    for task in tasks:
        await settle(task)

    assert sum(task.done() for task in tasks) == 1
    for task in tasks:
        task.cancel()


@pytest.mark.parametrize("skew", [timedelta(0), timedelta(minutes=10), -timedelta(minutes=10)], ids=str)
async def test_another_takes_over_when_it_has_run_out(skew: timedelta) -> None:
    """After its duration without a change, by the taker's own clock, whatever the clocks say; in a later term."""
    leases, time = Leases(), Time()
    first = await time.lease(leases, "a").acquire()
    other = asyncio.create_task(time.lease(leases, "b", skew=skew).acquire())
    await settle(other)
    time.seconds += DURATION_S - 0.1
    await settle(other)
    assert not other.done()

    time.seconds += 0.2
    await settle(other)

    assert other.done()
    assert other.result() > first


async def test_who_renews_keeps_it() -> None:
    """Each renewal begins the other's wait anew, and the term stays."""
    leases, time = Leases(), Time()
    holder = time.lease(leases, "a")
    term = await holder.acquire()
    holding = asyncio.create_task(holder.hold())
    other = asyncio.create_task(time.lease(leases, "b").acquire())
    for _ in range(20):
        time.seconds += 1
        await settle(other, turns=20)

    assert not other.done()
    assert not holding.done()
    assert leases.stored is not None
    assert leases.stored["metadata"]["annotations"][TERM] == str(term)
    for task in (holding, other):
        task.cancel()


async def test_who_cannot_renew_stops_before_another_begins() -> None:
    """Cut off from the API server, the holder ends by itself, sooner than the lease runs out."""
    leases, time = Leases(), Time()
    holder = time.lease(leases, "a")
    await holder.acquire()
    holding = asyncio.create_task(holder.hold())
    leases.is_down = True
    time.seconds += RENEW_WITHIN_S + 0.1
    assert time.seconds < DURATION_S
    await settle(holding)

    with pytest.raises(LeaseLostError, match="could not be renewed"):
        holding.result()


async def test_who_was_stopped_learns_that_it_is_over() -> None:
    """A holder that comes back after another took over ends."""
    leases, time = Leases(), Time()
    holder = time.lease(leases, "a")
    await holder.acquire()
    waiting = time.lease(leases, "b")
    other = asyncio.create_task(waiting.acquire())
    await settle(other)
    time.seconds += DURATION_S + 0.1
    await settle(other)
    assert other.done()

    with pytest.raises(LeaseLostError):
        await holder.hold()


async def test_a_released_lease_is_free_at_once() -> None:
    """A graceful stop does not cost the others six seconds."""
    leases, time = Leases(), Time()
    holder = time.lease(leases, "a")
    first = await holder.acquire()
    await holder.release()

    assert await time.lease(leases, "b").acquire() > first


async def test_a_deleted_lease_does_not_turn_terms_back() -> None:
    """What an edge says after somebody deleted the Lease still comes after all that was said before."""
    leases, time = Leases(), Time()
    first = await time.lease(leases, "a").acquire()
    leases.stored = None
    time.seconds += 10

    assert await time.lease(leases, "b").acquire() > first


async def test_a_clock_that_is_behind_does_not_turn_terms_back() -> None:
    """The next term is higher than the one in the Lease, whatever the taker's clock says."""
    leases, time = Leases(), Time()
    holder = time.lease(leases, "a")
    first = await holder.acquire()
    await holder.release()

    assert await time.lease(leases, "b", skew=-timedelta(hours=1)).acquire() > first
