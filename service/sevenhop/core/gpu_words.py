"""What several sources say about a GPU in several spellings, in ours."""

from __future__ import annotations

import re

from sevenhop.core.gpu_sample import Throttle

_ADDRESS = re.compile(r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?")

# Bits of nvmlDeviceGetCurrentClocksEventReasons, which DCGM passes on as they are.
_SW_POWER_CAP, _HW_SLOWDOWN, _SW_THERMAL, _HW_THERMAL, _HW_POWER_BRAKE = 4, 8, 32, 64, 128


def normal_pci(text: str) -> str:
    """
    As in `GpuReading.pci`: small letters, four digits of domain, with the function.

    Raises:
        ValueError: Not a PCI address.

    >>> normal_pci("0000:3b:00"), normal_pci("00000000:3B:00.0"), normal_pci("3b:00.0")
    ('0000:3b:00.0', '0000:3b:00.0', '0000:3b:00.0')
    """
    match = _ADDRESS.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a PCI address: {text[:40]!r}")
    domain, bus, device, function = match.groups()
    return f"{int(domain or '0', 16):04x}:{bus.lower()}:{device.lower()}.{function or '0'}"


def throttle_of(bits: int) -> Throttle:
    """
    The heaviest reason why clocks are held down.  Idle, and clocks that somebody chose, are none.

    The hardware's slowdown bit is set together with what caused it, which says more.

    >>> throttle_of(8 | 64).value, throttle_of(8).value, throttle_of(4).value, throttle_of(1).value
    ('thermal', 'hw', 'power', 'none')
    """
    if bits & _HW_POWER_BRAKE:
        return Throttle.HW
    if bits & (_HW_THERMAL | _SW_THERMAL):
        return Throttle.THERMAL
    if bits & _HW_SLOWDOWN:
        return Throttle.HW
    return Throttle.POWER if bits & _SW_POWER_CAP else Throttle.NONE
