"""A webhook on this host, and what it was told."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Inbox:
    """A webhook: every delivery it was sent, in order, with the moment of each."""

    def __init__(self) -> None:
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with inbox.lock:
                    inbox.deliveries.append((time.monotonic(), self.headers["X-Sevenhop-Delivery"], body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.lock = threading.Lock()
        self.deliveries: list[tuple[float, str, dict[str, Any]]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def ids(self) -> list[str]:
        with self.lock:
            return [delivery for _, delivery, _ in self.deliveries]

    def about(self, node: str) -> list[dict[str, Any]]:
        """Bodies of all deliveries about this node."""
        with self.lock:
            return [body for _, _, body in self.deliveries if body["incident"]["cause"] == f"node:{node}"]

    def told(self) -> list[tuple[str, str]]:
        """(node, status) of each delivery, each id once."""
        seen: dict[str, tuple[str, str]] = {}
        with self.lock:
            for _, delivery, body in self.deliveries:
                seen.setdefault(delivery, (body["incident"]["cause"].removeprefix("node:"), body["status"]))
        return list(seen.values())

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
