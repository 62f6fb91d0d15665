"""What the NVML process tells the agent, a line of JSON each; and what it is asked, a line each."""

from __future__ import annotations

import msgspec

from sevenhop.core.gpu_sample import GpuReading


class Found(msgspec.Struct, frozen=True, kw_only=True, tag="found"):
    """Answer to ``count``: NVML works, and shows so many GPUs."""

    count: int
    driver: str = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True, tag="reading"):
    """
    Answer to ``read N``: one GPU and its MIG instances.

    Attributes:
        readings: The GPU first.  Empty where it could not even be named.
        minor: Number of its device file: how the DRA driver names it; -1 where unknown.
        links_up: NVLinks that are up; None where there are none, or the driver does not say.
        error: Why `readings` is empty.
        is_gone: The driver says that it is not there any more; otherwise it only cannot be read.
        missing: NVML functions that the driver lacks, or that failed in a way of their own.
    """

    index: int
    readings: tuple[GpuReading, ...] = ()
    minor: int = -1
    links_up: int | None = None
    error: str = ""
    is_gone: bool = False
    missing: tuple[str, ...] = ()


class Xid(msgspec.Struct, frozen=True, kw_only=True, tag="xid"):
    """The driver reported an XID, unasked."""

    xid: int
    pci: str = ""
    uuid: str = ""


class Stirred(msgspec.Struct, frozen=True, kw_only=True, tag="stirred"):
    """Something else happened on a GPU (a double-bit error, MIG was set up anew): read it now."""


class Said(msgspec.Struct, frozen=True, kw_only=True, tag="said"):
    """NVML as a whole does not work, or not all of it; one line."""

    text: str
    is_fatal: bool = False


Told = Found | Reading | Xid | Stirred | Said

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Told).decode
