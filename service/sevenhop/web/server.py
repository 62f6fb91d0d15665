"""
One HTTP(S) server; the routes are given.

    GET /healthz   200 while the process can go on; 503 and why, when it should be started anew
    GET /readyz    200 once the cluster was listed and state is stored; 503 and why, until then
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from sevenhop.web.listen import parse_listen

log = logging.getLogger("sevenhop.web")

Handler = Callable[[Any], Any]

MAX_BODY = 1024 * 1024
CLOSE_WITHIN_S = 0.5
RELOAD_EVERY_S = 60.0
"""So often a renewed certificate is picked up."""


class WebError(Exception):
    """It cannot listen; one line with the place and the fix."""


class WebServer:
    """
    Args:
        listen: ``host:port``; port 0 takes a free one.
        certificate, key: PEM files; both or neither.
        posts, gets: Path to handler.
        healthy, ready: Empty if all is well, else why not.
    """

    def __init__(
        self,
        listen: str,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        posts: Mapping[str, Handler] | None = None,
        gets: Mapping[str, Handler] | None = None,
        healthy: Callable[[], str] = lambda: "",
        ready: Callable[[], str] = lambda: "",
    ) -> None:
        self._host, self._port = parse_listen(listen)
        self._files = (certificate, key)
        self._posts = dict(posts or {})
        self._gets = dict(gets or {})
        self._healthy = healthy
        self._ready = ready
        self._runner: web.AppRunner | None = None
        self._context: ssl.SSLContext | None = None
        self._stamp: list[float] = []  # of the files that are used
        self.address = ""

    async def start(self) -> None:
        """
        Raises:
            WebError: The address is taken, or a certificate cannot be used.
        """
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        for path, handler in self._posts.items():
            app.router.add_post(path, handler)
        for path, handler in self._gets.items():
            app.router.add_get(path, handler)
        self._stamp = _stamp(self._files)  # before they are read: what is replaced meanwhile is read again
        self._context = context = _tls(*self._files)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_WITHIN_S)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port, ssl_context=context).start()
        except OSError as error:
            await self._runner.cleanup()
            why = error.strerror or str(error)
            raise WebError(f"cannot listen on {self._host}:{self._port}: {why}; choose another web.listen") from None
        host, port = self._runner.addresses[0][:2]
        scheme = "https" if context is not None else "http"
        self.address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        log.info("listening on %s", self.address)

    async def run(self) -> None:
        """Pick up renewed certificates until cancelled."""
        while True:
            await asyncio.sleep(RELOAD_EVERY_S)
            stamp = _stamp(self._files)
            if self._context is None or stamp == self._stamp:
                continue
            certificate, key = self._files
            assert certificate is not None
            try:
                # OpenSSL drops the key in use as soon as a certificate that does not fit it is loaded, as in the
                # middle of a renewal: so the pair is tried elsewhere first.
                _tls(certificate, key)
                self._context.load_cert_chain(certificate, key)
            except (WebError, OSError) as error:  # ssl.SSLError is an OSError
                log.error("the renewed certificate cannot be used, the old one stays: %s", error)
            else:
                self._stamp = stamp
                log.info("the renewed certificate is used")

    async def _healthz(self, _request: web.Request) -> web.Response:
        return _said(self._healthy())

    async def _readyz(self, _request: web.Request) -> web.Response:
        return _said(self._ready())

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


def _tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one
        why = getattr(error, "reason", None) or error.strerror or type(error).__name__
        raise WebError(f"{certificate}: the certificate or its key cannot be used: {why}") from None
    return context


def _stamp(files: tuple[Path | None, Path | None]) -> list[float]:
    stamps = []
    for file in files:
        try:
            stamps.append(file.stat().st_mtime if file is not None else 0.0)
        except OSError:  # in the middle of being replaced
            stamps.append(-1.0)
    return stamps


def _said(why_not: str) -> web.Response:
    return web.Response(status=503 if why_not else 200, text=f"{why_not or 'ok'}\n")
