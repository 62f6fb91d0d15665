"""PagerDuty."""

from __future__ import annotations

from typing import TextIO

from sevenhop.channels.channel import Channel
from sevenhop.channels.pagerduty.settings import PagerDutySettings
from sevenhop.channels.spec import ChannelSpec, Clock


def _build(settings: PagerDutySettings, clock: Clock, stream: TextIO | None) -> Channel:  # noqa: ARG001
    from sevenhop.channels.pagerduty.channel import PagerDutyChannel

    return PagerDutyChannel(settings, clock)


PAGERDUTY = ChannelSpec(
    name="pagerduty",
    summary="A PagerDuty service: one PagerDuty incident per incident and episode, over Events API v2.",
    settings=PagerDutySettings,
    build=_build,
    example={"type": "pagerduty", "routing_key": "0123456789abcdef0123456789abcdef"},
    addresses=("base_url",),
)
