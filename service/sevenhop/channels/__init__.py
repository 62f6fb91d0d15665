"""Places where people read messages.  One line here and one folder beside it make a channel."""

from __future__ import annotations

from typing import TextIO

from sevenhop.channels.channel import Channel
from sevenhop.channels.console import CONSOLE
from sevenhop.channels.pagerduty import PAGERDUTY
from sevenhop.channels.slack import SLACK
from sevenhop.channels.spec import ChannelSettings, ChannelSpec, Clock
from sevenhop.channels.webhook import WEBHOOK

CHANNELS: dict[str, ChannelSpec] = {spec.name: spec for spec in (CONSOLE, SLACK, PAGERDUTY, WEBHOOK)}


def build_channel(settings: ChannelSettings, *, clock: Clock, stream: TextIO | None = None) -> Channel:
    """
    The channel that these settings describe; nothing is connected before the first message.

    Args:
        stream: Where a channel of this terminal writes; None is the standard output.
    """
    spec = next(spec for spec in CHANNELS.values() if type(settings) is spec.settings)
    return spec.build(settings, clock, stream)
