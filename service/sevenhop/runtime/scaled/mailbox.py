"""
One answer to one question, left in Redis for whoever asked, on whichever worker.

For people only: it is not fenced, ends by itself, and nothing is decided by it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import redis.asyncio as aioredis
from redis.exceptions import RedisError

from sevenhop.stores.redis_fence import to_its_end

log = logging.getLogger("sevenhop.fleet")

LIVES_S = 120
_LOOK_S = 1.0
"""A wait of the server's; shorter than a client's patience with it."""
_AGAIN_S = 0.2


async def leave(client: aioredis.Redis, key: str, value: bytes, lives_s: int = LIVES_S) -> bool:
    """Put something down; False if Redis does not take it: then whoever waits asks again."""

    async def put() -> None:
        async with client.pipeline(transaction=True) as pipe:
            pipe.rpush(key, value)
            pipe.expire(key, lives_s)
            await pipe.execute()

    try:
        await to_its_end(put())
    except (RedisError, OSError, TimeoutError) as error:
        log.warning("an answer could not be left for those who asked: %s", type(error).__name__)
        return False
    return True


async def clear(client: aioredis.Redis, key: str) -> None:
    """Take away what was put down for an earlier one who asked the same; without Redis it stays."""
    with contextlib.suppress(RedisError, OSError):
        asked: Any = client.delete(key)
        await to_its_end(asked)


async def wait_for(client: aioredis.Redis, key: str, seconds: float) -> bytes:
    """
    What was put down first; it stays there for others who wait for the same.

    Raises:
        TimeoutError: Nothing was there within `seconds`.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0:
        try:
            asked: Any = client.blmove(key, key, min(left, _LOOK_S), "LEFT", "LEFT")  # type: ignore[arg-type]
            found: bytes | None = await to_its_end(asked)
        except (RedisError, OSError) as error:
            log.debug("waiting for an answer: %s", error)  # said loudly by the fence
            await asyncio.sleep(_AGAIN_S)
            continue
        if found is not None:
            return found
    raise TimeoutError
