"""The terminal."""

from __future__ import annotations

from typing import TextIO

from sevenhop.channels.channel import Channel
from sevenhop.channels.console.settings import ConsoleSettings
from sevenhop.channels.spec import ChannelSpec, Clock


def _build(settings: ConsoleSettings, clock: Clock, stream: TextIO | None) -> Channel:  # noqa: ARG001
    from sevenhop.channels.console.channel import ConsoleChannel

    return ConsoleChannel(settings, stream)


CONSOLE = ChannelSpec(
    name="console",
    summary="The terminal that Sevenhop runs in: a box per message, or one line; plain text in a pipe.",
    settings=ConsoleSettings,
    build=_build,
    example={"type": "console", "style": "box"},
)
