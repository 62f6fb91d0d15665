"""Slack."""

from __future__ import annotations

from typing import TextIO

from sevenhop.channels.channel import Channel
from sevenhop.channels.slack.settings import SlackSettings
from sevenhop.channels.spec import ChannelSpec, Clock


def _build(settings: SlackSettings, clock: Clock, stream: TextIO | None) -> Channel:  # noqa: ARG001
    from sevenhop.channels.slack.channel import SlackChannel

    return SlackChannel(settings)


SLACK = ChannelSpec(
    name="slack",
    summary="A Slack channel: one message per incident, edited in place, details in its thread.",
    settings=SlackSettings,
    build=_build,
    example={"type": "slack", "token": "xoxb-not-a-real-token", "channel": "C0123456789"},
    addresses=("base_url",),
)
