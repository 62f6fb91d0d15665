"""Why Redis does not take us, where waiting would not help: asked once, before anything starts."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import redis.asyncio as aioredis
from redis.exceptions import AuthenticationError, AuthorizationError, NoPermissionError, RedisError, ResponseError

from sevenhop.stores.redis_fence import ANSWER_WITHIN_S
from sevenhop.stores.store import StoreError

_UNTRUSTED = ("CERTIFICATE_VERIFY_FAILED",)
_OTHER_NAME = ("Hostname mismatch", "IP address mismatch")
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF")
_WANTS_CERTIFICATE = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE", "BAD_CERTIFICATE")
_ENDED = ("Connection reset by peer", "Connection closed by server", "reset by peer", "closed the connection")
_WANTS_PASSWORD = ("HELLO must be called", "NOAUTH", "Authentication required")

_NOT_HERE = "it does not speak TLS on this port; check redis.url (redis:// is without TLS)"


async def check(client: aioredis.Redis, url: str, ca: Path | None = None) -> None:
    """
    Ask once, by a client of its own, which is closed.

    Raises:
        StoreError: Redis will never take us as we are; see `why_refused`.
    """
    try:
        refused = await why_refused(client, url, ca)
    finally:
        await client.aclose()
    if refused:
        raise StoreError(refused)


async def why_refused(client: aioredis.Redis, url: str, ca: Path | None = None) -> str:
    """
    One line without a secret, with the setting to look at; empty where Redis takes us.

    Empty too where nobody answers, or not yet: for that one waits, and says so.
    """
    where = urlsplit(url).netloc.rpartition("@")[2]  # what stands before it is a secret
    try:
        if ca is not None:
            ssl.create_default_context(cafile=ca)
    except FileNotFoundError as error:
        return f"redis.ca: {ca}: {error.strerror}"
    except OSError as error:
        return f"redis.ca: {ca}: cannot be used: {error}"
    try:
        async with asyncio.timeout(2 * ANSWER_WITHIN_S):
            answer = client.ping()
            assert not isinstance(answer, bool)
            await answer
    except (RedisError, OSError, TimeoutError) as error:
        text = _words(error, url)
        if not text and url.startswith("rediss:") and await _answers_without_tls(url):
            text = _NOT_HERE
        return f"redis: {where}: {text}" if text else ""
    return ""


def _words(error: BaseException, url: str) -> str:
    said = f"{error} {error.__cause__ or ''} {error.__context__ or ''}"

    def has(words: tuple[str, ...]) -> bool:
        return any(word in said for word in words)

    if isinstance(error, AuthenticationError | ResponseError) and has(_WANTS_PASSWORD):
        return "it wants a password; check redis.password"
    if isinstance(error, AuthenticationError):
        return "it refuses the user or the password; check redis.password"
    if isinstance(error, AuthorizationError | NoPermissionError):
        return "the user may not do what is needed; check its ACL"
    if has(_UNTRUSTED):
        if has(_OTHER_NAME):
            return "its certificate is made for other names; check redis.url"
        return "its certificate is not trusted; check redis.ca"
    if url.startswith("rediss:"):
        if has(_WANTS_CERTIFICATE):
            return "it wants a client certificate, which is not supported"
        if has(_NO_TLS):
            return _NOT_HERE
        return ""
    if has(_ENDED):
        return "it ends the connection at our first word: it may want TLS; check redis.url (rediss://)"
    return ""


async def _answers_without_tls(url: str) -> bool:
    """A server without TLS takes our first word for the beginning of a line, and waits for its end."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 6379)
            try:
                writer.write(b"PING\r\n")
                return (await reader.read(5)).startswith((b"+PONG", b"-NOAU"))
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
