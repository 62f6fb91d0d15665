"""The HTTP door: what it says of itself, and what it refuses to start with."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from sevenhop.web import server as server_module
from sevenhop.web.listen import parse_listen
from sevenhop.web.server import WebError, WebServer
from tests.unit.runtime.harness import until
from tests.unit.web.pairs import FIRST, SECOND, Pair


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


class Files:
    """Where a certificate and its key lie; each writing has a later time."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self._writings = 0

    def write(self, *, certificate: Pair | None = None, key: Pair | None = None) -> None:
        for file, text in ((self.certificate, certificate and certificate.certificate), (self.key, key and key.key)):
            if text is not None:
                file.write_text(text)
                self._writings += 1
                os.utime(file, (self._writings, self._writings))


def shown_by(address: str) -> bytes:
    """The certificate that a client is shown, in DER."""
    host, port = address.removeprefix("https://").split(":")
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port)), timeout=30))


@asynccontextmanager
async def looking_often(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The server, looking for renewed certificates all the time."""
    monkeypatch.setattr(server_module, "RELOAD_EVERY_S", 0.001)
    task = asyncio.create_task(server.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        await server.close()


async def test_a_renewal_that_is_half_done_leaves_the_old_certificate_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Between the new certificate and its key clients are served as before; with both, by the new one."""
    caplog.set_level("INFO", "sevenhop.web")
    files = Files(tmp_path)
    files.write(certificate=FIRST, key=FIRST)
    server = WebServer("127.0.0.1:0", certificate=files.certificate, key=files.key)
    await server.start()
    async with looking_often(server, monkeypatch):
        files.write(certificate=SECOND)
        await until(lambda: "the old one stays" in caplog.text)
        shown = await asyncio.to_thread(shown_by, server.address)
        assert shown == ssl.PEM_cert_to_DER_cert(FIRST.certificate)

        files.write(key=SECOND)
        await until(lambda: "the renewed certificate is used" in caplog.text)
        shown = await asyncio.to_thread(shown_by, server.address)
        assert shown == ssl.PEM_cert_to_DER_cert(SECOND.certificate)


async def test_a_renewal_between_start_and_the_first_look_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other parts may take their time in between; the next renewal would come after the certificate has run out."""
    files = Files(tmp_path)
    files.write(certificate=FIRST, key=FIRST)
    server = WebServer("127.0.0.1:0", certificate=files.certificate, key=files.key)
    await server.start()
    files.write(certificate=SECOND, key=SECOND)
    async with looking_often(server, monkeypatch):
        renewed = ssl.PEM_cert_to_DER_cert(SECOND.certificate)
        async with asyncio.timeout(30):
            while await asyncio.to_thread(shown_by, server.address) != renewed:  # noqa: ASYNC110  a look from outside
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("listen", ["", "8080", "host", "host:port", "host:99999", "host:-1"])
def test_what_is_no_address(listen: str) -> None:
    """It says what is expected."""
    with pytest.raises(ValueError, match="expected host:port"):
        parse_listen(listen)
