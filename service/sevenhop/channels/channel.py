"""What every channel promises to the outbox, and the three ways in which a delivery fails."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol, runtime_checkable

import msgspec

from sevenhop.core.effects import Notify
from sevenhop.core.events import Recalled


class DeliveryError(Exception):
    """A message was not, or perhaps not, delivered.  The text is for people and holds no secret."""


class RetryableDeliveryError(DeliveryError):
    """
    It surely did not arrive; the same again later may.

    Attributes:
        retry_after: Seconds that the receiver asks to wait; None if it says nothing.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UncertainDeliveryError(DeliveryError):
    """It may have arrived: ask the channel before it is sent again."""


class PermanentDeliveryError(DeliveryError):
    """It did not arrive, and the same again never will; the text says what a person must change."""


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """
    It arrived.

    Attributes:
        reference: What the channel calls the message, for the next edit; empty where messages cannot be edited.
    """

    reference: str


class Channel(Protocol):
    """One receiver: a place where people, or their programs, read messages."""

    async def deliver(self, notify: Notify, *, uncertain: bool) -> Delivery:
        """
        Show the state of an incident.

        The same notify again changes nothing that a person sees.

        Args:
            notify: What to show; `anew` posts, otherwise the earlier message is edited, or posted if there is none.
            uncertain: An earlier attempt of this very notify may have arrived, so the channel is asked first.

        Raises:
            RetryableDeliveryError: It surely did not arrive, and may later.
            UncertainDeliveryError: It may have arrived.
            PermanentDeliveryError: It is refused for good.
        """
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...


@runtime_checkable
class RecallingChannel(Protocol):
    """A channel that can tell what it still shows, for a state that was lost."""

    async def recall(self, receiver: str, now: datetime) -> list[Recalled]:
        """
        What is shown of each incident, newest first.

        Raises:
            DeliveryError: It cannot be read; permanent if it may not.
        """
        ...
