"""Finding our own messages again in a channel's recent history."""

from __future__ import annotations

import logging
from typing import Any

from sevenhop.channels.channel import DeliveryError, RetryableDeliveryError, UncertainDeliveryError
from sevenhop.channels.slack.api import SlackApi
from sevenhop.channels.slack.metadata import DETAILS, Found, Place, found_in

log = logging.getLogger("sevenhop.channels.slack")

PAGE = 200
PAGES = 5
"""So far back is looked: a busy channel's day.  What is older is posted anew."""


class SlackHistory:
    """Reads; never changes anything, so a failed call can always be made again."""

    def __init__(self, api: SlackApi, channel: str) -> None:
        self._api = api
        self._channel = channel
        self._complained = False

    async def of_key(self, key: str, receiver: str) -> list[Found]:
        """
        Messages of one incident key to one receiver, newest first; only as far back as the page with the newest.

        Two receivers may share a channel, and each has its own message there.

        Raises:
            DeliveryError: The history cannot be read: permanent if it may not.
        """
        return await self._scan(receiver, key)

    async def of_receiver(self, receiver: str) -> list[Found]:
        """
        All messages to one receiver, newest first.

        Raises:
            DeliveryError: As above.
        """
        return await self._scan(receiver, None)

    async def details_of(self, place: Place) -> str:
        """The ts of the reply that holds the details; empty if there is none."""
        answer = await self._read(
            "conversations.replies", channel=place.channel, ts=place.ts, limit=PAGE, include_all_metadata=True
        )
        for reply in _messages(answer):
            metadata = reply.get("metadata")
            if isinstance(metadata, dict) and metadata.get("event_type") == DETAILS:
                return str(reply.get("ts", ""))
        return ""

    def complain(self, error: DeliveryError) -> None:
        """Say once that the history may not be read, and what follows from it."""
        level = logging.DEBUG if self._complained else logging.WARNING
        self._complained = True
        log.log(level, "a message sent just before a crash may be posted twice, the history is closed: %s", error)

    async def _scan(self, receiver: str, key: str | None) -> list[Found]:
        found: list[Found] = []
        cursor: dict[str, str] = {}
        for _ in range(PAGES):
            answer = await self._read(
                "conversations.history", channel=self._channel, limit=PAGE, include_all_metadata=True, **cursor
            )
            ours = filter(None, map(found_in, _messages(answer)))
            found += [one for one in ours if one.receiver == receiver and key in (None, one.key)]
            following = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not following or (key is not None and found):
                break
            cursor = {"cursor": following}
        return found

    async def _read(self, method: str, **arguments: Any) -> dict[str, Any]:
        try:
            return await self._api.call(method, get=True, **arguments)
        except UncertainDeliveryError as error:
            raise RetryableDeliveryError(str(error)) from None


def _messages(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in answer.get("messages") or [] if isinstance(message, dict)]
