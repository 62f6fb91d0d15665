"""
One message per incident in a Slack channel: posted once, edited in place, details in its thread.

Slack knows no idempotency key.  So each message carries metadata of ours, and where an earlier attempt may have
arrived the channel's recent history is read before anything is posted.
"""

from __future__ import annotations

import logging
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from sevenhop.channels.channel import (
    Delivery,
    DeliveryError,
    PermanentDeliveryError,
    UncertainDeliveryError,
)
from sevenhop.channels.slack.api import SlackApi
from sevenhop.channels.slack.blocks import Post, details_of, parent_of, superseded_of
from sevenhop.channels.slack.blocks import in_short as short_of
from sevenhop.channels.slack.buttons import buttons_of
from sevenhop.channels.slack.errors import METADATA_REFUSED, CannotEditError, ClosedChannelError, NotShowableError
from sevenhop.channels.slack.history import SlackHistory
from sevenhop.channels.slack.metadata import FIRING, SUPERSEDED, Found, Place, describe, describe_details, in_short
from sevenhop.channels.slack.settings import SlackSettings
from sevenhop.core.effects import Notify
from sevenhop.core.events import Recalled

log = logging.getLogger("sevenhop.channels.slack")

REMEMBERED = 200
"""Deliveries that are remembered, so that the same one asked for again is not posted again."""


class _Told(msgspec.Struct, frozen=True):
    """The message in the channel is right; its thread, and an older message, perhaps not yet."""

    place: Place
    is_new: bool
    older: Place | None
    left_out: tuple[str, ...] = ()


class SlackChannel:
    """Keeps no state but what makes a second attempt in the same process cheap; the rest is asked of the channel."""

    def __init__(self, settings: SlackSettings) -> None:
        self._channel = settings.channel
        self._has_buttons = settings.is_interactive
        self._api = SlackApi(settings)
        self._history = SlackHistory(self._api, settings.channel)
        self._half_done: dict[str, _Told] = {}  # effect id → what was told, while its thread is not
        self._done: dict[tuple[str, datetime], str] = {}  # effect id and its time → reference, the last few

    async def deliver(self, notify: Notify, *, uncertain: bool) -> Delivery:
        """See `Channel.deliver`; the reference is ``channel/ts``, with the reply that holds the details."""
        done = (notify.id, notify.message.at)
        if done in self._done:
            return Delivery(reference=self._done[done])
        told = self._half_done.pop(notify.id, None) or await self._tell(notify, uncertain=uncertain)
        # From here on the page is there: what fails below is tried again, but never by posting it once more.
        # Of each: many clusters may tell here at the same time.
        self._half_done[notify.id] = msgspec.structs.replace(told, is_new=False)
        while len(self._half_done) > REMEMBERED:
            self._half_done.pop(next(iter(self._half_done)))
        try:
            place = await self._show_details(notify, told)
            await self._retire_older(notify, told)
        except PermanentDeliveryError as error:
            log.warning("incident %s was told, what belongs to it was not: %s", notify.incident, error)
            place = told.place
        except DeliveryError as error:
            raise UncertainDeliveryError(f"told, but not all that belongs to it: {error}") from None
        self._half_done.pop(notify.id, None)
        self._done[done] = str(place)
        while len(self._done) > REMEMBERED:
            self._done.pop(next(iter(self._done)))
        return Delivery(reference=str(place))

    async def recall(self, receiver: str, now: datetime) -> list[Recalled]:
        """
        What the channel shows of each incident, newest first: for a store that was lost.

        Raises:
            DeliveryError: The history cannot be read.
        """
        found = await self._history.of_receiver(receiver)
        newest = {one.key: one for one in reversed(found) if one.status != SUPERSEDED}
        return [one.recalled(receiver=receiver, channel=self._channel, at=now) for one in newest.values()]

    async def close(self) -> None:
        await self._api.close()

    async def _tell(self, notify: Notify, *, uncertain: bool) -> _Told:
        known = Place.parse(notify.reference)
        shown, is_read = await self._look_up(notify, known, uncertain=uncertain)
        post = self._parent_of(notify)
        posted = next((one for one in shown if one.is_of(notify)), None)
        if posted is not None:
            place = Place(self._channel, posted.ts)
            return _Told(place, is_new=False, older=self._older(notify, known, shown, place), left_out=post.left_out)
        target = self._to_edit(notify, known, shown)
        if target is not None:
            try:
                await self._edit(target, post, describe(notify))
            except CannotEditError as error:
                log.info("incident %s is posted again: %s", notify.incident, error)
            except ClosedChannelError as error:
                # The receiver was given another channel since: that one has to show it.
                if target.channel == self._channel:
                    raise
                log.warning("incident %s is posted again, where it stood takes nothing: %s", notify.incident, error)
            else:
                return _Told(target, is_new=False, older=None, left_out=post.left_out)
        if (uncertain or notify.adopt) and not is_read:
            post = self._parent_of(notify, in_doubt=True)
        place = await self._post(post, describe(notify))
        older = None if target is not None else self._older(notify, known, shown, place)
        return _Told(place, is_new=True, older=older, left_out=post.left_out)

    def _parent_of(self, notify: Notify, *, in_doubt: bool = False) -> Post:
        return parent_of(notify, in_doubt=in_doubt, buttons=buttons_of(notify) if self._has_buttons else ())

    def _to_edit(self, notify: Notify, known: Place | None, shown: list[Found]) -> Place | None:
        """The message to edit, None to post: of this episode, or any that a lost state left behind as firing."""
        newest = next((one for one in shown if one.status != SUPERSEDED), None)
        if not notify.anew and known is not None:
            return known
        if newest is None:
            return None
        is_left_behind = notify.adopt and newest.status == FIRING
        is_this_episode = not notify.anew and newest.episode == notify.episode
        return Place(self._channel, newest.ts) if is_left_behind or is_this_episode else None

    def _older(self, notify: Notify, known: Place | None, shown: list[Found], place: Place) -> Place | None:
        """The message that stood for this episode until now."""
        firing = [one for one in shown if one.status == FIRING and one.episode == notify.episode]
        older = [known] if known is not None else [Place(self._channel, one.ts) for one in firing]
        return next((one for one in older if one.ts != place.ts), None)

    async def _look_up(self, notify: Notify, known: Place | None, *, uncertain: bool) -> tuple[list[Found], bool]:
        """Our messages of this key, newest first, and whether they could be read; asked only where it matters."""
        if not (uncertain or notify.adopt or (known is None and (not notify.anew or notify.revision > 1))):
            return [], True
        try:
            return await self._history.of_key(notify.key, notify.receiver), True
        except PermanentDeliveryError as error:
            self._history.complain(error)
            return [], False

    async def _show_details(self, notify: Notify, told: _Told) -> Place:
        place = told.place
        post = details_of(notify.message, told.left_out)
        if post is None:
            return place
        digest = sha256(msgspec.json.encode(post.blocks)).hexdigest()[:12]
        if place.details_ts and place.details_digest == digest:
            return place
        details_ts = place.details_ts
        if not details_ts and not told.is_new:
            try:
                details_ts = await self._history.details_of(place)
            except PermanentDeliveryError as error:
                self._history.complain(error)
                return place
        metadata = describe_details(notify)
        if details_ts:
            try:
                await self._edit(Place(place.channel, details_ts), post, metadata)
                return Place(place.channel, place.ts, details_ts, digest)
            except CannotEditError:
                log.debug("the details of incident %s are posted again", notify.incident)
        reply = await self._post(post, metadata, thread_ts=place.ts, channel=place.channel)
        return Place(place.channel, place.ts, reply.ts, digest)

    async def _retire_older(self, notify: Notify, told: _Told) -> None:
        """An earlier message of the same episode must not go on saying that it is the one to watch."""
        if told.older is None:
            return
        answer = await self._api.call(
            "chat.getPermalink", get=True, channel=told.place.channel, message_ts=told.place.ts
        )
        post = superseded_of(notify, str(answer.get("permalink") or ""))
        try:
            await self._edit(told.older, post, describe(notify, status=SUPERSEDED))
        except CannotEditError:
            log.debug("the earlier message of incident %s is gone", notify.incident)

    async def _post(self, post: Post, metadata: dict[str, Any], *, thread_ts: str = "", channel: str = "") -> Place:
        where: dict[str, Any] = {"thread_ts": thread_ts} if thread_ts else {}
        answer = await self._send(
            "chat.postMessage",
            post,
            metadata,
            channel=channel or self._channel,
            unfurl_links=False,
            unfurl_media=False,
            **where,
        )
        return Place(str(answer.get("channel") or self._channel), str(answer["ts"]))

    async def _edit(self, place: Place, post: Post, metadata: dict[str, Any]) -> None:
        await self._send("chat.update", post, metadata, channel=place.channel, ts=place.ts)

    async def _send(self, method: str, post: Post, metadata: dict[str, Any], **where: Any) -> dict[str, Any]:
        """The message; in short where Slack refuses how it is built, for then it has surely taken nothing of it."""
        try:
            return await self._api.call(method, text=post.text, blocks=post.blocks, metadata=metadata, **where)
        except NotShowableError as error:
            log.warning("a message is told in short, Slack does not take it in full: %s", error)
            if error.word in METADATA_REFUSED:
                metadata = in_short(metadata)
            else:
                post = short_of(post, error.word)
        return await self._api.call(method, text=post.text, blocks=post.blocks, metadata=metadata, **where)
