"""Which observation of an object is news: by (source epoch, sequence), per object, deletions remembered for a while."""

from __future__ import annotations

from sevenhop.core.inventory.objects import Key

_SEQUENCE_BITS = 48
GRAVES_KEPT = 20_000
"""
Deletions that are remembered per kind, so that a late duplicate of the object does not bring it back.  Older ones are
covered by the epoch: what a newer list did not mention is not there.
"""


class Order:
    """
    The newest position seen of every object.

    Positions are compared per object and not per kind, so that one late object does not shut out the others.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[Key, int]] = {}
        self._graves: dict[str, dict[Key, int]] = {}
        self._epochs: dict[str, int] = {}

    def is_news(self, kind: str, key: Key, epoch: int, seq: int) -> bool:
        """False for what is older than what is known of this object, or than the list that no longer had it."""
        position = (epoch << _SEQUENCE_BITS) | seq
        known = self._known.get(kind, _NOTHING).get(key)
        if known is not None:
            return position >= known
        grave = self._graves.get(kind, _NOTHING).get(key)
        if grave is not None:
            return position > grave or (position == grave == 0)
        return epoch >= self._epochs.get(kind, 0)

    def exists(self, kind: str, key: Key, epoch: int, seq: int) -> None:
        self._begin(kind, epoch)
        self._known.setdefault(kind, {})[key] = (epoch << _SEQUENCE_BITS) | seq
        self._graves.get(kind, {}).pop(key, None)

    def is_gone(self, kind: str, key: Key, epoch: int, seq: int) -> None:
        self._begin(kind, epoch)
        self._known.get(kind, {}).pop(key, None)
        graves = self._graves.setdefault(kind, {})
        graves.pop(key, None)
        graves[key] = (epoch << _SEQUENCE_BITS) | seq
        if len(graves) > GRAVES_KEPT:
            del graves[next(iter(graves))]

    def _begin(self, kind: str, epoch: int) -> None:
        if epoch > self._epochs.get(kind, 0):
            self._epochs[kind] = epoch
            # Those of earlier epochs are now covered by the epoch itself.
            graves = self._graves.get(kind, {})
            self._graves[kind] = {k: at for k, at in graves.items() if at >> _SEQUENCE_BITS >= epoch}


_NOTHING: dict[Key, int] = {}
