"""Kubernetes quantities as exact integers."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

_SUFFIX = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12),
    "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip


_MOST = Decimal(2**63 - 1)
"""Kubernetes caps what is larger; exact arithmetic ends a little above it."""


@lru_cache(maxsize=4096)
def parse(text: str | int | float) -> Decimal:
    """
    A quantity as an exact number, capped at 2⁶³ - 1 as Kubernetes does.

    Raises:
        ValueError: Not a Kubernetes quantity.

    >>> parse("1500m"), parse("2Gi"), parse(8), parse("1e3")
    (Decimal('1.500'), Decimal('2147483648'), Decimal('8'), Decimal('1E+3'))
    """
    number = _number(str(text).strip())
    if number is None or not number.is_finite():
        raise ValueError(f"expected a quantity such as 500m, 2 or 16Gi, got {text!r}")
    return max(-_MOST, min(number, _MOST))


def _number(value: str) -> Decimal | None:
    digits = value.rstrip("numkKMGTPEi")
    for number, suffix in ((digits, value[len(digits) :]), (value, "")):
        try:
            return Decimal(number) * _SUFFIX[suffix]
        except (ArithmeticError, KeyError):  # no number, one beyond all exponents, or no suffix
            continue
    return None


@lru_cache(maxsize=4096)
def units(resource: str, text: str | int | float) -> int:
    """
    The quantity in the unit the scheduler counts in: thousandths for cpu, whole numbers (rounded up) for all others.

    >>> units("cpu", "1500m"), units("memory", "1Ki"), units("nvidia.com/gpu", "2")
    (1500, 1024, 2)
    """
    value = parse(text) * 1000 if resource == "cpu" else parse(text)
    return -int(-value // 1)
