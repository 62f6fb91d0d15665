"""Settings of the console."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sevenhop.channels.spec import ChannelSettings


class ConsoleSettings(ChannelSettings):
    """The terminal that `sevenhop run` stands in."""

    type: Literal["console"]
    style: Literal["box", "line"] = Field("box", description="A box per message, or one line.")
