"""Reading what somebody posts to us: all of it, in however many pieces it comes, and never more than is meant."""

from __future__ import annotations

import asyncio
from typing import Any

PATIENCE_S = 10.0
"""Who sends slower than this holds a connection, and is not heard."""


async def read_body(request: Any, most: int) -> bytes:
    """
    The body of an aiohttp request, up to one byte more than `most`: longer ones show by that.

    Raises:
        TimeoutError: It does not come.
    """
    parts: list[bytes] = []
    room = most + 1
    async with asyncio.timeout(PATIENCE_S):
        while room > 0 and (part := await request.content.read(room)):
            parts.append(part)
            room -= len(part)
    return b"".join(parts)
