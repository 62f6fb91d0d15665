"""What a worker believes of a cluster: whose word counts, whether absence counts, whether anybody still looks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sevenhop.core.events import Event, SourceChanged, SyncState, Tick, XidSeen
from sevenhop.runtime.scaled.sight import Sight
from sevenhop.runtime.scaled.terms import in_term
from tests import builders as b

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SILENCE = timedelta(seconds=15)


def synced(term: int, seq: int = 1, state: SyncState = SyncState.SYNCED) -> SourceChanged:
    return in_term(SourceChanged(at=NOON, epoch=1, seq=seq, kind="Pod", state=state), term)


def applied(term: int, name: str = "a") -> Event:
    return in_term(b.Feed().applied(b.pod(name))[0], term)


def states(events: list[Event]) -> list[SyncState]:
    return [event.state for event in events if isinstance(event, SourceChanged)]


def test_an_earlier_edge_is_not_listened_to() -> None:
    """Once a later term has spoken, what a stalled edge still tells is left out and counted."""
    sight = Sight(SILENCE, NOON, is_whole=True)
    assert sight.take(applied(1), NOON)
    assert sight.take(applied(2), NOON)

    assert sight.take(applied(1, "late"), NOON) == []
    assert sight.take(synced(1), NOON) == []
    assert sight.stale_records == 2


def test_what_has_no_term_always_counts() -> None:
    """Agents, people and channels do not belong to an edge's term."""
    sight = Sight(SILENCE, NOON, is_whole=True)
    sight.take(applied(5), NOON)
    xid = XidSeen(at=NOON, node="n", xid=79)
    assert sight.take(xid, NOON) == [xid]


@pytest.mark.parametrize("state", [SyncState.SYNCED, SyncState.ABSENT])
def test_absence_counts_only_when_the_stream_has_caught_up(state: SyncState) -> None:
    """Until then "all is known" is held back, objects are not."""
    sight = Sight(SILENCE, NOON, is_whole=False)
    assert sight.take(applied(1), NOON)
    assert states(sight.take(synced(1, state=state), NOON)) == []

    assert states(sight.whole()) == [state]
    assert sight.whole() == []
    assert states(sight.take(synced(1, seq=2, state=state), NOON)) == [state]


def test_trouble_is_told_at_once() -> None:
    """A kind that may not be listed is unknown before and after."""
    sight = Sight(SILENCE, NOON, is_whole=False)
    assert states(sight.take(synced(1, state=SyncState.FORBIDDEN), NOON)) == [SyncState.FORBIDDEN]


def test_a_silent_edge_makes_what_is_known_stale_and_its_next_word_mends_it() -> None:
    """Nothing in the topic says that nobody looks any more; a tick says that somebody does."""
    sight = Sight(SILENCE, NOON, is_whole=True)
    sight.take(synced(1), NOON)
    assert sight.look(NOON + SILENCE) == []

    late = NOON + SILENCE + timedelta(seconds=1)
    stale = sight.look(late)
    assert states(stale) == [SyncState.STALE]
    assert "edge" in getattr(stale[0], "detail", "")
    assert sight.look(late) == []  # told once

    back = sight.take(in_term(Tick(at=late), 1), late)
    assert states(back) == [SyncState.SYNCED]
    assert not sight.is_blind


def test_the_stale_word_is_news_and_so_is_the_next() -> None:
    """Both stand at the place of what the edge said last, so the inventory takes them in this order."""
    from sevenhop.core.inventory.inventory import Inventory

    sight, inventory = Sight(SILENCE, NOON, is_whole=True), Inventory("c", ())
    for event in sight.take(synced(1), NOON):
        inventory.apply(event)
    late = NOON + timedelta(minutes=1)
    seen = []
    for step in (sight.look(late), sight.take(in_term(Tick(at=late), 1), late)):
        for event in step:
            inventory.apply(event)
        seen.append(inventory.state.objects.states["Pod"])
    assert seen == [SyncState.STALE, SyncState.SYNCED]


def test_a_silent_edge_is_not_made_whole() -> None:
    """A stream that catches up while nobody looks does not make old knowledge current."""
    sight = Sight(SILENCE, NOON, is_whole=False)
    sight.take(synced(1), NOON)
    sight.look(NOON + timedelta(minutes=1))
    assert sight.whole() == []
