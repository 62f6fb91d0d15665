"""What the table of channels says of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TextIO

from pydantic import BaseModel, ConfigDict

from sevenhop.channels.channel import Channel
from sevenhop.channels.door import DoorBuilder

Clock = Callable[[], datetime]


class ChannelSettings(BaseModel):
    """Settings of one receiver; `type` names the channel."""

    # An error that repeats what was given would repeat a token.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSpec:
    """
    One channel.

    Attributes:
        name: The `type` in the settings.
        summary: What it is for, in a sentence.
        build: Makes the channel from its settings; imports what is heavy only then.
        example: Settings as a person would write them; its secrets are invented.
        addresses: Fields of the settings that say whom it talks to over the network; none for a local one.
        door: Makes what takes people's decisions, where these settings have such a thing; None for a channel that
            only tells.
        door_key: Settings that share a door have the same key; empty where there is none.
    """

    name: str
    summary: str
    settings: type[ChannelSettings]
    build: Callable[[Any, Clock, TextIO | None], Channel]
    example: Mapping[str, Any] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    door: DoorBuilder | None = None
    door_key: Callable[[Any], str] = lambda _settings: ""
