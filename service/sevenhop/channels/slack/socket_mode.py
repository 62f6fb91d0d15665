"""
Clicks over Socket Mode: we connect to Slack, nothing listens here.

Frames from slack_sdk (socket_mode): the token authenticates, there is no signature; an envelope that is not answered
within three seconds is shown to the person as failed, and sent again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from sevenhop.channels.slack.settings import SlackSettings

log = logging.getLogger("sevenhop.channels.slack")

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0
TAKEN = frozenset({"interactive", "slash_commands"})


async def listen(settings: SlackSettings, take: Callable[[str, Any], str]) -> None:
    """
    Until cancelled; a lost connection is made again, by the client itself or by us.

    Args:
        take: (kind, payload) to what is answered at once.
    """
    assert settings.app_token is not None
    web = AsyncWebClient(token=settings.token.get_secret_value(), base_url=settings.base_url)
    client = SocketModeClient(
        app_token=settings.app_token.get_secret_value(), web_client=web, ping_interval=5, logger=_Quiet()
    )

    async def hear(client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        # Answered before anything else is done: three seconds are short.
        await client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
        if request.type in TAKEN:
            take(request.type, request.payload)

    client.socket_mode_request_listeners.append(hear)
    wait_s = FIRST_RETRY_S
    try:
        while True:
            try:
                await client.connect()  # type: ignore[no-untyped-call]
            except Exception as error:  # noqa: BLE001  the client raises whatever its parts raise
                log.warning(
                    "slack: no connection for buttons: %s; trying again in %.0f s, messages are not concerned",
                    type(error).__name__, wait_s,
                )  # fmt: skip
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, LONGEST_RETRY_S)
            else:
                log.info("slack: buttons work over Socket Mode")
                await asyncio.Event().wait()
    finally:
        await client.close()  # type: ignore[no-untyped-call]
        await client.aiohttp_client_session.close()


class _Quiet(logging.Logger):
    """The client's own log holds what people clicked, and addresses with tickets in them."""

    def __init__(self) -> None:
        super().__init__("sevenhop.channels.slack.socket")
        self.setLevel(logging.CRITICAL)
