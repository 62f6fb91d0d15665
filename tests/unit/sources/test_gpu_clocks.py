"""Nodes whose clocks are wrong: an XID is of now all the same, and the difference is said once."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sevenhop.core.events import Event, GpusSampled, XidSeen
from sevenhop.core.gpu_wire import VERSION, Batch, encode
from sevenhop.sources.gpu_push.receiver import GpuPush
from sevenhop.sources.gpu_push.senders import NODE
from sevenhop.sources.gpu_push.settings import GpuPushSettings
from sevenhop.sources.kubernetes.identity import UserInfo

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Request:
    """As much of aiohttp's as is read."""

    headers = {"Authorization": "Bearer good"}
    content_type = "application/msgpack"
    remote = "10.0.0.1"

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def read(self) -> bytes:
        return self._body


class Heard:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.push = GpuPush(GpuPushSettings(accounts=["a/b"]), self._review, self._take, lambda: NOW)

    async def _review(self, _token: str) -> UserInfo:
        return UserInfo(username="system:serviceaccount:a:b", extra={NODE: ["gpu-01"]})

    async def _take(self, events: list[Event]) -> None:
        self.events += events

    async def hear(self, off: timedelta, waited: timedelta = timedelta(0)) -> None:
        """An XID that the agent saw by its clock, and sent after it had waited."""
        at = NOW + off - waited
        sample = GpusSampled(at=at, epoch=1, seq=1, node="gpu-01", is_whole=True, readings=())
        xid = XidSeen(at=at, epoch=1, seq=2, node="gpu-01", xid=48, pci="0000:3b:00.0")
        batch = Batch(version=VERSION, node="gpu-01", sent_at=NOW + off, samples=(sample,), xids=(xid,))
        request: Any = Request(encode(batch))
        assert (await self.push.take(request)).status == 200

    def xid_at(self) -> datetime:
        (found,) = [event for event in self.events if isinstance(event, XidSeen)]
        return found.at


@pytest.mark.parametrize("waited", [timedelta(0), timedelta(minutes=20)], ids=["at once", "after an outage"])
async def test_an_xid_by_a_clock_that_is_behind_is_moved_to_ours(waited: timedelta) -> None:
    """By what the clock is off, not by how long it waited."""
    heard = Heard()
    await heard.hear(timedelta(minutes=-5), waited)
    assert heard.xid_at() == NOW - waited


@pytest.mark.parametrize("off", [timedelta(seconds=-3), timedelta(0), timedelta(minutes=5)], ids=str)
async def test_other_xids_keep_their_time(off: timedelta) -> None:
    """A little does not matter, and the core itself sees what lies in the future."""
    heard = Heard()
    await heard.hear(off)
    assert heard.xid_at() == NOW + off


@pytest.mark.parametrize(
    ("off", "words"),
    [(timedelta(minutes=5), "300 s ahead of ours"), (timedelta(minutes=-5), "300 s behind ours")],
    ids=["ahead", "behind"],
)
async def test_a_clock_that_is_off_is_said_once(caplog: pytest.LogCaptureFixture, off: timedelta, words: str) -> None:
    """In the log and for doctor, until it agrees again."""
    heard = Heard()
    with caplog.at_level(logging.INFO, "sevenhop.gpu_push"):
        for each in (off, off, timedelta(0)):
            await heard.hear(each)
            if each:
                assert heard.push.report()["clocks_off"] == 1
                assert heard.push.report()["problems"] == [f"the clock of gpu-01 is {words}: set it (NTP)"]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert f"the clock of gpu-01 is {words}" in said[0]
    assert said[1] == "the clock of gpu-01 agrees with ours again"
    assert heard.push.report()["problems"] == []
