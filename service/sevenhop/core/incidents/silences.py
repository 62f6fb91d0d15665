"""Being quiet because a person asked for it: with an author, a reason and an end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from sevenhop.core.events import Silenced
from sevenhop.core.incidents.matchers import Matcher, Op, all_match, parse_matchers, says_something


class Silence(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Bound to labels, never to an alert: it survives a resolve and new names of pods, and ends at `expires_at` only.
    """

    id: str
    matchers: tuple[Matcher, ...]
    author: str
    comment: str
    starts_at: datetime
    expires_at: datetime

    def is_active(self, now: datetime) -> bool:
        return self.starts_at <= now < self.expires_at

    def silences(self, labels: Mapping[str, str], now: datetime) -> bool:
        return self.is_active(now) and all_match(self.matchers, labels)


def silence_of(event: Silenced) -> Silence:
    """
    What a person asked for.

    Raises:
        ValueError: A matcher that cannot be read, or matchers that would silence everything.
    """
    equal = tuple(Matcher(name, Op.EQUAL, value) for name, value in sorted(event.matchers.items()))
    matchers = (*equal, *parse_matchers(event.where))
    if not says_something(matchers):
        raise ValueError("a silence needs a matcher that does not match everything, such as namespace=prod")
    return Silence(
        id=event.silence_id,
        matchers=matchers,
        author=event.author,
        comment=event.comment,
        starts_at=event.at,
        expires_at=event.expires_at,
    )


def silencing(silences: Iterable[Silence], labels: Mapping[str, str], now: datetime) -> Silence | None:
    """The silence that holds longest among those that cover these labels; None if none does."""
    found = [silence for silence in silences if silence.silences(labels, now)]
    return max(found, key=lambda silence: (silence.expires_at, silence.id), default=None)
