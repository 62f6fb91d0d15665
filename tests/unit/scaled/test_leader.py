"""A Lease has one holder, its terms grow, and who cannot renew it stops before another begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from sevenhop.runtime.leader import DURATION_S, RENEW_WITHIN_S, TERM, Lease, LeaseLostError
from sevenhop.runtime.shared import Holding
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


@pytest.mark.parametrize(("since_s", "waits_s"), [(1.0, 3.0), (3.9, 1.0)], ids=["early", "just before the end"])
async def test_no_try_to_renew_goes_on_into_the_time_of_another(
    monkeypatch: pytest.MonkeyPatch, since_s: float, waits_s: float
) -> None:
    """A server that hangs at the last try, when nearly all of the time is spent, gets no four seconds more."""
    limits: list[float | None] = []
    timeout = asyncio.timeout

    def limited(seconds: float | None) -> asyncio.Timeout:
        limits.append(seconds)
        return timeout(seconds)

    monkeypatch.setattr(asyncio, "timeout", limited)
    leases, time = Leases(), Time()
    holder = time.lease(leases, "a")
    await holder.acquire()
    time.seconds += since_s
    holding = asyncio.create_task(holder.hold())
    await settle(holding, lambda: limits != [])
    holding.cancel()

    assert limits[:1] == [pytest.approx(waits_s)]
    assert since_s + waits_s <= DURATION_S - 1


@pytest.mark.parametrize("took_s", [0.0, 0.3, 0.9])
async def test_nor_does_the_pause_before_the_last_try(monkeypatch: pytest.MonkeyPatch, took_s: float) -> None:
    """Tries that fail, each after a while: whenever the last one begins, it ends a second before another may begin."""
    leases, time, ends = Leases(), Time(), [0.0]
    timeout = asyncio.timeout

    def limited(seconds: float) -> asyncio.Timeout:
        ends.append(time.seconds + seconds)
        time.seconds += took_s
        return timeout(None)

    async def sleep(seconds: float) -> None:
        time.seconds += seconds
        await asyncio.sleep(0)

    holder = time.lease(leases, "a")
    monkeypatch.setattr(holder, "_sleep", sleep)
    await holder.acquire()
    leases.is_down = True
    monkeypatch.setattr(asyncio, "timeout", limited)
    with pytest.raises(LeaseLostError):
        await holder.hold()
    assert len(ends) > 2
    assert max(ends) <= DURATION_S - 1


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


async def test_a_lease_is_kept_while_the_rest_is_still_being_started() -> None:
    """Reading the state, or asking a Slack that hangs what it shows, takes longer than a lease lasts."""
    leases, time = Leases(), Time()
    lease = time.lease(leases, "a")
    await lease.acquire()
    holding = Holding(lease)  # and no source runs yet
    other = asyncio.create_task(time.lease(leases, "b").acquire())
    for _ in range(20):
        time.seconds += 1
        await settle(other, turns=20)
    assert not other.done()

    await holding.close()
    await settle(other)
    assert other.done()


async def test_what_is_waited_for_is_given_up_with_the_lease() -> None:
    """Who lost it while Redis was away must not go on to take the place from the one that has it now."""
    leases, time = Leases(), Time()
    lease = time.lease(leases, "a")
    await lease.acquire()
    holding, claim = Holding(lease), asyncio.Event()
    waiting = asyncio.create_task(holding.meanwhile(claim.wait()))
    leases.is_down = True
    time.seconds += RENEW_WITHIN_S + 0.1
    await settle(waiting)

    with pytest.raises(LeaseLostError):
        await asyncio.wait_for(waiting, 30)
    with pytest.raises(LeaseLostError):
        await holding.run(_nobody)
    await holding.close()


async def _nobody(_events: object) -> None:
    raise AssertionError("it tells nothing")
