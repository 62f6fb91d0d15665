"""The HTTP door: what it says of itself, and what it refuses to start with."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from sevenhop.web.listen import parse_listen
from sevenhop.web.server import WebError, WebServer


async def got(address: str, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"{address}{path}") as answer:
        return answer.status, await answer.text()


async def test_health_and_readiness_are_two_things() -> None:
    """Not ready yet is no reason to be started anew."""
    server = WebServer("127.0.0.1:0", ready=lambda: "Pod: not listed yet")
    await server.start()
    try:
        assert await got(server.address, "/healthz") == (200, "ok\n")
        assert await got(server.address, "/readyz") == (503, "Pod: not listed yet\n")
    finally:
        await server.close()


async def test_given_routes_are_served() -> None:
    """And nothing else is."""

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    server = WebServer("127.0.0.1:0", gets={"/hello": hello})
    await server.start()
    try:
        assert await got(server.address, "/hello") == (200, "hello")
        assert (await got(server.address, "/decide"))[0] == 404
    finally:
        await server.close()


async def test_an_address_that_is_taken() -> None:
    """One line with the place and the fix."""
    first = WebServer("127.0.0.1:0")
    await first.start()
    try:
        second = WebServer(first.address.removeprefix("http://"))
        with pytest.raises(WebError, match=r"cannot listen on 127\.0\.0\.1:\d+: .*web\.listen"):
            await second.start()
    finally:
        await first.close()


@pytest.mark.parametrize("content", [None, "not a certificate"])
async def test_a_certificate_that_cannot_be_used(tmp_path: Path, content: str | None) -> None:
    """A missing or broken certificate stops the start: never plain HTTP where TLS was asked for."""
    certificate = tmp_path / "tls.crt"
    if content is not None:
        certificate.write_text(content)
    with pytest.raises(WebError, match="cannot be used"):
        await WebServer("127.0.0.1:0", certificate=certificate, key=certificate).start()


@pytest.mark.parametrize("listen", ["", "8080", "host", "host:port", "host:99999", "host:-1"])
def test_what_is_no_address(listen: str) -> None:
    """It says what is expected."""
    with pytest.raises(ValueError, match="expected host:port"):
        parse_listen(listen)
