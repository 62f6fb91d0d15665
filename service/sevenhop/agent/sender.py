"""Sends what waits to the service, with the pod's own token; what it does not take yet waits on."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import aiohttp

from sevenhop.agent.buffer import Buffer
from sevenhop.core.events import GpusSampled, XidSeen
from sevenhop.core.gpu_wire import MSGPACK, VERSION, Batch, encode

log = logging.getLogger("sevenhop.agent")

PATH = "/v1/gpu-samples"
TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")

MAX_BATCH = 256 * 1024
"""Of our own encoding; the service takes 1 MiB."""

CALL_S = 15.0
FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 30.0

REFUSED_S = 60.0
"""Who is refused (401, 403, 404) is asked again so often: somebody has to mend it first."""


class Sender:
    """
    Attributes:
        sent: Events that the service took.
        rejected: Events that the service will never take (400, 413): let go, or they would block those behind them.
        problem: Why nothing goes out now; empty while it does.
    """

    def __init__(
        self,
        url: str,
        node: str,
        buffer: Buffer,
        clock: Callable[[], datetime],
        *,
        token: Path = TOKEN,
        ca: Path | None = None,
        version: str = "",
        call_s: float = CALL_S,
        rng: random.Random | None = None,
    ) -> None:
        self._url = url.rstrip("/") + PATH
        self._node = node
        self._buffer = buffer
        self._clock = clock
        self._token = token
        self._ca = ca
        self._version = version
        self._call_s = call_s
        self._rng = rng or random.Random()  # noqa: S311  spreads retries
        self._woken = asyncio.Event()
        self._failures = 0
        self.sent = 0
        self.rejected = 0
        self.problem = ""

    def wake(self) -> None:
        """Something waits."""
        self._woken.set()

    async def run(self) -> None:
        """Send until cancelled."""
        trusted = ssl.create_default_context(cafile=str(self._ca)) if self._ca else True
        connector = aiohttp.TCPConnector(limit=1, ssl=trusted)
        timeout = aiohttp.ClientTimeout(total=self._call_s)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
            while True:
                if not len(self._buffer):
                    await self._woken.wait()
                self._woken.clear()
                while len(self._buffer):
                    pause = await self._send_one(session)
                    if pause:
                        await asyncio.sleep(pause)

    async def _send_one(self, session: aiohttp.ClientSession) -> float:
        """Send the oldest; returns how long to wait before the next."""
        events = self._buffer.next_batch(MAX_BATCH)
        batch = Batch(
            version=VERSION,
            node=self._node,
            agent=self._version,
            sent_at=self._clock(),
            dropped=sum(self._buffer.dropped.values()),
            samples=tuple(event for event in events if isinstance(event, GpusSampled)),
            xids=tuple(event for event in events if isinstance(event, XidSeen)),
        )
        try:
            # Read each time: the kubelet renews it.
            token = self._token.read_text("utf-8").strip()
            headers = {"Authorization": f"Bearer {token}", "Content-Type": MSGPACK}
            async with session.post(self._url, data=encode(batch), headers=headers, allow_redirects=False) as answer:
                status, why = answer.status, (await answer.content.read(300)).decode("utf-8", "replace").strip()
        except OSError as error:  # aiohttp's connection errors are among them, and the token's file
            return self._failed(f"the service cannot be reached: {error.strerror or type(error).__name__}")
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return self._failed(f"the service cannot be reached: {type(error).__name__}")
        if status in (200, 202, 204):
            self._buffer.acknowledge(events)
            self.sent += len(events)
            self._failures = 0
            self.problem = ""
            return 0.0
        line = f"the service answers {status}: {why.splitlines()[0] if why else 'no reason given'}"
        if status in (400, 413, 415, 422):
            self._buffer.acknowledge(events)
            self.rejected += len(events)
            self.problem = f"{line}; let go"
            return FIRST_RETRY_S
        if status in (401, 403, 404, 405):
            self.problem = line
            return self._rng.uniform(REFUSED_S / 2, REFUSED_S)
        return self._failed(line)

    def _failed(self, problem: str) -> float:
        self.problem = problem
        bound = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(self._failures, 10))
        self._failures += 1
        return self._rng.uniform(bound / 2, bound)
