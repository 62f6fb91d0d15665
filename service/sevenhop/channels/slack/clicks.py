"""
What Slack says when somebody clicked, or wrote a command.

Shapes: docs.slack.dev, interaction payloads (block_actions) and slash commands.  Everything in them but the user, the
team and the channel was once in a message of ours and may have been forged by whoever can post as the app.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from sevenhop.channels.slack.buttons import DETAILS, PREFIX, SILENCE, SILENCES, Value
from sevenhop.core.events import Verb


class ClickError(Exception):
    """A payload that is not a click of ours; the text is for the log and holds nothing of it but plain words."""


class Click(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        verb: The decision, None for a silence or a look at the details.
        silence: A duration such as ``2h``; empty if none was asked for.
        request_id: The same for the same click, however often Slack sends it.
        clicked_at: By Slack's clock; None if it does not say.
    """

    user: str
    user_name: str
    team: str
    app: str
    channel: str
    message_ts: str
    trigger_id: str
    request_id: str
    clicked_at: datetime | None = None
    verb: Verb | None = None
    silence: str = ""
    is_details: bool = False
    incident: str = ""
    plan: str = ""
    hash: str = ""
    blocks: tuple[dict[str, Any], ...] = ()


class _Id(msgspec.Struct):
    id: str


class _User(msgspec.Struct):
    id: str
    username: str = ""
    name: str = ""


class _Option(msgspec.Struct):
    value: str


class _Action(msgspec.Struct):
    action_id: str
    action_ts: str
    value: str = ""
    selected_option: _Option | None = None


class _Message(msgspec.Struct):
    ts: str
    blocks: list[dict[str, Any]] = []


class _Payload(msgspec.Struct):
    type: str
    user: _User
    team: _Id
    channel: _Id
    message: _Message
    trigger_id: str
    actions: list[_Action]
    api_app_id: str = ""


class Command(msgspec.Struct, frozen=True):
    """``/sevenhop stop|resume|status …``."""

    command: str
    text: str
    user_id: str
    team_id: str
    channel_id: str
    trigger_id: str
    user_name: str = ""
    api_app_id: str = ""


def parse_click(payload: Any) -> Click | None:
    """
    The click in a payload; None for one that needs no answer of ours (another app's button, a link).

    Raises:
        ClickError: It is not what Slack sends for a button of ours.
    """
    if not isinstance(payload, dict):
        raise ClickError("not an object")
    if payload.get("type") != "block_actions":
        return None
    try:
        told = msgspec.convert(payload, _Payload)
    except msgspec.ValidationError as error:
        raise ClickError(f"a payload that is not Slack's: {error}") from None
    action = next((each for each in told.actions if each.action_id.startswith(PREFIX)), None)
    if action is None:
        return None
    click = Click(
        user=told.user.id,
        user_name=told.user.name or told.user.username,
        team=told.team.id,
        app=told.api_app_id,
        channel=told.channel.id,
        message_ts=told.message.ts,
        trigger_id=told.trigger_id,
        request_id=f"slack-{told.user.id}-{action.action_ts}",
        clicked_at=_time_of(action.action_ts),
        blocks=tuple(told.message.blocks),
    )
    return _with_wish(click, action)


def _time_of(stamp: str) -> datetime | None:
    """Of Slack's ``1700000000.123456``."""
    try:
        return datetime.fromtimestamp(float(stamp), tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _with_wish(click: Click, action: _Action) -> Click:
    if action.action_id == SILENCE:
        duration, _, incident = (action.selected_option.value if action.selected_option else "").partition(" ")
        if duration not in SILENCES or not incident:
            raise ClickError("a silence that was not offered")
        return replace(click, silence=duration, incident=incident)
    try:
        value = msgspec.json.decode(action.value, type=Value)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        raise ClickError("a button whose value is not ours") from None
    if action.action_id == DETAILS:
        return replace(click, is_details=True, incident=value.incident)
    word = action.action_id.removeprefix(PREFIX)
    if word not in tuple(Verb) or not value.plan or not value.hash:
        raise ClickError("a decision that was not offered")
    return replace(click, verb=Verb(word), incident=value.incident, plan=value.plan, hash=value.hash)


def parse_command(form: Any) -> Command:
    """
    Raises:
        ClickError: It is not what Slack sends for a slash command.
    """
    try:
        return msgspec.convert(form, Command)
    except msgspec.ValidationError as error:
        raise ClickError(f"a command that is not Slack's: {error}") from None
