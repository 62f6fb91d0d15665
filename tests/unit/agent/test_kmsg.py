"""XIDs from the kernel log, as the device gives them out."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from sevenhop.agent.kmsg import Kmsg, KmsgXid

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
UUID = "GPU-12345678-1234-1234-1234-123456789abc"


def record(seconds: float, message: str) -> str:
    return f"4,6339,{int(seconds * 1e6)},-;{message}"


def reader() -> tuple[Kmsg, list[KmsgXid]]:
    found: list[KmsgXid] = []
    return Kmsg(found.append, Path("/nowhere"), monotonic=lambda: 1000.0), found


def test_an_xid_keeps_its_time() -> None:
    """Also where the agent starts after it."""
    kmsg, found = reader()
    kmsg.take(record(970.0, XID))
    assert [(each.line.xid, each.line.pci, each.ago_s) for each in found] == [(79, "0000:3b:00.0", 30.0)]


def test_what_was_long_ago_is_not_told_again() -> None:
    """The log goes back to the node's start; every start of the agent would repeat all of it."""
    kmsg, found = reader()
    kmsg.take(record(1.0, XID))
    kmsg.take(record(1.0, "NVRM: Xid (broken"))
    assert found == []
    assert kmsg.malformed == 0


def test_the_driver_says_who_sits_where() -> None:
    """Once, before the first XID of each GPU; NVML may be dead when it is needed."""
    kmsg, found = reader()
    kmsg.take(record(990.0, f"NVRM: GPU at PCI:0000:3b:00: {UUID}"))
    kmsg.take(record(991.0, XID))
    assert [each.uuid for each in found] == [UUID]


@pytest.mark.parametrize(
    "line", [record(999.0, "NVRM: Xid (PCI:0000:3b:00): what"), "NVRM: Xid (nothing", "4,a,b;NVRM: Xid"]
)
def test_malformed_lines_are_counted(line: str) -> None:
    """They may be an XID of a form that we do not know."""
    kmsg, found = reader()
    kmsg.take(line)
    assert (kmsg.malformed, found) == (1, [])


def test_continuations_and_other_lines_are_passed_over() -> None:
    """Lines that begin with a space say more of the record before."""
    kmsg, found = reader()
    for line in (f" SUBSYSTEM={XID}", "", "6,1,999000000,-;eth0: link up", " DEVICE=+pci:0000:3b:00.0"):
        kmsg.take(line)
    assert (kmsg.malformed, found) == (0, [])


async def test_what_is_appended_is_read(tmp_path: Path) -> None:
    """From the beginning, and as it comes."""
    file = tmp_path / "kmsg"
    file.write_text(record(999.0, XID) + "\n")
    found: asyncio.Queue[KmsgXid] = asyncio.Queue()
    kmsg = Kmsg(found.put_nowait, file, monotonic=lambda: 1000.0, poll_s=0.01)
    task = asyncio.create_task(kmsg.run())
    try:
        async with asyncio.timeout(10):
            first = await found.get()
            with file.open("a") as more:
                more.write(record(1000.0, XID.replace("79", "48")) + "\n")
            second = await found.get()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert [first.line.xid, second.line.xid] == [79, 48]


async def test_a_log_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    """And nothing ends."""
    kmsg = Kmsg(lambda _: None, tmp_path / "absent")
    task = asyncio.create_task(kmsg.run())
    await asyncio.sleep(0.05)
    assert not task.done()
    assert "No such file" in kmsg.problem
    task.cancel()
