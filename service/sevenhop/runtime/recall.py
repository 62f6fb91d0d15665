"""After a start without memory: what the channels still show is read back, so that nobody is told twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from sevenhop.channels.channel import Channel, DeliveryError, PermanentDeliveryError, RecallingChannel
from sevenhop.core.events import Event
from sevenhop.runtime.clock import Clock

log = logging.getLogger("sevenhop.recall")

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0


class Recall:
    """Asks each channel that can be asked, until it has answered."""

    def __init__(self, channels: Mapping[str, Channel], clock: Clock) -> None:
        self._clock = clock
        self._heard: list[Event] = []  # kept over a call that is cancelled: who has answered is not asked again
        self._open = {name: channel for name, channel in channels.items() if isinstance(channel, RecallingChannel)}

    async def once(self) -> list[Event]:
        """What those say that have not answered yet, and answer now."""
        for name, channel in list(self._open.items()):
            try:
                recalled = await channel.recall(name, self._clock())
            except PermanentDeliveryError as error:
                log.warning("our memory is young, and receiver %s cannot say what it shows: %s", name, error)
                del self._open[name]
            except DeliveryError as error:
                log.info("receiver %s is asked again what it shows: %s", name, error)
            else:
                if recalled:
                    log.info("our memory is young; receiver %s shows %d incidents of ours", name, len(recalled))
                self._heard += recalled
                del self._open[name]
        heard, self._heard = self._heard, []
        return heard

    async def run(self, emit: Callable[[list[Event]], Awaitable[None]]) -> None:
        """Ask again until all have answered."""
        delay_s = FIRST_RETRY_S
        while self._open:
            await asyncio.sleep(self._clock.real_s(delay_s))
            delay_s = min(delay_s * 2, LONGEST_RETRY_S)
            await emit(await self.once())
