"""
The kill switch as people turned it, kept beside Redis: whoever stopped everything has stopped it, whatever is lost.

    a step that turned it, stored ─► KeptSwitches ─► topic of objects, a key for each cluster ─► read again by a rebuild

Redis is where it counts.  What the topic has is looked at only where a partition begins without any state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from sevenhop.actions.transport import LostAnswerError
from sevenhop.core.effects import Reply
from sevenhop.core.engine import Step
from sevenhop.core.events import Event, SwitchSet
from sevenhop.runtime.codec import Record, encode
from sevenhop.runtime.scaled.decisions import Put
from sevenhop.runtime.scaled.partition import Partition, Watch
from sevenhop.runtime.scaled.signing import Sign
from sevenhop.runtime.scaled.topics import Topics
from sevenhop.telemetry.times import StepTimes

log = logging.getLogger("sevenhop.decisions")

AGAIN_AFTER_S = 2.0


def kept(cluster: str, event: SwitchSet) -> Record:
    """The record of the last word on a cluster's switch; compaction keeps it."""
    return replace(encode(cluster, event), key=f"{cluster}|switch||".encode(), is_kept=True)


def last_turn(events: Sequence[Event], replies: Sequence[Reply]) -> SwitchSet | None:
    """The last of these events that turned a switch and was followed."""
    followed = {reply.request_id for reply in replies if reply.accepted}
    return next((e for e in reversed(events) if isinstance(e, SwitchSet) and e.request_id in followed), None)


class KeptSwitches:
    """A worker's; to be told of each step once it is stored."""

    def __init__(self, put: Put, topics: Topics, sign: Sign) -> None:
        self._put = put
        self._topics = topics
        self._sign = sign
        self._wanted: dict[str, Record] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}

    def watching(self, partition: Partition) -> Watch:
        """See `Partition.watches`."""

        def watch(events: Mapping[str, Sequence[Event]], steps: Mapping[str, Step], _times: StepTimes) -> None:
            for cluster, step in steps.items():
                turned = last_turn(events.get(cluster, ()), step.replies) if step.replies else None
                # The same request again changes nothing, and others may have turned it since.
                if turned is not None and partition.cells[cluster].engine.remediation.switch.is_on == turned.is_on:
                    self._keep(cluster, turned)

        return watch

    def _keep(self, cluster: str, turned: SwitchSet) -> None:
        self._wanted[cluster] = self._sign(cluster, kept(cluster, turned))
        if cluster not in self._under_way:
            task = self._under_way[cluster] = asyncio.create_task(self._store(cluster))
            task.add_done_callback(lambda _: self._under_way.pop(cluster, None))

    async def _store(self, cluster: str) -> None:
        """Until Kafka has the last word that was said."""
        while (record := self._wanted.get(cluster)) is not None:
            try:
                await self._put(self._topics.objects, cluster, record)
            except LostAnswerError as error:
                log.warning("the kill switch of %s is kept in Redis alone for now: %s", cluster, error)
                await asyncio.sleep(AGAIN_AFTER_S)
                continue
            if self._wanted.get(cluster) is record:
                del self._wanted[cluster]
