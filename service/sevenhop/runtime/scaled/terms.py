"""
Which edge speaks for a cluster: each begins a term, and what an earlier one still says is not listened to.

A term is part of the epoch of everything that an edge tells of its cluster, so the inventory's own order (epoch,
sequence) puts a new edge's first list after all that the one before ever said.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from sevenhop.core.events import Applied, Deleted, Event, SourceChanged, Tick, Unreadable

_LIST_BITS = 20
"""A million lists of one kind within one term: more than an edge can make in a year."""

FROM_EDGE = (Applied, Deleted, Unreadable, SourceChanged, Tick)
"""Events whose epoch carries the term.  Agents, people and channels have their own, or none."""

Told = TypeVar("Told", bound=Event)


def in_term(event: Told, term: int) -> Told:
    """The event as it is told by the edge of that term."""
    return msgspec.structs.replace(event, epoch=(term << _LIST_BITS) | event.epoch)


def term_of(event: Event) -> int:
    """
    0 for what no edge tells.

    >>> from datetime import UTC, datetime
    >>> term_of(in_term(Tick(at=datetime(2026, 1, 1, tzinfo=UTC), epoch=3), 7))
    7
    """
    return event.epoch >> _LIST_BITS if isinstance(event, FROM_EDGE) else 0
