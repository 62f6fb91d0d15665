"""
What an earlier edge told and a new one does not see: it went while nobody looked, and nobody else will say so.

A new edge knows nothing of what was told before.  It reads the keys that the compacted topic still has, and once its
first list of a kind is through, tells what is not in it as deleted.
"""

from __future__ import annotations

from collections.abc import Sequence

from sevenhop.core.events import Applied, Deleted, SourceChanged, SyncState, Unreadable
from sevenhop.runtime.codec import Carried, RecordError, read
from sevenhop.runtime.scaled.reader import ends_of, read_range
from sevenhop.settings_scaled import KafkaSettings

Place = tuple[str, str]  # namespace, name
Known = dict[str, set[Place]]


async def read_leftovers(kafka: KafkaSettings, topic: str, partition: int, cluster: str) -> Known:
    """
    Kind to the objects of a cluster that the topic has.

    Raises:
        ReadError: Kafka went away.
    """
    known: Known = {}
    first, end = await ends_of(kafka, topic, partition)
    async for batch in read_range(kafka, topic, partition, first, end):
        for record in batch:
            try:
                found = read(record.value, record.headers)
            except RecordError:
                continue  # the workers bury it
            if found.cluster != cluster:
                continue
            event = found.event
            if isinstance(event, Applied):
                known.setdefault(event.kind, set()).add(event.obj.metadata.key)
            elif isinstance(event, Unreadable):
                known.setdefault(event.kind, set()).add((event.namespace, event.name))
            elif isinstance(event, Deleted):
                known.get(event.kind, set()).discard((event.namespace, event.name))
    return known


class Leftovers:
    """Mutable; forgets a kind once its first list is through."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def with_deletions(self, events: Sequence[Carried]) -> list[Carried]:
        """The events, with what has gone told before a kind is told as whole."""
        if not self._known:
            return list(events)
        told: list[Carried] = []
        for event in events:
            if isinstance(event, Applied):
                self._known.get(event.kind, set()).discard(event.obj.metadata.key)
            elif isinstance(event, Unreadable | Deleted):
                self._known.get(event.kind, set()).discard((event.namespace, event.name))
            elif isinstance(event, SourceChanged) and event.state in (SyncState.SYNCED, SyncState.ABSENT):
                told += [
                    Deleted(at=event.at, epoch=event.epoch, seq=event.seq, kind=event.kind, namespace=space, name=name)
                    for space, name in sorted(self._known.pop(event.kind, ()))
                ]
            told.append(event)
        return told
