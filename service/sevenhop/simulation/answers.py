"""The bodies that a request is answered with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import web

from sevenhop.simulation.store import Data


def answer(data: Any, code: int = 200) -> web.Response:
    """As JSON."""
    return web.Response(body=msgspec.json.encode(data), status=code, content_type="application/json")


def status_data(code: int, reason: str, message: str, causes: Sequence[str] = ()) -> Data:
    """A ``Status``, as the API server says that it refuses, and why."""
    return {
        **({"details": {"causes": [{"message": cause} for cause in causes]}} if causes else {}),
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def status(
    code: int, reason: str, message: str, headers: Mapping[str, str] | None = None, *, causes: Sequence[str] = ()
) -> web.Response:
    """A refusal, with its HTTP status code."""
    body = msgspec.json.encode(status_data(code, reason, message, causes))
    return web.Response(body=body, status=code, content_type="application/json", headers=headers)
