"""A generic webhook."""

from __future__ import annotations

from typing import TextIO

from sevenhop.channels.channel import Channel
from sevenhop.channels.spec import ChannelSpec, Clock
from sevenhop.channels.webhook.settings import WebhookSettings


def _build(settings: WebhookSettings, clock: Clock, stream: TextIO | None) -> Channel:  # noqa: ARG001
    from sevenhop.channels.webhook.channel import WebhookChannel

    return WebhookChannel(settings, clock)


WEBHOOK = ChannelSpec(
    name="webhook",
    summary="A JSON POST to an address of yours, signed if you give a secret.",
    settings=WebhookSettings,
    build=_build,
    example={
        "type": "webhook",
        "url": "https://alerts.example.com/hook?token=not-a-real-token",
        "secret": "not-a-real-signing-secret",
    },
    addresses=("url",),
)
