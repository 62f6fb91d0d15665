"""
The simulated API server with a cluster in it, and a webhook that notes when bytes arrive: a process of its own.

It prints one line of JSON when it listens, then answers each line that it reads: ``{"rate": 500, "changes": 200,
"every_ms": 100}`` keeps up `rate` background changes a second, makes pods of that many workloads crash, one every
`every_ms`, and answers how long it took until the webhook read of each.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import random
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from bench.generate import TIME, deployment, node, pod
from sevenhop.simulation.clock import VirtualClock
from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.simulation.store import Store

_NAME = re.compile(r"model-(\d{5})")
_ARRIVES_WITHIN_S = 5.0
_MOST_AT_ONCE = 20
_KINDS = {"Node": "Node", "Pod": "Pod", "Deployment": "Deployment.apps", "ReplicaSet": "ReplicaSet.apps"}
GPUS = 2


class BenchCluster:
    """
    A store with nodes, vLLM Deployments whose pods all run, and pods that are no inference.

    Args:
        start: The time of everything that is created.
    """

    def __init__(self, start: datetime, *, nodes: int, deployments: int, replicas: int, others: int) -> None:
        self.store = Store(VirtualClock(start))
        self.nodes = nodes
        self.deployments = deployments
        self.replicas = replicas
        self._rng = random.Random(7)
        self._starting: dict[int, str] = {}
        self._version = 1
        self._extra: list[tuple[int, int]] = []
        for number in range(nodes):
            self._create(node(number))
        for of in range(deployments):
            for made in deployment(of, replicas, gpus=GPUS):
                self._create(made)
            for number in range(of * replicas, (of + 1) * replicas):
                self._create(self._pod(number, of))
        for number in range(others):
            of = number // 50
            if number % 50 == 0:
                for made in deployment(of, min(50, others - number), gpus=0):
                    self._create(made)
            self._create(pod(10_000_000 + number, of, gpus=0, node_name=f"node-{number % nodes:05}"))

    def change(self, spared: int) -> None:
        """One background change, mixed 80/15/5; workloads below `spared` are left alone."""
        self._version += 1
        of = self._rng.randrange(spared, self.deployments)
        number = of * self.replicas + self._rng.randrange(self.replicas)
        chance = self._rng.random()
        if chance < 0.95:
            if chance >= 0.80 and self._starting.pop(number, None) is None:
                self._starting[number] = datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            since = self._starting.get(number)
            self._update(self._pod(number, of, ready=since is None, started=since or TIME))
        elif self._extra and self._rng.random() < 0.5:
            gone, its = self._extra.pop()
            data = self._pod(gone, its)["metadata"]
            self.store.delete("Pod", data["namespace"], data["name"], grace_s=0)
        else:
            self._extra.append((20_000_000 + self._version, of))
            self._create(self._pod(*self._extra[-1]))

    def crash(self, of: int) -> None:
        """The first pod of a workload begins to crash in a loop."""
        self._version += 1
        self._update(self._pod(of * self.replicas, of, fails=True))

    def _pod(
        self, number: int, of: int, *, ready: bool = True, fails: bool = False, started: str = TIME
    ) -> dict[str, Any]:
        host = f"node-{number // 4 % self.nodes:05}"
        made = pod(
            number, of, gpus=GPUS, node_name=host, ready=ready, version=self._version, fails=fails, started=started
        )
        del made["metadata"]["resourceVersion"]  # whatever is there is replaced
        return made

    def _create(self, data: dict[str, Any]) -> None:
        self.store.create(_KINDS[data["kind"]], data)

    def _update(self, data: dict[str, Any]) -> None:
        self.store.update("Pod", data)


class Webhook:
    """Notes when the first message about each workload arrived, on the machine's monotonic clock, in seconds."""

    def __init__(self) -> None:
        self.arrived: dict[int, float] = {}
        self.url = ""

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_post("/", self._take)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
            yield
        finally:
            await runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        at = time.monotonic()
        # Of its own workload only: a message also names others, such as those that could give something up.
        own = _NAME.fullmatch(str(json.loads(body)["commonLabels"].get("inference_workload", "")))
        if own:
            self.arrived.setdefault(int(own[1]), at)
        return web.Response(status=204)


async def _measure(
    cluster: BenchCluster,
    webhook: Webhook,
    *,
    rate: float,
    changes: int,
    every_ms: float,
    patience_s: float = _ARRIVES_WITHIN_S,
) -> Any:
    """Milliseconds from each change to its message, in order; null for one that has not come by the end."""
    made: dict[int, float] = {}
    begin = time.monotonic()
    background = 0
    while len(made) < changes:
        await asyncio.sleep(0.002)
        elapsed_s = time.monotonic() - begin
        # A machine that cannot keep up makes fewer: the webhook in this process must have its turn.
        for _ in range(min(_MOST_AT_ONCE, int(rate * elapsed_s) - background)):
            cluster.change(spared=changes)
            background += 1
        if elapsed_s * 1000 >= every_ms * (len(made) + 1):
            of = len(made)
            made[of] = time.monotonic()
            cluster.crash(of)
    with contextlib.suppress(TimeoutError):  # what has not arrived by then is answered as null
        async with asyncio.timeout(patience_s):
            while len(webhook.arrived.keys() & made.keys()) < changes:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    took_s = time.monotonic() - begin
    found = [1000 * (webhook.arrived[of] - at) if of in webhook.arrived else None for of, at in made.items()]
    return {"latencies_ms": found, "rate": background / took_s}


async def _main(args: argparse.Namespace) -> None:
    start = datetime.fromisoformat(args.start)
    cluster = BenchCluster(
        start, nodes=args.nodes, deployments=args.deployments, replicas=args.replicas, others=args.others
    )
    webhook = Webhook()
    async with ApiServerSimulation(cluster.store, bookmark_s=5.0).serve() as url, webhook.serve():
        # A full collection of all these dictionaries stops this process for 0.2 s, and the webhook in it too.
        gc.disable()
        print(json.dumps({"url": url, "webhook": webhook.url}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await _measure(cluster, webhook, **json.loads(line))), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--start", required=True)
    for name in ("nodes", "deployments", "replicas", "others"):
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser


if __name__ == "__main__":
    asyncio.run(_main(_parser().parse_args()))
