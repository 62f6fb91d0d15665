"""
XIDs from the kernel log, ``/dev/kmsg``: one record a read, ``priority,sequence,microseconds,flags;message``.

https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg.  The stamp is of the monotonic clock, so an XID keeps the
time at which it happened, also when the agent starts after it.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from sevenhop.agent.xid_lines import GpuAt, Malformed, XidLine, parse_lines

log = logging.getLogger("sevenhop.agent")

KMSG = Path("/dev/kmsg")
RECORD_BYTES = 8192
"""The kernel's own limit on one record (CONSOLE_EXT_LOG_MAX); a shorter read fails with EINVAL."""

POLL_S = 1.0
LOOK_BACK_S = 600.0
"""An agent that starts because its node was just rebooted or its GPU was lost still tells why; older XIDs were told."""


class KmsgXid(msgspec.Struct, frozen=True, kw_only=True):
    """`ago_s`: how long ago it was logged; `uuid` is empty where the log did not name it."""

    line: XidLine
    ago_s: float = 0.0
    uuid: str = ""


class Kmsg:
    """
    Attributes:
        malformed: Lines about XIDs that could not be read.
        lost: Times that the kernel overwrote records before they were read.
        problem: Why the log is not read; empty while it is.
    """

    def __init__(
        self,
        on_xid: Callable[[KmsgXid], None],
        path: Path = KMSG,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        poll_s: float = POLL_S,
    ) -> None:
        self._on_xid = on_xid
        self._path = path
        self._monotonic = monotonic
        self._poll_s = poll_s
        self._uuids: dict[str, str] = {}
        self.malformed = 0
        self.lost = 0
        self.problem = ""

    async def run(self) -> None:
        """Read until cancelled; where it cannot be opened, say so and look again now and then."""
        while True:
            try:
                file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
            except OSError as error:
                self.problem = f"kernel log: {self._path}: {error.strerror}; XIDs come from NVML alone"
                await asyncio.sleep(60.0)
                continue
            self.problem = ""
            try:
                await self._read(file)
            except OSError as error:
                self.problem = f"kernel log: {self._path}: {error.strerror}; XIDs come from NVML alone"
                await asyncio.sleep(60.0)
            finally:
                os.close(file)

    async def _read(self, file: int) -> None:
        while True:
            try:
                record = os.read(file, RECORD_BYTES)
            except BlockingIOError:
                record = b""
            except OSError as error:
                if error.errno != errno.EPIPE:
                    raise
                self.lost += 1  # the next read goes on with the oldest record that is left
                continue
            if not record:
                # Not add_reader: a second is soon enough, and the same code reads what is not a device.
                await asyncio.sleep(self._poll_s)
                continue
            for line in record.decode("utf-8", "replace").splitlines():
                self.take(line)

    def take(self, line: str) -> None:
        """One line of a record; those that begin with a space continue it: what the kernel knows of the device."""
        if line.startswith(" "):
            return
        head, separator, message = line.partition(";")
        ago = self._ago(head) if separator else 0.0
        for said in parse_lines(message if separator else line):
            match said:
                case XidLine() as found if ago <= LOOK_BACK_S:
                    self._on_xid(KmsgXid(line=found, ago_s=ago, uuid=self._uuids.get(found.pci, "")))
                case GpuAt(pci=pci, uuid=uuid):
                    self._uuids[pci] = uuid
                case Malformed() if ago <= LOOK_BACK_S:
                    self.malformed += 1
                case _:
                    pass

    def _ago(self, head: str) -> float:
        parts = head.split(",")
        if len(parts) < 3 or not parts[2].isdecimal():
            return 0.0
        return max(0.0, self._monotonic() - int(parts[2]) / 1e6)
