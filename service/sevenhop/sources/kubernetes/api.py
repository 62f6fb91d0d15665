"""Requests to one API server: authentication that renews itself, and answers that say what went wrong."""

from __future__ import annotations

import asyncio
import email.utils
import ssl
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import aiohttp
import msgspec

from sevenhop.version import __version__

USER_AGENT = f"sevenhop/{__version__}"


class ConnectError(Exception):
    """The API server cannot be used; one line that says why and what to do about it."""


class ApiError(Exception):
    """
    The API server answered with an error.

    Attributes:
        status: HTTP status, or the code of a Status object inside a stream.
        reason: Kubernetes' own word, such as ``Expired`` or ``Forbidden``; empty if it gave none.
        retry_after_s: Seconds that the server asks to wait, if it does.
        causes: Messages of ``details.causes``: which budget keeps a pod, which field is wrong.
    """

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        retry_after_s: float | None = None,
        causes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message or f"HTTP {status}")
        self.causes = causes
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s

    @property
    def is_gone(self) -> bool:
        """The resourceVersion or continue token is too old: list again."""
        return self.status == 410 or self.reason in ("Expired", "Gone")


class MalformedAnswerError(Exception):
    """The answer is not what the API promises; the message says where, never what stood there."""


class _StatusCause(msgspec.Struct):
    message: str = ""


class _StatusDetails(msgspec.Struct, rename="camel"):
    retry_after_seconds: float = 0
    causes: list[_StatusCause] | None = None


class _Status(msgspec.Struct):
    """meta/v1 Status, the body of an error and the object of an ERROR line."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _StatusDetails | None = None


_status_decoder = msgspec.json.Decoder(_Status)


def error_from_status(body: bytes | msgspec.Raw, status: int = 500, retry_after: str = "") -> ApiError:
    """
    The error that a Status object describes; `status` and `retry_after` come from HTTP, where there is any.
    """
    try:
        said = _status_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        said = _Status()  # a proxy's HTML page, or nothing: the HTTP status has to do
    wait_s = _parse_retry_after(retry_after)
    if wait_s is None and said.details is not None and said.details.retry_after_seconds > 0:
        wait_s = said.details.retry_after_seconds
    causes = (said.details.causes or ()) if said.details is not None else ()
    told = tuple(cause.message[:500] for cause in causes[:5] if cause.message)
    return ApiError(said.code or status, said.reason, said.message[:500], wait_s, told)


def _parse_retry_after(text: str) -> float | None:
    """Seconds, from either form of the header (RFC 9110 §10.2.3)."""
    text = text.strip()
    if not text:
        return None
    if text.isdecimal():
        return min(float(text), 3600.0)
    try:
        at = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return min(max(0.0, (at - datetime.now(UTC)).total_seconds()), 3600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """
    How to reach an API server and who we are; replaced as a whole when it is renewed.

    Attributes:
        headers: Sent with every request; holds the token, so it is never printed.
        ssl: None over plain HTTP.
        max_age_s: Load again when older: a service account's token file changes under our feet.
    """

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ssl: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    max_age_s: float | None = None


class _Request(NamedTuple):
    method: str
    path: str
    params: Mapping[str, str] | None
    headers: Mapping[str, str]
    body: bytes | None
    silence_s: float


class ApiServer:
    """
    One API server over raw HTTP.

    A request that is refused with 401 is sent once more with access loaded anew (rotated token file, exec plug-in,
    rotated client certificate); many refused at once cause one load.
    """

    def __init__(
        self,
        access: Access,
        load: Callable[[], Awaitable[Access]] | None = None,
        *,
        connect_s: float = 10.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._load = load
        self._connect_s = connect_s
        self._monotonic = monotonic
        self._loaded_at = monotonic()
        self._generation = 0
        self._loading = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None
        self.renewals = 0
        self.renewal_error = ""

    @property
    def base_url(self) -> str:
        return self._access.base_url

    @property
    def bearer_token(self) -> str:
        """The token that we authenticate with, for passing on who we are; empty with a client certificate."""
        scheme, _, token = self._access.headers.get("Authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def open(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        silence_s: float = 60.0,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """
        An answer whose status is good, its body not yet read.

        Args:
            silence_s: The body may pause this long between two pieces; there is no limit on the whole.

        Raises:
            ApiError: Any other status.
            aiohttp.ClientError, TimeoutError, OSError: It could not be reached, or went away.
        """
        response = await self._request(_Request(method, path, params, headers or {}, body, silence_s))
        try:
            yield response
        finally:
            response.release()

    async def read(self, path: str, params: Mapping[str, str] | None = None, **options: Any) -> bytes:
        """The whole body; arguments and errors as `open`."""
        async with self.open(path, params, **options) as response:
            return await response.read()

    async def check(self) -> str:
        """
        Ask for the server's version, such as ``v1.36.3``.

        Raises:
            ConnectError: It cannot be reached, or does not take us.
        """
        try:
            body = await self.read("/version", silence_s=self._connect_s)
        except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ConnectError(describe(error, self.base_url)) from None
        try:
            return msgspec.json.decode(body, type=dict[str, str]).get("gitVersion", "unknown")
        except msgspec.DecodeError:
            raise ConnectError(
                f"{self.base_url} answers, but not as a Kubernetes API server; check the server of this context"
            ) from None

    async def _request(self, request: _Request) -> aiohttp.ClientResponse:
        max_age = self._access.max_age_s
        if max_age is not None and self._monotonic() - self._loaded_at > max_age:
            await self._renew(self._generation)
        for attempt in (0, 1):
            generation = self._generation
            response = await self._send(request)
            if response.status < 300:
                return response
            try:
                answer = await response.content.read(65536)
            finally:
                response.release()
            error = error_from_status(answer, response.status, response.headers.get("Retry-After", ""))
            if response.status != 401 or attempt or not await self._renew(generation):
                raise error
        raise AssertionError("the second attempt returns or raises")

    async def _send(self, request: _Request) -> aiohttp.ClientResponse:
        access = self._access
        if self._session is None:
            # limit=0: every watch holds a connection for minutes, and one more kind must never wait for another.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={
                    "User-Agent": USER_AGENT,
                    "Accept": "application/json",
                    # Compression would cost us more than it saves inside a cluster.
                    "Accept-Encoding": "identity",
                },
            )
        options: dict[str, Any] = {} if access.ssl is None else {"ssl": access.ssl}
        if access.server_name:
            options["server_hostname"] = access.server_name
        return await self._session.request(
            request.method,
            access.base_url + request.path,
            params=request.params,
            headers={**access.headers, **request.headers},
            data=request.body,
            proxy=access.proxy,
            allow_redirects=False,  # a redirect would carry the token elsewhere
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_s, sock_read=request.silence_s),
            **options,
        )

    async def _renew(self, generation: int) -> bool:
        """
        Load access anew unless somebody did since `generation`; False if that is not possible.
        """
        if self._load is None:
            return False
        async with self._loading:
            if generation != self._generation:
                return True
            try:
                self._access = await self._load()
            except ConnectError as error:
                self.renewal_error = str(error)
                return False
            finally:
                self._loaded_at = self._monotonic()
            self.renewal_error = ""
            self._generation += 1
            self.renewals += 1
            return True


def environment_proxy(url: str) -> str | None:
    """The proxy that the environment names for `url` (``HTTPS_PROXY``, ``NO_PROXY``), as kubectl reads it."""
    parts = urlsplit(url)
    if not parts.hostname or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def describe(error: Exception, base_url: str = "") -> str:
    """
    One line for a failed request: what, and what to do.  Holds no credential and no time, so equal causes read equal.
    """
    where = base_url or "the API server"
    if isinstance(error, ApiError):
        return _describe_answer(error, where)
    if isinstance(error, MalformedAnswerError):
        return f"{where}: {error}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return (
            f"TLS: the certificate of {where} is not trusted ({_tls_reason(error.certificate_error)}); "
            "check certificate-authority and tls-server-name of this context"
        )
    if isinstance(error, aiohttp.ClientConnectorSSLError | ssl.SSLError):
        inner = error.os_error if isinstance(error, aiohttp.ClientConnectorSSLError) else error
        return (
            f"TLS with {where} failed ({_tls_reason(inner)}); check the scheme, port and certificates of this context"
        )
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy for {where} cannot be reached; check proxy-url and HTTPS_PROXY"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"{where}: host name not found; check the server of this context and your network"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{where} cannot be reached ({error.os_error.strerror or type(error.os_error).__name__}); is it up?"
    if isinstance(error, TimeoutError):
        return f"{where} did not answer in time; is it up, and is the network between open?"
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError | ConnectionError):
        return f"{where} closed the connection"
    return f"{where}: {type(error).__name__}"


def _describe_answer(error: ApiError, where: str) -> str:
    said = f": {error}" if str(error) != f"HTTP {error.status}" else ""
    if error.status == 401:
        return f"{where} refuses our credentials (401): the token has expired or is wrong; log in again"
    if error.status == 403:
        return f"{where} forbids it (403){said}; grant get, list and watch"
    if error.status == 429:
        return f"{where} throttles us (429)"
    return f"{where} answered {error.status}{said}"


def _tls_reason(error: BaseException) -> str:
    verify = getattr(error, "verify_message", "")
    return str(verify or getattr(error, "reason", "") or type(error).__name__)
