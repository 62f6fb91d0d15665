"""
What the NVIDIA driver writes into the kernel log about XIDs.

    NVRM: Xid (PCI:0000:0f:00): 94, pid=2503421, name=python3, Ch 00000008

The forms are those that NVIDIA's XID catalog, gpud's and NVSentinel's tests show.  The name of the process is the
user's and may hold anything (``ray::WorkerDict``), so it is left out of what is sent.
"""

from __future__ import annotations

import re

import msgspec

from sevenhop.core.gpu_words import normal_pci

MAX_TEXT = 160
FALLEN_OFF = 79

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([^)]*)\): (\d{1,5})(?![\d.])(.*)", re.DOTALL)
_IS_XID = re.compile(r"NVRM:\s*Xid\b")
_FELL = re.compile(r"NVRM: (?:GPU|The NVIDIA GPU) (?:at )?(?:PCI:)?([0-9a-fA-F:.]+?):? .*fallen off the bus")
_IS_AT = re.compile(r"NVRM: GPU at (?:PCI:)?([0-9a-fA-F:.]+): (GPU-[0-9a-f-]{36})")
_PID = re.compile(r"^,? *pid='?([^,']*)'?")
# comm has 15 characters at most, and a comma may be one of them: what is left of a name with a comma is cut with it.
_NAME = re.compile(r"^,? *name=[^,\n]*(?:,(?=\S)[^,\n]{0,14})*")
_NEXT = re.compile(r"(?=NVRM: )")


class XidLine(msgspec.Struct, frozen=True, kw_only=True):
    """One XID; `pid` is 0 where the driver does not know."""

    pci: str
    xid: int
    pid: int = 0
    text: str = ""


class GpuAt(msgspec.Struct, frozen=True):
    """The driver says which GPU sits where: it does before the first XID of each, and then NVML may be dead."""

    pci: str
    uuid: str


class Malformed(msgspec.Struct, frozen=True):
    """It speaks of an XID and cannot be read."""

    line: str


Found = XidLine | GpuAt | Malformed


def parse_lines(record: str) -> list[Found]:
    """
    All that one record says: two processors that write at once may leave the beginning of one line within another.

    >>> [type(found).__name__ for found in parse_lines("NVRM: Xid (PCI:0000:91:NVRM: Xid (PCI:0000:92:00): 74, NVLink")]
    ['Malformed', 'XidLine']
    """
    if "NVRM" not in record:
        return []
    return [found for piece in _NEXT.split(record) if (found := parse_line(piece)) is not None]


def parse_line(line: str) -> Found | None:
    """
    What one message of the kernel says; None for all that is not about XIDs.

    >>> parse_line("NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")
    XidLine(pci='0000:91:00.0', xid=79, pid=0, text='GPU has fallen off the bus.')
    """
    if "NVRM" not in line:
        return None
    if _IS_XID.search(line):
        match = _XID.search(line)
        try:
            if match is None:
                raise ValueError("no XID")
            pci = normal_pci(match[1])
        except ValueError:
            return Malformed(line[:MAX_TEXT])
        pid, text = _without_process(match[3])
        return XidLine(pci=pci, xid=int(match[2]), pid=pid, text=text)
    try:
        if fell := _FELL.search(line):
            # Logged beside the XID, or instead of it where the GPU went too fast.
            return XidLine(pci=normal_pci(fell[1]), xid=FALLEN_OFF, text="GPU has fallen off the bus.")
        if at := _IS_AT.search(line):
            return GpuAt(normal_pci(at[1]), at[2])
    except ValueError:
        return Malformed(line[:MAX_TEXT])
    return None


def _without_process(rest: str) -> tuple[int, str]:
    pid = 0
    if found := _PID.match(rest):
        pid = int(found[1]) if found[1].isascii() and found[1].isdigit() else 0
        rest = rest[found.end() :]
        if named := _NAME.match(rest):
            rest = rest[named.end() :]
    return pid, " ".join(rest.lstrip(", ").split())[:MAX_TEXT]
