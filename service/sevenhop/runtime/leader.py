"""
Which of several replicas works: a Lease of coordination.k8s.io, as controllers of Kubernetes use it.

Other clocks are not trusted: a lease has run out when its record has not changed for its duration by our own clock.
Who holds it stops by itself before that.  Each change of hands begins a term, kept in an annotation, so that what an
earlier holder still says can be told apart (`scaled/terms.py`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec

from sevenhop.sources.kubernetes.api import ApiError, ApiServer, ConnectError, describe

log = logging.getLogger("sevenhop.leader")

TERM = "sevenhop.dev/term"

DURATION_S = 6.0
"""Another may take over after so long without a sign of life."""

RENEW_WITHIN_S = 4.0
"""Who could not renew for so long stops, at the latest a try of `RETRY_S` later: a second before another may begin."""

RETRY_S = 1.0

_FAILURES = (ApiError, ConnectError, aiohttp.ClientError, TimeoutError, OSError)


class LeaseLostError(Exception):
    """Somebody else works now, or soon."""


class _Meta(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, rename="camel"):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"


_leases = msgspec.json.Decoder(_Lease)


class Lease:
    """
    Args:
        place: ``namespace/name``.
        identity: Of this replica, such as its pod's name.
    """

    def __init__(
        self,
        api: ApiServer,
        place: str,
        identity: str,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(tz=UTC),
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self.namespace, self.name = place.split("/")
        self.identity = identity
        self._now = now
        self._monotonic = monotonic
        self._sleep = sleep
        self._seen: tuple[str | None, str | None] | None = None
        self._seen_at = 0.0
        self._renewed_at = 0.0
        self._is_held = False
        self._failure = ""

    async def acquire(self) -> int:
        """
        Wait until it is ours.

        Returns:
            Our term, higher than that of every holder before.
        """
        while True:
            try:
                term = await self._try()
            except _FAILURES as error:
                self._say(f"the lease {self.namespace}/{self.name} cannot be asked for: {self._describe(error)}")
                term = None
            if term is not None:
                log.info("this replica works now (lease %s/%s, term %d)", self.namespace, self.name, term)
                self._failure = ""
                return term
            await self._sleep(RETRY_S)

    async def hold(self) -> None:
        """
        Renew until cancelled.

        Raises:
            LeaseLostError: Another has it, or it could not be renewed in time.
        """
        while True:
            await self._sleep(min(RETRY_S, max(self._left_s(), 0.0)))
            try:
                async with asyncio.timeout(max(self._left_s(), RETRY_S)):
                    held = await self._try()
            except _FAILURES as error:
                self._say(f"the lease {self.namespace}/{self.name} is not renewed: {self._describe(error)}")
                held = 0
            if held is None:
                self._is_held = False
                raise LeaseLostError(f"another replica has the lease {self.namespace}/{self.name}")
            if held:
                self._failure = ""
            if self._left_s() <= 0:
                self._is_held = False
                raise LeaseLostError(
                    f"the lease {self.namespace}/{self.name} could not be renewed within {RENEW_WITHIN_S:g} s"
                )

    def _left_s(self) -> float:
        """Seconds until we have to stop, as long as nothing is renewed."""
        return RENEW_WITHIN_S - (self._monotonic() - self._renewed_at)

    async def release(self) -> None:
        """Let another one have it at once; fine if it is not ours."""
        if not self._is_held:
            return
        self._is_held = False
        try:
            lease = await self._get()
            if lease is not None and lease.spec.holder_identity == self.identity:
                lease.spec.holder_identity = ""
                await self._put("PUT", lease)
        except _FAILURES as error:
            log.debug("lease not released: %s", error)

    async def _try(self) -> int | None:
        """The term if it is ours now, else None."""
        asked_at = self._monotonic()
        lease = await self._get()
        if lease is None:
            fresh = _Lease(_Meta(name=self.name, namespace=self.namespace))
            return await self._take("POST", fresh, asked_at)
        spec = lease.spec
        if spec.holder_identity == self.identity and self._is_held:
            return await self._take("PUT", lease, asked_at)
        record = (spec.holder_identity, spec.renew_time)
        if record != self._seen:
            self._seen, self._seen_at = record, asked_at
        is_free = not spec.holder_identity or spec.holder_identity == self.identity
        duration_s = max(float(spec.lease_duration_seconds or DURATION_S), 1.0)
        if not is_free and asked_at - self._seen_at < duration_s:
            return None
        self._is_held = False
        return await self._take("PUT", lease, asked_at)

    async def _take(self, method: str, lease: _Lease, asked_at: float) -> int | None:
        stamp = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        term = _number(lease.metadata.annotations.get(TERM, ""))
        if not self._is_held:
            # The time makes it grow even if somebody has deleted the lease.
            term = max(term + 1, int(self._now().timestamp()))
            lease.spec.acquire_time = stamp
            lease.spec.lease_transitions = (lease.spec.lease_transitions or 0) + (method == "PUT")
        lease.metadata.annotations = {**lease.metadata.annotations, TERM: str(term)}
        lease.spec.holder_identity = self.identity
        lease.spec.lease_duration_seconds = int(DURATION_S)
        lease.spec.renew_time = stamp
        try:
            await self._put(method, lease)
        except ApiError as error:
            if error.status == 409:
                return None  # another was quicker
            raise
        self._is_held = True
        self._renewed_at = asked_at
        return term

    async def _get(self) -> _Lease | None:
        try:
            return _leases.decode(await self._api.read(f"{self._path()}/{self.name}", silence_s=RENEW_WITHIN_S))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def _put(self, method: str, lease: _Lease) -> None:
        path = self._path() if method == "POST" else f"{self._path()}/{self.name}"
        headers = {"Content-Type": "application/json"}
        body = msgspec.json.encode(lease)
        await self._api.read(path, {}, method=method, headers=headers, body=body, silence_s=RENEW_WITHIN_S)

    def _path(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    def _describe(self, error: Any) -> str:
        if isinstance(error, ApiError) and error.status == 403:
            return f"{error}; grant get, create and update on leases in {self.namespace}"
        return describe(error, self._api.base_url)

    def _say(self, text: str) -> None:
        if text != self._failure:
            log.warning("%s", text)
        self._failure = text


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
