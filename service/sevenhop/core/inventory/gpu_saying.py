"""What one reading says of a GPU: where it sits, whether it is there, whether it was reset."""

from __future__ import annotations

from sevenhop.core.gpu_sample import GpuReading
from sevenhop.core.gpu_words import normal_pci


def place_of(pci: str) -> str:
    """
    A PCI address in our spelling; empty for one that is none.

    >>> place_of("00000000:3B:00.0"), place_of("0000:3b:00"), place_of("")
    ('0000:3b:00.0', '0000:3b:00.0', '')
    """
    try:
        return normal_pci(pci.strip().removeprefix("PCI:"))
    except ValueError:
        return ""


def nameless(node: str, pci: str) -> str:
    """The name of a GPU of which only an XID told, until a sample gives its UUID."""
    return f"{node}/{pci}"


def is_present(error: str) -> bool | None:
    """
    Whether the driver sees a GPU that was read with this error.

    NVML's words (nvmlErrorString) for one that is gone are "GPU is lost" and, of its handle, "not found"; any other
    error, such as our own time limit, says nothing.
    """
    if not error:
        return True
    said = error.lower()
    return False if any(word in said for word in ("lost", "fallen off", "not found")) else None


def counts_anew(before: GpuReading | None, after: GpuReading) -> bool:
    """Counters since the driver was loaded run back: it was loaded again, or the GPU reset."""
    if before is None:
        return False
    pairs = (
        (before.ecc_uncorrected, after.ecc_uncorrected),
        (before.ecc_corrected, after.ecc_corrected),
    )
    return any(a is not None and b is not None and b < a for a, b in pairs)
