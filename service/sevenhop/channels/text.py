"""Text from the cluster, made harmless before a channel puts its own markup around it."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime

from sevenhop.core.effects import Message

_BREAKS = re.compile(r"[^\S ]+")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_JOINER = "‍"  # between emoji it is part of a picture, and it turns nothing around


def plain(text: str) -> str:
    """
    One line without anything that is not seen: no control characters or escape sequences (they move a cursor), no
    direction marks (they turn the rest of the line around), no lone surrogates (they cannot be sent).

    >>> plain("a\\x1b[31mb\\r\\nc \\u202edcba")
    'a[31mb c dcba'
    """
    if text.isascii() and text.isprintable():
        return text.strip()
    spaced = _BREAKS.sub(" ", text)
    return "".join(c for c in spaced if c == _JOINER or unicodedata.category(c) not in _UNSEEN).strip()


def cut(text: str, limit: int) -> str:
    """
    At most `limit` characters; what is missing shows as an ellipsis.

    >>> cut("abcdef", 4), cut("abcd", 4)
    ('abc…', 'abcd')
    """
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + "…"


_ICONS = {"critical": "🔴", "warning": "🟠", "info": "🔵"}


def icon_of(message: Message) -> str:
    """Never without `word_of`: colour alone says nothing to many people."""
    if message.status == "resolved":
        return "🟢" if message.end_reason == "recovered" else "⚪"
    return _ICONS[message.severity.value]


_ENDS = {
    "recovered": "RECOVERED",
    "subject_gone": "ENDED: the object is gone",
    "rule_changed": "ENDED: the rule was changed",
    "rule_removed": "ENDED: the rule was removed",
    "blind": "ENDED: not confirmed for too long",
    "explained": "ENDED: another incident explains it",
    "state_lost": "ENDED: unknown when, our state was lost",
}


def word_of(message: Message) -> str:
    """
    How loud it is, or how it ended: only what recovered is said to have recovered.

    `end_reason` is open: one that this table does not know is shown in its own words.
    """
    if message.status != "resolved":
        return message.severity.value.upper()
    reason = message.end_reason
    return _ENDS.get(reason) or (f"ENDED: {plain(reason).replace('_', ' ')}" if reason else "ENDED")


def clock_time(moment: datetime, now: datetime) -> str:
    """``03:00:05``, in UTC; with the date if it is not today's."""
    moment, now = moment.astimezone(UTC), now.astimezone(UTC)
    return f"{moment:%H:%M:%S}" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M:%S}"
