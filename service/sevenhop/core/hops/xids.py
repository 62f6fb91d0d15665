"""
XIDs: what the driver reports of a GPU, what each asks for, and which are only the consequence of another one.

Numbers, descriptions and recommended actions are NVIDIA's (XID catalogue,
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html); the classes put its actions in our words.
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from sevenhop.core.hops import xid_links


class XidClass(StrEnum):
    """What an XID asks for, the least first."""

    NONE = "none"  # nothing now: a note about ageing, or a link's corrected error
    APP = "app"  # look at the program; the GPU is well
    CONTAINED = "contained"  # one program lost its memory, the GPU goes on: restart that program
    RESET = "reset"  # of the GPU, once nothing runs on it
    REBOOT = "reboot"  # of the node, better a power cycle
    REPLACE = "replace"  # hands on the hardware

    @property
    def is_bad(self) -> bool:
        """Whether the GPU is not to be used until somebody has done it."""
        return self in (XidClass.RESET, XidClass.REBOOT, XidClass.REPLACE)


class Xid(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        cls: None where only the driver's line tells (`class_of`).
        rank: Of several on one GPU at once the lowest is the root.
        is_consequence: Marks a program that was ended; never told alone.
        is_link: An error of NVLink, which may come from the GPU at the other end.
    """

    number: int
    words: str
    cls: XidClass | None
    rank: int
    is_consequence: bool = False
    is_link: bool = False


DIRECTIVE = 154
"""Says which action another XID asks for; from driver R565 on the best source of it."""
LOST = 79
LINK = 74
_A, _C, _N = XidClass.APP, XidClass.CONTAINED, XidClass.NONE
_RESET, _REBOOT, _REPLACE = XidClass.RESET, XidClass.REBOOT, XidClass.REPLACE

# The order of roots: 79, then memory errors, then firmware, then links, then contained, then application errors.
_BUS, _MEMORY, _FIRMWARE, _OTHER, _LINK, _CONTAINED, _APP, _NOTE, _CONSEQUENCE = range(9)

_ENGINES: dict[str, tuple[int, ...]] = {
    "GPU stopped processing for a program": (8,),
    "corrupted push buffer": (11, 25, 32),
    "copy engine exception": (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136)),
    "video processor exception": (60,),
    "video decoder exception": (68, 83, 84, 88, 89, 96, 97, 98),
    "corrupted data sent to the GPU": (80,),
    "JPEG engine exception": (82, *range(99, 106)),
    "optical flow engine exception": (86, 139),
}
"""Errors of one engine or of what a program sent to it: restart the program."""

_NOTES: dict[str, tuple[int, ...]] = {
    "driver firmware error": (37, 38),
    "illegal access by the driver": (66, 67),
    "test message": (106, 107),
    "NVLink remote translation error": (108,),
    "deep learning accelerator error": (152, 153),
    "a channel was retired": (160, 161),
}
"""The catalogue says to ignore them."""

XIDS: dict[int, Xid] = {
    row.number: row
    for row in (
        *(Xid(number, words, _A, _APP) for words, numbers in _ENGINES.items() for number in numbers),
        *(Xid(number, words, _N, _NOTE) for words, numbers in _NOTES.items() for number in numbers),
        Xid(13, "graphics engine exception", _A, _APP),
        Xid(31, "GPU memory page fault", _A, _APP),
        Xid(43, "a program's channel was reset", _A, _CONSEQUENCE, is_consequence=True),
        Xid(44, "fault during a context switch", _N, _NOTE),
        Xid(45, "a program was removed from the GPU", _N, _CONSEQUENCE, is_consequence=True),
        Xid(46, "GPU stopped processing", _RESET, _OTHER),
        Xid(48, "double-bit memory error", _RESET, _MEMORY),
        Xid(54, "auxiliary power is not connected", _REPLACE, _OTHER),
        Xid(61, "internal micro-controller breakpoint", _N, _NOTE),
        Xid(62, "internal micro-controller halted", _RESET, _FIRMWARE),
        Xid(63, "a memory row was remapped", _N, _NOTE),
        Xid(64, "remapping of a memory row failed", _RESET, _MEMORY),
        Xid(69, "graphics engine class error", _A, _APP),
        Xid(74, "NVLink error", _RESET, _LINK, is_link=True),
        Xid(78, "vGPU start error", _N, _NOTE),
        Xid(79, "fallen off the bus", _REBOOT, _BUS),
        Xid(92, "many single-bit memory errors", _N, _NOTE),
        Xid(93, "InfoROM wear limit reached", _N, _NOTE),
        Xid(94, "contained memory error", _C, _CONTAINED),
        Xid(95, "uncontained memory error", _RESET, _MEMORY),
        Xid(109, "context switch timeout", _RESET, _OTHER),
        Xid(110, "security fault", _RESET, _OTHER),
        Xid(119, "GPU firmware does not answer", _RESET, _FIRMWARE),
        Xid(120, "GPU firmware error", _RESET, _FIRMWARE),
        Xid(121, "corrected error of the chip-to-chip link", _N, _NOTE),
        Xid(136, "link training failed", _RESET, _LINK, is_link=True),
        Xid(137, "illegal access to a peer over NVLink", _A, _APP),
        Xid(140, "uncorrected memory error", _RESET, _MEMORY),
        Xid(141, "CUDA fast path error", _A, _APP),
        Xid(143, "GPU initialisation error", _RESET, _OTHER),
        Xid(144, "NVLink error (SAW)", None, _LINK, is_link=True),
        Xid(145, "NVLink error (RLW)", None, _LINK, is_link=True),
        Xid(146, "NVLink error (TLW)", None, _LINK, is_link=True),
        Xid(147, "NVLink error (TREX)", None, _LINK, is_link=True),
        Xid(148, "NVLink error (control)", None, _LINK, is_link=True),
        Xid(149, "NVLink error (NETIR)", None, _LINK, is_link=True),
        Xid(150, "NVLink error (MSE)", None, _LINK, is_link=True),
        Xid(151, "key rotation error", _REBOOT, _OTHER),
        Xid(154, "recovery action changed", None, _OTHER),
        Xid(155, "NVLink is down by software", _RESET, _LINK, is_link=True),
        Xid(156, "a resource was retired", _RESET, _MEMORY),
        Xid(157, "retiring a resource failed", _N, _NOTE),
        Xid(158, "fatal timeout", _RESET, _OTHER),
        Xid(159, "error of the chip's interconnect", None, _CONTAINED),  # a reset only with UVM or vGPU
        Xid(171, "uncorrectable DRAM error", None, _CONTAINED),  # says more of a 48
        Xid(172, "uncorrectable SRAM error", None, _CONTAINED),
    )
}

UNLISTED_RANK = _APP
"""Of XIDs that are not in the table: before consequences, after everything that is known to be worse."""

BREAKS_PEERS = frozenset(row.number for row in XIDS.values() if row.rank in (_BUS, _MEMORY))
"""XIDs of one GPU after which the links of its peers fail too."""

LEFT_ALONE = frozenset((13, 31, 43, 45, 68, 109))
"""
XIDs after which NVIDIA's device plugin goes on offering the GPU; after any other it withdraws it until it is restarted
(https://github.com/NVIDIA/k8s-device-plugin, internal/rm/health.go).
"""

_RECOVERY = re.compile(r"\(([^()]*)\)\s*$")
_ACTIONS: dict[str, XidClass] = {
    "none": XidClass.NONE,
    "gpu reset required": XidClass.RESET,
    "node reboot required": XidClass.REBOOT,
    "drain p2p": XidClass.CONTAINED,
    "drain and reset": XidClass.RESET,
}


def class_of(number: int, text: str) -> XidClass | None:
    """
    What an XID asks for; None where neither the table nor the driver's line tells.

    >>> class_of(79, ""), class_of(154, "changed from 0x0 (None) to 0x2 (Node Reboot Required)")
    (<XidClass.REBOOT: 'reboot'>, <XidClass.REBOOT: 'reboot'>)
    >>> class_of(999, "") is None
    True
    """
    if number == DIRECTIVE:
        found = _RECOVERY.search(text.strip().rstrip("."))
        return _ACTIONS.get(found.group(1).strip().lower()) if found else None
    row = XIDS.get(number)
    if row is None:
        return None
    if row.cls is None:
        answer = xid_links.asks_for(text)
        return XidClass(answer) if answer is not None else None
    if number == LINK and xid_links.is_harmless_74(text):
        return XidClass.NONE
    return row.cls


def words_of(number: int) -> str:
    """
    >>> words_of(79), words_of(999)
    ('XID 79, fallen off the bus', 'XID 999, which is not in our table')
    """
    row = XIDS.get(number)
    return f"XID {number}, {row.words if row is not None else 'which is not in our table'}"


def rank_of(number: int, text: str = "") -> int:
    """
    Of several on one GPU the lowest is the root.

    An error of a link whose line says that nothing has to be done is a note, and hides no other XID.
    """
    row = XIDS.get(number)
    if row is None:
        return UNLISTED_RANK
    return _NOTE if row.is_link and class_of(number, text) is XidClass.NONE else row.rank


def needs_line(number: int) -> bool:
    """Whether only the driver's line tells what it asks for, so that two lines may ask for two things."""
    return number == LINK or (number in XIDS and XIDS[number].cls is None)


def is_consequence(number: int) -> bool:
    return number in XIDS and XIDS[number].is_consequence


def is_link(number: int) -> bool:
    return number in XIDS and XIDS[number].is_link
