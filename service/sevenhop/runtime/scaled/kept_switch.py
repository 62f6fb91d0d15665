"""
The kill switch as people turned it, kept beside Redis: whoever stopped everything has stopped it, whatever is lost.

    a step that turned it, stored ─► KeptSwitches ─► topic of objects, a key for each cluster ─► read again by a rebuild
    a rebuild that finds another word there than in Redis ─┘

Redis is where it counts.  What the topic has is looked at only where a partition begins without any state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

import msgspec
from msgspec.structs import replace

from sevenhop.actions.transport import LostAnswerError
from sevenhop.core.effects import Reply
from sevenhop.core.engine import Step
from sevenhop.core.events import Event, SwitchSet
from sevenhop.core.remediation.guards_question import Switch
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.codec import Record, encode
from sevenhop.runtime.scaled.decisions import Put
from sevenhop.runtime.scaled.partition import Partition, Watch
from sevenhop.runtime.scaled.signing import Sign
from sevenhop.runtime.scaled.topics import Topics
from sevenhop.telemetry.times import StepTimes

log = logging.getLogger("sevenhop.decisions")

AGAIN_AFTER_S = 2.0
LONGEST_AGAIN_S = 30.0
SAID_EVERY_S = 600.0
"""A right that is missing stays missing until somebody reads of it; `doctor` says it all the time."""


class _Wanted(msgspec.Struct, frozen=True):
    """A word that the topic does not have yet."""

    partition: Partition
    event: SwitchSet
    record: Record


def kept(cluster: str, event: SwitchSet) -> Record:
    """The record of the last word on a cluster's switch; compaction keeps it."""
    return replace(encode(cluster, event), key=f"{cluster}|switch||".encode(), is_kept=True)


def last_turn(events: Sequence[Event], replies: Sequence[Reply], *, is_on: bool) -> SwitchSet | None:
    """
    Of these events, the one that turned the switch to where it is now, as far as they did.

    One that comes again is followed, and changes nothing; so those that say otherwise than the switch are passed over,
    and of several that say the same the one that was said last counts.
    """
    followed = {reply.request_id for reply in replies if reply.accepted}
    turns = [e for e in events if isinstance(e, SwitchSet) and e.request_id in followed and e.is_on == is_on]
    return max(reversed(turns), key=lambda turn: turn.at, default=None)


def untold_turn(switch: Switch, told: SwitchSet | None) -> SwitchSet | None:
    """
    The switch as it is stored, where the topic has another word, and an earlier one: its worker died between the two,
    might not write there, or was of a version that kept nothing.
    """
    if switch.at is None or switch.is_on == (told is not None and told.is_on):
        return None
    if told is not None and told.at >= switch.at:
        return None  # Redis went back to what it was before: people see that, and it is theirs to say which holds
    request = switch.requests[-1] if switch.requests else "kept"
    person = Person(id="", name=switch.by)  # who may is asked when it is turned, and not when it is remembered
    return SwitchSet(at=switch.at, request_id=request, person=person, is_on=switch.is_on, comment=switch.comment)


class KeptSwitches:
    """
    A worker's; to be told of each step once it is stored.

    Args:
        now: Seconds, for how often it is said that nothing can be kept.
    """

    def __init__(self, put: Put, topics: Topics, sign: Sign, now: Callable[[], float] = monotonic) -> None:
        self._put = put
        self._topics = topics
        self._sign = sign
        self._now = now
        self._wanted: dict[str, _Wanted] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._failing: dict[str, str] = {}
        self._said_at: float | None = None

    def watching(self, partition: Partition) -> Watch:
        """See `Partition.watches`."""

        def watch(events: Mapping[str, Sequence[Event]], steps: Mapping[str, Step], _times: StepTimes) -> None:
            if not events:  # perhaps of a rebuild, which has read what the topic says
                for cluster in steps:
                    switch = partition.cells[cluster].engine.remediation.switch
                    untold = untold_turn(switch, partition.switched.get(cluster))
                    if untold is not None and cluster not in self._wanted:
                        self._keep(partition, cluster, untold)
            for cluster, step in steps.items():
                if step.replies:
                    is_on = partition.cells[cluster].engine.remediation.switch.is_on
                    turned = last_turn(events.get(cluster, ()), step.replies, is_on=is_on)
                    if turned is not None:
                        self._keep(partition, cluster, turned)

        return watch

    def report(self) -> dict[str, Any]:
        """For `doctor`: cluster to why its switch is kept in Redis alone."""
        return {"switches_not_kept": dict(sorted(self._failing.items()))}

    def _keep(self, partition: Partition, cluster: str, turned: SwitchSet) -> None:
        self._wanted[cluster] = _Wanted(partition, turned, self._sign(cluster, kept(cluster, turned)))
        if cluster not in self._under_way:
            task = self._under_way[cluster] = asyncio.create_task(self._store(cluster))
            task.add_done_callback(lambda _: self._under_way.pop(cluster, None))

    async def _store(self, cluster: str) -> None:
        """Until Kafka has the last word that was said, or the cluster is another's to speak for."""
        pause_s = AGAIN_AFTER_S
        while (wanted := self._wanted.get(cluster)) is not None:
            # Whoever has the partition next compares what is stored with what is kept; a word of ours could come behind
            # a later one of theirs.
            if wanted.partition.is_ready:
                try:
                    await self._put(self._topics.objects, cluster, wanted.record)
                except Exception as error:  # noqa: BLE001  whatever it is, nobody else would keep it
                    self._failed(cluster, error)
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 2, LONGEST_AGAIN_S)
                    continue
                wanted.partition.switched[cluster] = wanted.event
                if cluster in self._failing:
                    log.warning("the kill switch of %s is kept in Kafka too again", cluster)
            self._failing.pop(cluster, None)
            if self._wanted.get(cluster) is wanted:
                del self._wanted[cluster]

    def _failed(self, cluster: str, error: Exception) -> None:
        is_ours = not isinstance(error, LostAnswerError)
        self._failing[cluster] = f"{type(error).__name__}: {error}" if is_ours else str(error)
        if self._said_at is None or self._now() - self._said_at >= SAID_EVERY_S:
            self._said_at = self._now()
            log.warning(
                "the kill switch of %s is kept in Redis alone for now: %s; workers need to write to %s",
                cluster, self._failing[cluster], self._topics.objects, exc_info=error if is_ours else None,
            )  # fmt: skip
