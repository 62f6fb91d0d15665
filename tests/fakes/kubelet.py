"""A kubelet as far as its Pod Resources API goes: a real gRPC server on a unix socket, and the bytes that it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc import aio

SERVICE, LIST = "v1.PodResourcesLister", "List"


def _number(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: bytes | str | int) -> bytes:
    """One protobuf field; numbers and names as in api.proto of the kubelet."""
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    data = value.encode() if isinstance(value, str) else value
    return _number(number << 3 | 2) + _number(len(data)) + data


def devices(resource: str, *ids: str) -> bytes:
    topology = field(3, field(1, field(1, 1)))
    return field(2, field(1, resource) + b"".join(field(2, each) for each in ids) + topology)


def claim(driver: str, device: str, cdi: str) -> bytes:
    resource = field(1, field(1, cdi)) + (field(2, driver) + field(3, "node") + field(4, device) if device else b"")
    return field(5, field(2, "claim") + field(3, "prod") + field(4, resource))


def pod(name: str, *contents: bytes, namespace: str = "prod") -> bytes:
    container = field(1, "main") + field(3, 7) + field(4, field(1, "memory") + field(2, 1 << 40)) + b"".join(contents)
    return field(1, field(1, name) + field(2, namespace) + field(3, container))


@asynccontextmanager
async def kubelet(socket: Path, answer: Callable[[], Any]) -> AsyncIterator[None]:
    """A server with the one method; `answer` gives bytes, raises, or waits."""

    async def handle(_request: bytes, context: Any) -> bytes:
        found = answer()
        if isinstance(found, bytes):
            return found
        if isinstance(found, float):
            await asyncio.sleep(found)
        await context.abort(found if not isinstance(found, float) else grpc.StatusCode.CANCELLED, "no")
        return b""

    server = aio.server()
    untyped: Any = grpc
    handlers = {LIST: untyped.unary_unary_rpc_method_handler(handle)}
    server.add_generic_rpc_handlers((untyped.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_insecure_port(f"unix://{socket}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(0)
