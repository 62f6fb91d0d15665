"""Since when a component waits for nodes: one spell, however its pods are renamed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

REPLACED_WITHIN = timedelta(seconds=60)
"""
A controller replaces a deleted pod within seconds; a pod that begins to wait this soon after one that was deleted while
it waited takes its place in the queue.
"""


class Spell(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        since: The earliest PodScheduled=False of any pod of this spell.
        pods: Uids of the pods that wait now.
        deleted_at: When the last of them was deleted without ever having had a node; None while any waits.
    """

    since: datetime
    pods: frozenset[str]
    deleted_at: datetime | None = None

    def ends_at(self) -> datetime | None:
        """When it is over if nothing takes the place of what was deleted; None while pods wait."""
        return None if self.deleted_at is None else self.deleted_at + REPLACED_WITHIN


def spell(
    before: Spell | None,
    waiting: Mapping[str, datetime],
    placed: Mapping[str, datetime | None],
    now: datetime,
) -> Spell | None:
    """
    The spell as it goes on, a new one, or None where nothing waits and nothing is expected to take a place.

    Looking at every event or at every hundredth gives the same answer: whether two pods waited at the same time is
    read from their own timestamps.

    Args:
        waiting: Uid to the pod's PodScheduled=False transition, of the pods that wait now.
        placed: Uid to the PodScheduled=True transition, of pods of the component that have a node now.
    """
    earliest = min(waiting.values(), default=None)
    if before is None:
        return None if earliest is None else Spell(earliest, frozenset(waiting))
    if earliest is None:
        if before.deleted_at is not None:
            return before if now - before.deleted_at < REPLACED_WITHIN else None
        # What is neither waiting nor placed was deleted while it waited.
        vanished = any(uid not in placed for uid in before.pods)
        return Spell(before.since, frozenset(), now) if vanished else None
    if _goes_on(before, waiting, placed, earliest):
        return Spell(min(before.since, earliest), frozenset(waiting))
    return Spell(earliest, frozenset(waiting))


def _goes_on(
    before: Spell, waiting: Mapping[str, datetime], placed: Mapping[str, datetime | None], earliest: datetime
) -> bool:
    if before.deleted_at is not None:
        return earliest - before.deleted_at < REPLACED_WITHIN
    if any(uid in waiting or uid not in placed for uid in before.pods):
        return True
    # A node without a condition was bound by hand, at a time that nothing tells.
    return any((at := placed.get(uid)) is not None and at >= earliest for uid in before.pods)
