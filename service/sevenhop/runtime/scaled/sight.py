"""
What a worker may believe of one cluster: whose word counts, whether absence counts, whether anybody still looks.

Three things make what is read from a topic less than what a watch in the same process says:
    - an earlier edge may still speak (a stalled one that comes back);
    - right after a rebuild a key may be missing that compaction has dropped and the stream has yet to bring, so "all of
      this kind is known" is held back until then;
    - the edge may be silent: nothing in the topic says so, and what it said last is then stale.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from sevenhop.core.events import Event, SourceChanged, SyncState
from sevenhop.core.objects.kinds import KINDS
from sevenhop.runtime.scaled.terms import FROM_EDGE, term_of

_CLAIMS_ALL = (SyncState.SYNCED, SyncState.ABSENT)


class Sight:
    """
    Of one cluster.

    Attributes:
        term: Of the edge that speaks for it.
        stale_records: Left out, because a later edge speaks.
        is_blind: Its edge is silent.
    """

    def __init__(self, silence: timedelta, now: datetime, *, is_whole: bool) -> None:
        self._silence = silence
        self._heard_at = now
        self._is_whole = is_whole
        self._told: dict[str, SourceChanged] = {}
        self.term = 0
        self.stale_records = 0
        self.is_blind = False

    @property
    def heard_at(self) -> datetime:
        """When its edge last said anything, by our clock; our own start before that."""
        return self._heard_at

    def take(self, event: Event, now: datetime) -> list[Event]:
        """What the engine is to be told for one record; `now` is when it arrived."""
        if not isinstance(event, FROM_EDGE):
            return [event]
        term = term_of(event)
        if term < self.term:
            self.stale_records += 1
            return []
        self.term = term
        back = self._heard(now)
        if isinstance(event, SourceChanged):
            self._told[event.kind] = event
            if not self._is_whole and event.state in _CLAIMS_ALL:
                return back
        return [*back, event]

    def whole(self) -> list[Event]:
        """The stream has passed the end that was there when the rebuild began: absence counts from here on."""
        if self._is_whole:
            return []
        self._is_whole = True
        return [] if self.is_blind else [told for told in self._told.values() if told.state in _CLAIMS_ALL]

    def look(self, now: datetime) -> list[Event]:
        """Time has passed; what is known becomes stale if nobody has said anything for too long."""
        if self.is_blind or now - self._heard_at <= self._silence:
            return []
        self.is_blind = True
        since = int((now - self._heard_at) / timedelta(seconds=1))
        detail = f"the edge of this cluster has said nothing for {since} s; look at its pod"
        return [
            # At the place of what it said last, so that its next word is news.
            SourceChanged(at=now, epoch=told.epoch, seq=told.seq, kind=kind, state=SyncState.STALE, detail=detail)
            for kind, told in self._told.items()
            if told.state is SyncState.SYNCED and kind in KINDS
        ]

    def _heard(self, now: datetime) -> list[Event]:
        self._heard_at = now
        if not self.is_blind:
            return []
        self.is_blind = False
        return [
            msgspec.structs.replace(told, at=max(told.at, now))
            for told in self._told.values()
            if told.state is SyncState.SYNCED and self._is_whole
        ]
