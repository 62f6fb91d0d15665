"""
Clicks and commands from Slack, whichever way they come: Socket Mode or HTTP.

    payload ─► answered at once (3 s) ─► who is it? ─► the core decides ─► a private answer; the message is edited as
    any other change of the incident is
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from sevenhop.channels.channel import DeliveryError
from sevenhop.channels.door import Front, Handler, RefusedError
from sevenhop.channels.often import TOO_OFTEN, Often
from sevenhop.channels.slack.api import SlackApi
from sevenhop.channels.slack.clicks import Click, ClickError, Command, parse_click, parse_command
from sevenhop.channels.slack.markup import cut_escaped, escaped, literal
from sevenhop.channels.slack.modal import details_view
from sevenhop.channels.slack.people import SlackPeople, UnverifiedError
from sevenhop.channels.slack.settings import SlackSettings
from sevenhop.channels.text import plain
from sevenhop.core.events import Decided, Silenced, SwitchSet, Verb
from sevenhop.core.remediation.person import Person
from sevenhop.durations import parse_duration

log = logging.getLogger("sevenhop.channels.slack")

REMEMBERED = 1_000
MAX_ANSWER = 3_000
CLOSE_WITHIN_S = 2.0

USAGE = "Say `stop REASON`, `resume REASON` or `status`."
OLD_CLICK = "That click is from before a restart, so nothing was silenced by it now; choose again if you still want to."
FAILED = "That went wrong here, and may have been followed or not. Look at what came of it before you ask again."
NO_ANSWER = "No answer yet; it may still be followed. Look at what came of it before you ask again."


class SlackDoor:
    """One app; its clicks may come from any channel that it posts in."""

    def __init__(
        self, settings: SlackSettings, front: Front, deciders: Sequence[str], clock: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._front = front
        self._clock = clock
        self._began_at = clock()
        self._api = SlackApi(settings)
        self._people = SlackPeople(self._api, deciders, clock)
        self._often = Often(clock)
        self._looks = Often(clock)  # apart, so that nobody who has looked too often cannot stop
        self._seen: dict[str, None] = {}
        self._working: set[asyncio.Task[None]] = set()
        self.refused = 0  # payloads that were not Slack's, or not of this workspace

    async def run(self) -> None:
        """Listen over Socket Mode where there is an app token; else wait for HTTP."""
        if self._settings.app_token is None:
            await asyncio.Event().wait()
            return
        from sevenhop.channels.slack.socket_mode import listen

        await listen(self._settings, self.take)

    def routes(self) -> Mapping[str, Handler]:
        if self._settings.signing_secret is None:
            return {}
        from sevenhop.channels.slack.endpoint import SlackEndpoint

        endpoint = SlackEndpoint(self._settings.signing_secret, self.take, self._clock)
        return {"/slack/actions": endpoint.actions, "/slack/commands": endpoint.commands}

    async def close(self) -> None:
        if self._working:
            await asyncio.wait(self._working, timeout=CLOSE_WITHIN_S)
        await self._api.close()

    def take(self, kind: str, payload: Any) -> str:
        """
        Take one payload; the work goes on by itself.

        Returns:
            What is said at once, for a command; empty for a click.

        Args:
            kind: ``interactive`` or ``slash_commands``.
        """
        try:
            if kind == "slash_commands":
                command = parse_command(payload)
                if self._is_first(f"command-{command.trigger_id}"):
                    self._start(self._obey(command), command.channel_id, command.user_id)
                return ""
            click = parse_click(payload)
        except ClickError as error:
            self.refused += 1
            log.warning("slack: refused: %s", error)
            return ""
        if click is not None and self._is_first(click.request_id):
            self._start(self._handle(click), click.channel, click.user)
        return ""

    def _is_first(self, request: str) -> bool:
        """Slack sends again what it believes lost: an old `resume` must not end a later `stop`."""
        if request in self._seen:
            return False
        self._seen[request] = None
        while len(self._seen) > REMEMBERED:
            self._seen.pop(next(iter(self._seen)))
        return True

    def _start(self, work: Coroutine[Any, Any, None], channel: str, user: str) -> None:
        task = asyncio.create_task(self._carefully(work, channel, user))
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def _carefully(self, work: Coroutine[Any, Any, None], channel: str, user: str) -> None:
        """A click that fails is said in the log; the next one is taken all the same."""
        try:
            await work
        except TimeoutError:
            await self._whisper(channel, user, NO_ANSWER)
        except RefusedError as error:
            await self._whisper(channel, user, str(error))
        except Exception as error:  # noqa: BLE001  nobody awaits this task
            log.error("slack: a click was not handled: %s: %s", type(error).__name__, plain(str(error)))
            await self._whisper(channel, user, FAILED)

    async def _handle(self, click: Click) -> None:
        try:
            if not await self._people.is_ours(click.team, click.app):
                self.refused += 1
                log.warning("slack: refused: a click from another workspace or app")
                return
            if click.is_details:
                # Before Slack is asked who it is: it takes the trigger for three seconds only.
                if self._looks.is_too_often(click.user):
                    await self._whisper(click.channel, click.user, TOO_OFTEN)
                else:
                    await self._show_details(click)
                return
            if self._often.is_too_often(click.user):
                await self._whisper(click.channel, click.user, TOO_OFTEN)
                return
            person = await self._people.verified(click.user, click.user_name)
        except UnverifiedError as error:
            await self._whisper(click.channel, click.user, str(error))
            return
        if click.verb is not None:
            await self._decide(click, click.verb, person)
        else:
            await self._silence(click, person)

    async def _decide(self, click: Click, verb: Verb, person: Person) -> None:
        reply = await self._front.ask(
            Decided(
                at=self._clock(),
                request_id=click.request_id,
                person=person,
                verb=verb,
                plan_id=click.plan,
                plan_hash=click.hash,
                via="slack",
            )
        )
        if not reply.accepted or reply.text:
            await self._whisper(click.channel, click.user, reply.text)
        if reply.is_over and not reply.accepted:
            await self._disarm(click)

    async def _silence(self, click: Click, person: Person) -> None:
        now = self._clock()
        if click.clicked_at is not None and click.clicked_at < self._began_at:
            # It may have been followed before our start, and ended by somebody since: nothing here remembers it.
            await self._whisper(click.channel, click.user, OLD_CLICK)
            return
        key = click.incident.rpartition("-")[0]
        if await self._front.message(click.incident) is None:
            await self._whisper(click.channel, click.user, "That incident is over; nothing was silenced.")
            return
        until = now + parse_duration(click.silence)
        silence_id = sha256(f"{click.request_id}".encode()).hexdigest()[:8]
        await self._front.silence(
            Silenced(
                at=now,
                silence_id=silence_id,
                matchers={"incident": key},
                author=person.name,
                comment="from Slack",
                expires_at=until,
            )
        )
        text = f"Silenced for {click.silence}; `sevenhop silence expire {silence_id}` ends it."
        await self._whisper(click.channel, click.user, text)

    async def _show_details(self, click: Click) -> None:
        message = await self._front.message(click.incident)
        if message is None:
            await self._whisper(click.channel, click.user, "That incident is over, its details are in the thread.")
            return
        try:
            await self._api.call("views.open", trigger_id=click.trigger_id, view=details_view(message))
        except DeliveryError as error:
            log.warning("slack: the details could not be shown: %s", error)
            await self._whisper(click.channel, click.user, "The details could not be opened; they are in the thread.")

    async def _obey(self, command: Command) -> None:
        word, _, reason = command.text.strip().partition(" ")
        try:
            if not await self._people.is_ours(command.team_id, command.api_app_id):
                self.refused += 1
                log.warning("slack: refused: a command from another workspace or app")
                return
            if word == "status":
                # Every cluster is asked, and each waits at Redis.
                is_often = self._looks.is_too_often(command.user_id)
                text = TOO_OFTEN if is_often else await self._front.status()
                await self._whisper(command.channel_id, command.user_id, text)
                return
            if word not in ("stop", "resume"):
                await self._whisper(command.channel_id, command.user_id, USAGE)
                return
            if self._often.is_too_often(command.user_id):
                await self._whisper(command.channel_id, command.user_id, TOO_OFTEN)
                return
            person = await self._people.verified(command.user_id, command.user_name)
        except UnverifiedError as error:
            await self._whisper(command.channel_id, command.user_id, str(error))
            return
        reply = await self._front.ask(
            SwitchSet(
                at=self._clock(),
                request_id=f"slack-{command.trigger_id}",
                person=person,
                is_on=word == "stop",
                comment=plain(reason),
            )
        )
        await self._whisper(command.channel_id, command.user_id, reply.text)

    async def _disarm(self, click: Click) -> None:
        """Take the buttons off a message that still offers what is over: perhaps a double that nobody edits."""
        left = [block for block in click.blocks if block.get("type") != "actions"]
        if len(left) == len(click.blocks) or not left:
            return
        message = await self._front.message(click.incident)
        text = escaped(message.title) if message is not None else "This can no longer be decided here."
        try:
            await self._api.call("chat.update", channel=click.channel, ts=click.message_ts, text=text, blocks=left)
        except DeliveryError as error:
            log.info("slack: the buttons of an old message stay: %s", error)

    async def _whisper(self, channel: str, user: str, text: str) -> None:
        """Say it to one person; nobody else sees it."""
        if not text:
            return
        shown = cut_escaped(literal(text), MAX_ANSWER)
        try:
            await self._api.call("chat.postEphemeral", channel=channel, user=user, text=shown)
        except DeliveryError as error:
            log.warning("slack: an answer did not reach the person: %s", error)
