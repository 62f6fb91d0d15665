"""The flags of a command line, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


def flags_of(words: Sequence[str]) -> dict[str, str]:
    """
    ``--flag value``, ``--flag=value`` and ``-flag value``; dashes for underscores, the last of equal ones.

    >>> flags_of(["--served_model_name=x", "--enforce-eager", "--port", "8000"])
    {'served-model-name': 'x', 'enforce-eager': '', 'port': '8000'}
    """
    found: dict[str, str] = {}
    for at, word in enumerate(words):
        if not word.startswith("-") or word.strip("-") == "" or re.match(r"^-\d", word):
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not equals and at + 1 < len(words) and not re.match(r"^-{1,2}[A-Za-z]", words[at + 1]):
            value = words[at + 1]
        found[name.replace("_", "-").lower()] = value
    return found


def first_word(text: str) -> str:
    """``--served-model-name`` takes a list; the first one labels the metrics."""
    return text.split()[0] if text.split() else ""


def value_of(flags: Mapping[str, str], names: Sequence[str]) -> str:
    """The value of the first of these flags that has one; empty without."""
    return next((flags[name] for name in names if flags.get(name)), "")
