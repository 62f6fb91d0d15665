"""A number and its noun, for every text that people read."""

from __future__ import annotations

_HISSING = ("s", "x", "z", "ch", "sh")
_VOWELS = "aeiou"


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
