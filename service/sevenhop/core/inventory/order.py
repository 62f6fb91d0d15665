"""Which observation of an object is news: by (source epoch, sequence), per object, deletions remembered for a while."""

from __future__ import annotations

import msgspec

from sevenhop.core.inventory.objects import Key

_SEQUENCE_BITS = 48
GRAVES_KEPT = 20_000
"""
Deletions that are remembered per kind, so that a late duplicate of the object does not bring it back.  Older ones are
covered by the epoch: what a newer list did not mention is not there.
"""


class _Positions(msgspec.Struct):
    """
    Of one kind.

    Attributes:
        known: Of objects that exist.
        graves: Of deletions.
        epoch: The newest.
    """

    known: dict[Key, int] = {}
    graves: dict[Key, int] = {}
    epoch: int = 0


class Order:
    """
    The newest position seen of every object.

    Positions are compared per object and not per kind, so that one late object does not shut out the others.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, _Positions] = {}

    def is_news(self, kind: str, key: Key, epoch: int, seq: int) -> bool:
        """False for what is older than what is known of this object, or than the list that no longer had it."""
        here = self._kinds.get(kind)
        if here is None:
            return epoch >= 0
        position = (epoch << _SEQUENCE_BITS) | seq
        known = here.known.get(key)
        if known is not None:
            return position >= known
        grave = here.graves.get(key)
        if grave is not None:
            return position > grave or (position == grave == 0)
        return epoch >= here.epoch

    def exists(self, kind: str, key: Key, epoch: int, seq: int) -> None:
        here = self._of(kind, epoch)
        here.known[key] = (epoch << _SEQUENCE_BITS) | seq
        if here.graves:
            here.graves.pop(key, None)

    def is_gone(self, kind: str, key: Key, epoch: int, seq: int) -> None:
        here = self._of(kind, epoch)
        here.known.pop(key, None)
        here.graves.pop(key, None)
        here.graves[key] = (epoch << _SEQUENCE_BITS) | seq
        if len(here.graves) > GRAVES_KEPT:
            del here.graves[next(iter(here.graves))]

    def _of(self, kind: str, epoch: int) -> _Positions:
        here = self._kinds.get(kind)
        if here is None:
            here = self._kinds[kind] = _Positions()
        if epoch > here.epoch:
            here.epoch = epoch
            # Those of earlier epochs are now covered by the epoch itself.
            here.graves = {key: at for key, at in here.graves.items() if at >> _SEQUENCE_BITS >= epoch}
        return here
