"""Which readings must not wait for the next summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sevenhop.core.gpu_sample import GpuReading, Throttle

ENOUGH_PEERS = 3
"""So many other GPUs must agree before their links say how many this one should have."""


def standing(reading: GpuReading) -> tuple[object, ...]:
    """
    What is told at once when it changes: levels that ask somebody to act.

    Not what moves all the time (use, power, temperature, corrected errors), and not the power cap coming and going,
    which is usual under load.
    """
    throttle = Throttle.NONE if reading.throttle is Throttle.POWER else reading.throttle
    return (
        reading.error, reading.parent, reading.profile, throttle, reading.ecc_uncorrected,
        reading.remap_pending, reading.remap_failed, reading.nvlinks_down, reading.holders,
    )  # fmt: skip


def changed(before: Mapping[str, GpuReading], now: Iterable[GpuReading]) -> tuple[GpuReading, ...]:
    """Readings that are new, or stand otherwise than before; those that vanished need a whole sample."""
    return tuple(
        reading for reading in now if reading.uuid not in before or standing(before[reading.uuid]) != standing(reading)
    )


def with_links(
    readings: Iterable[GpuReading], up: Mapping[str, int | None], most_up: dict[str, int]
) -> tuple[GpuReading, ...]:
    """
    Say for each whole GPU how many NVLinks should be up and are not.

    NVML tells which links are up, not which are wired.  A link should be up if it was (since the agent's start), or
    if all other GPUs of the product on this node, at least three, have the same higher number: behind NVSwitches all
    are alike, while bridged pairs of PCIe cards are not and are left alone.

    Args:
        up: UUID to the number of links that are up; None where it was not told.
        most_up: UUID to the highest number seen; updated.
    """
    readings = tuple(readings)
    found = []
    for reading in readings:
        count = up.get(reading.uuid)
        if count is None or reading.error or reading.parent:
            found.append(reading)
            continue
        most_up[reading.uuid] = expected = max(count, most_up.get(reading.uuid, 0))
        peers = [
            links
            for other in readings
            if other.product == reading.product and other.uuid != reading.uuid and not other.parent
            if (links := up.get(other.uuid)) is not None
        ]
        if len(peers) >= ENOUGH_PEERS and len(set(peers)) == 1:
            expected = max(expected, peers[0])
        found.append(msgspec.structs.replace(reading, nvlinks_down=expected - count))
    return tuple(found)
