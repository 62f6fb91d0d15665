"""The calls to Slack's Web API, and what their failures mean for a delivery."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from sevenhop.channels.channel import (
    DeliveryError,
    PermanentDeliveryError,
    RetryableDeliveryError,
    UncertainDeliveryError,
)
from sevenhop.channels.retry_after import retry_after_s
from sevenhop.channels.slack.errors import bad_status, refusal
from sevenhop.channels.slack.settings import SlackSettings


class SlackApi:
    """One connection pool to Slack, opened with the first call."""

    def __init__(self, settings: SlackSettings) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None
        self._client: AsyncWebClient | None = None

    async def call(self, method: str, *, get: bool = False, **arguments: Any) -> dict[str, Any]:
        """
        Call a method.

        Args:
            get: By GET, as the reading methods want it.

        Raises:
            DeliveryError: Of the kind that fits.  It holds neither the token nor what was sent.
        """
        try:
            if get:
                response = await self._open().api_call(method, http_verb="GET", params=arguments)
            else:
                response = await self._open().api_call(method, json=arguments)
            return cast("dict[str, Any]", response.data)
        except Exception as error:
            failure = _failure(method, error)
            if failure is None:
                raise
        # Raised here, not above: the first error holds the request, and the request holds the token.
        raise failure

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        self._session = self._client = None

    def _open(self) -> AsyncWebClient:
        if self._client is None:
            settings = self._settings
            timeout_s = settings.timeout / timedelta(seconds=1)
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s))
            self._client = AsyncWebClient(
                token=settings.token.get_secret_value(),
                base_url=settings.base_url,
                session=self._session,
                # The client's own handlers send again what may have arrived.
                retry_handlers=[],
            )
        return self._client


def _failure(method: str, error: Exception) -> DeliveryError | None:
    if isinstance(error, SlackApiError):
        return _answered(method, error)
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return PermanentDeliveryError(f"slack: {method}: base_url is not an address that can be posted to")
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        # Nothing was sent.  The text of these names host and port only, never the request.
        return RetryableDeliveryError(f"slack: {method}: cannot connect to Slack ({type(error).__name__})")
    if isinstance(error, TimeoutError):
        return UncertainDeliveryError(f"slack: {method}: no answer in time")
    if isinstance(error, aiohttp.ClientError | SlackClientError | OSError):
        return UncertainDeliveryError(f"slack: {method}: the connection broke ({type(error).__name__})")
    if isinstance(error, UnicodeError) and not isinstance(error, UnicodeDecodeError):
        return PermanentDeliveryError(f"slack: {method}: base_url is not an address that can be posted to")
    if isinstance(error, AttributeError | UnicodeDecodeError | LookupError):
        # An answer that is no JSON object: slack_sdk trips over it.
        return UncertainDeliveryError(f"slack: {method}: an answer that is not Slack's")
    return None


def _answered(method: str, error: SlackApiError) -> DeliveryError:
    response = error.response
    status = int(getattr(response, "status_code", None) or getattr(response, "status", None) or 0)
    wait_s = retry_after_s(getattr(response, "headers", None))
    data = getattr(response, "data", None)
    if status == 429:
        return RetryableDeliveryError(f"slack: {method}: rate limited", wait_s)
    if isinstance(data, dict) and data.get("ok") is False and data.get("error"):
        return refusal(method, data["error"], wait_s, data.get("needed"))
    return bad_status(method, status, wait_s)
