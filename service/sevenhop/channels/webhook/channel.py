"""Posts incidents as JSON to an address of yours."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
from datetime import timedelta

import aiohttp

from sevenhop.channels.channel import (
    Delivery,
    DeliveryError,
    PermanentDeliveryError,
    RetryableDeliveryError,
    UncertainDeliveryError,
)
from sevenhop.channels.retry_after import retry_after_s
from sevenhop.channels.spec import Clock
from sevenhop.channels.webhook.payload import payload_of
from sevenhop.channels.webhook.settings import WebhookSettings
from sevenhop.core.effects import Notify
from sevenhop.version import __version__

SIGNATURE = "X-Sevenhop-Signature"
DELIVERY = "X-Sevenhop-Delivery"

_FIXES = {
    401: "check the token in its url",
    403: "check the token in its url, and who may post there",
    404: "check the path of its url",
    405: "the address does not take POST",
    410: "the address was given up; remove the receiver or give it another url",
    413: "the address does not take a message of this size",
    415: "the address does not take JSON",
}


class WebhookChannel:
    """
    Sends each state once, and again where its arrival is in doubt.

    A webhook cannot be asked.  So each delivery has an id, the same on every attempt, in `X-Sevenhop-Delivery`,
    `Idempotency-Key` and the body: who must not act twice remembers it.
    """

    def __init__(self, settings: WebhookSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def deliver(self, notify: Notify, *, uncertain: bool) -> Delivery:  # noqa: ARG002
        body = json.dumps(payload_of(notify), separators=(",", ":")).encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"sevenhop/{__version__}",
            DELIVERY: notify.id,
            "Idempotency-Key": notify.id,
        }
        if self._settings.secret is not None:
            headers[SIGNATURE] = sign(body, self._settings.secret.get_secret_value())
        try:
            async with self._open().post(
                self._settings.url.get_secret_value(), data=io.BytesIO(body), headers=headers, allow_redirects=False
            ) as answer:
                failure = status_failure(answer.status, retry_after_s(answer.headers, self._clock()))
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            failure = _connection_failure(error)
        # Raised here, not above: the first error holds the address, and the address may hold a token.
        if failure is not None:
            raise failure
        return Delivery(reference="")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout_s = self._settings.timeout / timedelta(seconds=1)
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s), trust_env=True)
        return self._session


def sign(body: bytes, secret: str) -> str:
    """
    HMAC-SHA256 of the body as it is sent, in the form that GitHub's webhooks have.

    >>> sign(b"{}", "s")[:20]
    'sha256=143ca8d517ba1'
    """
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def status_failure(status: int, retry_after: float | None) -> DeliveryError | None:
    """
    What an HTTP status means for the delivery; None for any 2xx.

    408, 425, 429 and 503 say that nothing was done; after any other 5xx nobody knows.
    """
    if 200 <= status < 300:
        return None
    said = f"webhook: HTTP {status}"
    if status in {408, 425, 429, 503}:
        return RetryableDeliveryError(said, retry_after)
    if status >= 500:
        return UncertainDeliveryError(said)
    if 300 <= status < 400:
        return PermanentDeliveryError(f"{said}: the address redirects; give the receiver the final url")
    return PermanentDeliveryError(f"{said}: refused; {_FIXES.get(status, 'see the log of whoever listens there')}")


def _connection_failure(error: Exception) -> DeliveryError:
    """Says the kind of failure only: the error's own text holds the address."""
    kind = type(error).__name__
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError | UnicodeError):
        return PermanentDeliveryError("webhook: its url is not an address that can be posted to")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return RetryableDeliveryError("webhook: the certificate of its host is not trusted")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return RetryableDeliveryError("webhook: the name of its host is not found")
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return RetryableDeliveryError(f"webhook: cannot connect ({kind})")
    if isinstance(error, TimeoutError):
        return UncertainDeliveryError("webhook: no answer in time")
    return UncertainDeliveryError(f"webhook: the connection broke ({kind})")
