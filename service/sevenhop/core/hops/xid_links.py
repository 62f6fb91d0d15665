"""
Errors of NVLink, whose lines say more than their numbers.

XIDs 144 to 150, of NVLink 5: what one asks for stands in the driver's line alone.

    RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x040130c2 0x00000008 0x00000000 0x00000000 0x00000000 0x00000000)

The unit, then whether it is fatal, then the link, then registers: the first holds the subcode, the second the error's
status.  Unit and status decide, for a change of the link the subcode does, as in the sheet "XID 144-150 Decode" of
NVIDIA's catalogue (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, as of October 2025).  XID 74,
of older links, has seven registers, of which some bits may be ignored (WORKFLOW_NVLINK_ERR there).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

RESET, APP, NOTHING = "reset", "app", "none"
"""RESET_GPU; XID_154_EVAL, which without a directive is to restart the program; IGNORE."""

_LINE = re.compile(r"^([A-Z][A-Z0-9_]*)\b[^(\[]*[(\[]\s*(0x[0-9a-fA-F]{1,8})(?:\s+(0x[0-9a-fA-F]{1,8}))?\b")
_FATAL = re.compile(r"(?<!non)(?<!non[- ])\bfatal\b", re.IGNORECASE)
_NONFATAL = re.compile(r"\bnon[- ]?fatal\b", re.IGNORECASE)

_HEX = re.compile(r"0x[0-9a-fA-F]{1,8}")
_REGISTERS_74 = re.compile(r"\blink \d+\s*\(((?:0x[0-9a-fA-F]{1,8}[,\s]*){7})\)")
_HARMLESS_74 = 1 << 0 | 1 << 23 | 1 << 30

_ANY = 0x80000000
"""A status that every unit may have, and that is only a note."""


class _Unit(msgspec.Struct, frozen=True):
    """
    Statuses of one unit by what they ask for.

    Attributes:
        is_mask: Each bit is an error of its own, and several may be set; otherwise it is a number.
        promoted: Statuses that the driver may treat as fatal: nothing to do only where the line says nonfatal, and the
            bit of the first register that marks a promoted one is not set.
    """

    reset: tuple[int, ...] = ()
    app: tuple[int, ...] = ()
    nothing: tuple[int, ...] = (_ANY,)
    promoted: tuple[int, ...] = ()
    is_mask: bool = True

    def asks_for(self, status: int) -> str | None:
        for answer, statuses in ((RESET, self.reset), (APP, self.app), (NOTHING, self.nothing)):
            if status in statuses:
                return answer
        return None


_TLW = _Unit(reset=(0x4,), nothing=(0x1, 0x2, _ANY))

_UNITS: dict[str, _Unit] = {
    "SAW_MVB": _Unit(reset=(0x2, 0x10), nothing=(0x1, 0x4, 0x8, 0x20)),
    "RLW_CTRL": _Unit(),
    "RLW_REMAP": _Unit(reset=(0x40, 0x80), app=(0x1, 0x2, 0x4, 0x8, 0x10, 0x20), nothing=(0x100, 0x200, _ANY)),
    "RLW_RSPCOL": _Unit(reset=(0x2,), nothing=(0x1, _ANY)),
    "RLW_RXPIPE": _Unit(nothing=(0x1, 0x2, 0x4, 0x8, _ANY), promoted=(0x1, 0x2, 0x4)),
    "RLW_SRC_TRACK": _Unit(reset=(0x1, 0x10, 0x20), app=(0x4, 0x8), nothing=(0x2, _ANY)),
    "RLW_TAGSTATE": _Unit(reset=(0x2, 0x20000, 0x100000), nothing=(0x1, 0x10000, _ANY)),
    "TLW_CTRL": _TLW,
    "TLW_RX": _TLW,
    "TLW_TX": _TLW,
    "TREX": _Unit(nothing=(0x1, _ANY)),
    "NVLPW_CTRL": _Unit(),
    "NVLPW": _Unit(),
    "NETIR": _Unit(reset=(0x0,), nothing=(), is_mask=False),
    "NETIR_INT": _Unit(reset=(0x0,), nothing=(), is_mask=False),
    "NETIR_BER_EVENT": _Unit(nothing=(0x0, 0x1, 0x2, 0x3), is_mask=False),
    "NETIR_MFDE_EVENT": _Unit(reset=(0x1, 0x4, 0x5, 0x7), nothing=(0x3,), is_mask=False),
    "MSE_WATCHDOG": _Unit(reset=(0x0,), nothing=(), is_mask=False),
}

_OLD_RXPIPE = 0x0C2
"""How drivers before R575 name the one unit whose errors may be promoted."""

_LINK_EVENTS = ("NETIR_LINK_EVT", "NETIR_LINK_DOWN")
_LINK_DOWN: dict[int, str] = {
    **dict.fromkeys((0, 1, 2, 4, 10, 15, 16, 17, 18, 21, 22, 32, 33, 34, 35, 36, 37, 42, 43), RESET),
    38: NOTHING,  # taken down on purpose
    40: NOTHING,  # the host did it: look there
}
"""Why a link went down, bits 20 to 25 of the first register."""


def asks_for(text: str) -> str | None:
    """
    What the driver's line asks for: `RESET`, `APP` or `NOTHING`; None where neither the table nor the line tells.

    The word in the line decides alone only where it says fatal: a nonfatal error may be treated as fatal, which the
    registers tell.

    >>> asks_for("NETIR_LINK_EVT Fatal XC0 i0 Link 09 (0x004315c6 0x00000000)")
    'reset'
    >>> asks_for("RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x040130c2 0x00000008)")
    'none'
    """
    return _by_table(text) or (RESET if _FATAL.search(text) else None)


def is_harmless_74(text: str) -> bool:
    """
    Whether the registers of an XID 74 hold nothing but bits that may be ignored.

    >>> is_harmless_74("NVLink: fatal error detected on link 2(0x800000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)")
    True
    >>> is_harmless_74("NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)")
    False
    """
    match = _REGISTERS_74.search(text)
    if match is None:
        return False
    first, *others = (int(each, 16) for each in _HEX.findall(match[1]))
    return bool(first) and not first & ~_HARMLESS_74 and not any(others)


def _by_table(text: str) -> str | None:
    match = _LINE.match(text.strip())
    if match is None:
        return None
    name, first = match[1], int(match[2], 16)
    if name in _LINK_EVENTS:
        return _LINK_DOWN.get(first >> 20 & 0x3F)
    unit = _unit(name)
    if unit is None or match[3] is None or first >> 20 & 0x3F:
        return None
    status = int(match[3], 16)
    parts = list(_bits(status)) if unit.is_mask else [status]
    if any(part in unit.promoted for part in parts) and not _is_not_promoted(text, first):
        return None
    answers = [unit.asks_for(part) for part in parts]
    if RESET in answers:
        return RESET
    if not answers or None in answers:
        return None
    return APP if APP in answers else NOTHING


def _unit(name: str) -> _Unit | None:
    """Newer drivers number the pipes of a unit: ``TLW_RX_PIPE0``."""
    return _UNITS.get(name) or _UNITS.get(re.sub(r"_PIPE\d+$", "", name))


def _bits(status: int) -> Iterable[int]:
    return (1 << bit for bit in range(32) if status >> bit & 1)


def _is_not_promoted(text: str, first: int) -> bool:
    """
    The bit above the unit's number is not set, which drivers before R575 write in bits 5 to 9, newer ones in 0 to 6.
    """
    is_old = first & 0x3FF == _OLD_RXPIPE
    return _NONFATAL.search(text) is not None and not first >> (10 if is_old else 7) & 1
