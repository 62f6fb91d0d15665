"""
One PagerDuty incident per incident and episode: trigger, acknowledge and resolve, in the outbox's order.

The Events API knows our `dedup_key`: the same event again changes nothing that a person sees, so an attempt whose
outcome is in doubt is simply made again.
"""

from __future__ import annotations

import io
import json
from datetime import timedelta
from hashlib import sha256

import aiohttp
import msgspec

from sevenhop.channels.channel import (
    Delivery,
    DeliveryError,
    PermanentDeliveryError,
    RetryableDeliveryError,
    UncertainDeliveryError,
)
from sevenhop.channels.pagerduty.event import Step, dedup_key_of, event_of, gist_of, is_acknowledged, step_of
from sevenhop.channels.pagerduty.settings import PagerDutySettings
from sevenhop.channels.retry_after import retry_after_s
from sevenhop.channels.spec import Clock
from sevenhop.channels.text import cut, plain
from sevenhop.core.effects import Notify
from sevenhop.version import __version__

PATIENCE_S = 30.0
"""Between attempts after a 429 that names no time: what the API's page on limits asks for."""


class _Sent(msgspec.Struct, frozen=True, gc=False):
    """What the reference of a delivery says: with which key, and what was said last."""

    dedup_key: str
    key_print: str
    gist: str

    def __str__(self) -> str:
        return f"{self.dedup_key}|{self.key_print}|{self.gist}"

    @classmethod
    def parse(cls, reference: str) -> _Sent | None:
        parts = reference.split("|")
        return cls(*parts) if len(parts) == 3 else None


class PagerDutyChannel:
    """Keeps nothing but its connection."""

    def __init__(self, settings: PagerDutySettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        current = settings.routing_key.get_secret_value()
        former = [key.get_secret_value() for key in settings.former_routing_keys]
        self._current = current
        self._keys = {_print(key): key for key in (*former, current)}

    async def deliver(self, notify: Notify, *, uncertain: bool) -> Delivery:
        """See `Channel.deliver`; the reference is ``dedup_key|print of the key|digest of what was said``."""
        sent = _Sent.parse(notify.reference)
        if sent is not None and sent.dedup_key != dedup_key_of(notify):
            sent = None
        gist = gist_of(notify)
        step = step_of(notify.message)
        if sent is not None and sent.gist == gist and not notify.anew and not uncertain:
            return Delivery(reference=str(sent))
        key = self._keys.get(sent.key_print, self._current) if sent is not None else self._current
        if step is Step.ACKNOWLEDGE and sent is None:
            # An acknowledge of what PagerDuty does not know is dropped there.  Not so before a resolve: after an
            # attempt in doubt it may be resolved there already, and a trigger would open it again and wake somebody.
            await self._send(event_of(notify, Step.TRIGGER, key))
        if step is Step.TRIGGER and sent is not None and is_acknowledged(sent.gist):
            if not notify.anew:
                return Delivery(reference=str(sent))  # a quiet edit: whoever approved attends to it still
            # It was acknowledged for a run that has not helped, and a trigger of what is acknowledged wakes nobody.
            await self._send(event_of(notify, Step.RESOLVE, key))
        await self._send(event_of(notify, step, key))
        return Delivery(reference=str(_Sent(dedup_key_of(notify), _print(key), gist)))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _send(self, event: dict[str, object]) -> None:
        body = json.dumps(event, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json", "User-Agent": f"sevenhop/{__version__}"}
        try:
            async with self._open().post(
                f"{self._settings.base_url}/v2/enqueue", data=io.BytesIO(body), headers=headers, allow_redirects=False
            ) as answer:
                failure = _status_failure(answer.status, retry_after_s(answer.headers, self._clock()))
                if isinstance(failure, PermanentDeliveryError):
                    failure = PermanentDeliveryError(f"{failure}{await self._said(answer)}")
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            failure = _connection_failure(error)
        # Raised here, not above: the first error may hold what was sent.
        if failure is not None:
            raise failure

    async def _said(self, answer: aiohttp.ClientResponse) -> str:
        """PagerDuty's own words of a refusal, without our keys; empty if it has none."""
        try:
            told = json.loads(await answer.content.read(4_000))
        except (ValueError, aiohttp.ClientError):
            return ""
        if not isinstance(told, dict):
            return ""
        errors = told.get("errors")
        texts = [told.get("message"), *(errors if isinstance(errors, list) else ())]
        words = "; ".join(plain(text) for text in texts if isinstance(text, str) and text)
        for key in self._keys.values():
            words = words.replace(key, "…")
        return f": {cut(words, 200)}" if words else ""

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout_s = self._settings.timeout / timedelta(seconds=1)
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s), trust_env=True)
        return self._session


def _print(key: str) -> str:
    """Tells keys apart without showing them."""
    return sha256(f"sevenhop routing key {key}".encode()).hexdigest()[:12]


def _status_failure(status: int, retry_after: float | None) -> DeliveryError | None:
    if 200 <= status < 300:
        return None
    said = f"pagerduty: HTTP {status}"
    if status == 429:
        return RetryableDeliveryError(f"{said}: too many events for this key", retry_after or PATIENCE_S)
    if status in {408, 425, 503}:
        return RetryableDeliveryError(said, retry_after)
    if status >= 500:
        return UncertainDeliveryError(said)
    if 300 <= status < 400:
        return PermanentDeliveryError(f"{said}: the address redirects; check base_url")
    return PermanentDeliveryError(f"{said}: refused, check the routing key and base_url")


def _connection_failure(error: Exception) -> DeliveryError:
    kind = type(error).__name__
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError | UnicodeError):
        return PermanentDeliveryError("pagerduty: base_url is not an address that can be posted to")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return RetryableDeliveryError("pagerduty: the certificate of base_url is not trusted")
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return RetryableDeliveryError(f"pagerduty: cannot connect ({kind})")
    if isinstance(error, TimeoutError):
        return UncertainDeliveryError("pagerduty: no answer in time")
    return UncertainDeliveryError(f"pagerduty: the connection broke ({kind})")
