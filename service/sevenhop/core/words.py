"""A number and its noun, and names in order, for every text that people read."""

from __future__ import annotations

import re
from collections.abc import Iterable

_HISSING = ("s", "x", "z", "ch", "sh")
_VOWELS = "aeiou"
_DIGITS = re.compile(r"([0-9]+)")


def counted(number: int, noun: str, plural: str = "") -> str:
    """
    A number with its noun, which agrees.

    Args:
        noun: In the singular; of several words the last one is inflected.
        plural: Where the rules of English do not make it.

    >>> counted(1, "GPU"), counted(3, "workload"), counted(0, "old pod"), counted(2, "man", "men")
    ('1 GPU', '3 workloads', '0 old pods', '2 men')
    """
    return f"{number} {inflected(number, noun, plural)}"


def inflected(number: int, noun: str, plural: str = "") -> str:
    """
    The noun without the number, for where words stand between them; a verb in both forms does as well.

    >>> inflected(2, "class"), inflected(2, "policy"), inflected(1, "has", "have"), inflected(4, "has", "have")
    ('classes', 'policies', 'has', 'have')
    """
    if number == 1:
        return noun
    if plural:
        return plural
    if noun.endswith(_HISSING):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in _VOWELS:
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def whole(text: str) -> int | None:
    """
    A whole number as Go reads it into 64 bits; None for anything else.

    Text from the cluster may hold thousands of digits, at which `int` raises.

    >>> whole("12"), whole("-3"), whole("--5"), whole("²"), whole("9" * 5_000)
    (12, -3, None, None, None)
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > 19:
        return None
    number = int(digits.lstrip("0") or "0")
    number = -number if text[0] == "-" else number
    return number if -(2**63) <= number < 2**63 else None


Place = tuple[tuple[str | tuple[int, str], ...], str]
"""A name's place among others; see `natural`."""


def natural(name: str) -> Place:
    """
    To sort names by as people do: ``gpu-2`` before ``gpu-10``.

    Numbers are compared by length and digits, since a text from the cluster may hold more of them than `int` takes.

    >>> sorted(("gpu-10", "gpu-2", "gpu-02", "gpu"), key=natural)
    ['gpu', 'gpu-02', 'gpu-2', 'gpu-10']
    """
    parts = _DIGITS.split(name)
    return tuple(_number(part) if at % 2 else part for at, part in enumerate(parts)), name


def by_name(key: tuple[str, str]) -> tuple[str, Place]:
    """To sort (namespace, name) by, names as people do."""
    return key[0], natural(key[1])


def in_order(names: Iterable[str]) -> list[str]:
    """Names as people list them, whatever the order in which they came."""
    return sorted(names, key=natural)


def _number(digits: str) -> tuple[int, str]:
    plain = digits.lstrip("0")
    return len(plain), plain
