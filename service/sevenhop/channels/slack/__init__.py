"""Slack."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TextIO

from sevenhop.channels.channel import Channel
from sevenhop.channels.door import Door, Front
from sevenhop.channels.slack.settings import SlackSettings
from sevenhop.channels.spec import ChannelSpec, Clock


def _build(settings: SlackSettings, clock: Clock, stream: TextIO | None) -> Channel:  # noqa: ARG001
    from sevenhop.channels.slack.channel import SlackChannel

    return SlackChannel(settings)


def _door(settings: SlackSettings, front: Front, deciders: Sequence[str], clock: Clock) -> Door:
    from sevenhop.channels.slack.door import SlackDoor

    return SlackDoor(settings, front, deciders, clock)


def _door_key(settings: SlackSettings) -> str:
    """Receivers of one app share its clicks: Slack sends each to any one connection."""
    if not settings.is_interactive:
        return ""
    parts = [settings.token, settings.app_token, settings.signing_secret]
    texts = "\0".join(part.get_secret_value() if part is not None else "" for part in parts)
    return sha256(texts.encode()).hexdigest()


SLACK = ChannelSpec(
    name="slack",
    summary="A Slack channel: one message per incident, edited in place, details in its thread.",
    settings=SlackSettings,
    build=_build,
    example={"type": "slack", "token": "xoxb-not-a-real-token", "channel": "C0123456789"},
    addresses=("base_url",),
    door=_door,
    door_key=_door_key,
)
