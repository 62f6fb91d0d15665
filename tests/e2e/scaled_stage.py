"""
The stage of the failover tests: real Kafka and Redis, workers as processes, a webhook that remembers, and an edge
that the test plays itself.

What an edge would see is produced here: nodes that are ready or not.  Each change of a node is one message, so lost
and doubled ones can be counted.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiokafka  # noqa: F401  before the edge's thread and a test import it at the same time, which one of them would lose

from sevenhop.cli.cluster import ask_service
from sevenhop.cli.output import UsageError
from sevenhop.core.events import Event
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.codec import Record
from sevenhop.runtime.scaled.edge import Edge
from sevenhop.runtime.scaled.signing import edge_key, signing_as_edge
from sevenhop.runtime.scaled.topics import prepare
from sevenhop.settings_scaled import KafkaSettings
from tests.builders import Feed, node
from tests.e2e.inbox import Inbox
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 6

RULE = """\
id: node-not-ready
status: experimental
subject: node
expr: node.ready == false
for: 0s
severity: warning
annotations:
  summary: "{{ node }} is not ready"
description: A node is not ready, and what runs there may not answer any more.
false_positives: [A node that is being restarted on purpose.]
triage: |
  1. Look at the node.
"""


class WorkerProcess:
    """
    ``sevenhop run --role worker``.

    Attributes:
        is_wanted: Whether a supervisor is to start it again when it has ended.
    """

    def __init__(self, folder: Path, config: Path) -> None:
        self.is_wanted = False
        folder.mkdir(parents=True)
        self.state = folder / "state"
        self.log = folder / "worker.log"
        self._config = config
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def code(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        command = [sys.executable, "-m", "sevenhop.cli.main", "run", "--role", "worker"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--config", str(self._config), "--state", str(self.state)],
                cwd=ROOT, stdout=log, stderr=log, env=os.environ | {"NO_COLOR": "1"},
            )  # fmt: skip
        self.is_wanted = True  # not before: the supervisor would see the process that has ended, and start another

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """kill -9; it stays away until `start`."""
        self.is_wanted = False
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        if self._process is not None:
            self._process.wait()

    def stop(self) -> None:
        self.is_wanted = False
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    def partitions(self) -> set[int]:
        """Those that it has rebuilt and serves; none while it cannot be asked."""
        return {int(number) for number, row in self.report().get("partitions", {}).items() if row["ready"]}

    def stalled(self) -> bool:
        """Whether it says that it takes no input now."""
        return bool(self.report().get("stalled", "unknown"))

    def report(self) -> dict[str, Any]:
        """What `sevenhop doctor` would show; empty while it cannot be asked."""
        if self.code is not None:
            return {}
        try:
            return dict(ask_service(self.state, "GET", "/doctor") or {})
        except (UsageError, OSError):
            return {}

    def tail(self, lines: int = 25) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""


@dataclass
class PlayedEdge:
    """
    An edge in a thread of its own, whose source is the test.

    Attributes:
        key: Of the workers, from which its own is made; empty where nothing is signed.
    """

    cluster: str
    kafka: KafkaSettings
    term: int
    feed: Feed = field(default_factory=Feed)
    edge: Edge | None = None
    key: str = ""

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._queue: asyncio.Queue[list[Event]] = asyncio.Queue()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"edge {self.cluster}", daemon=True)
        self._thread.start()

    def tell(self, events: Sequence[Event]) -> None:
        self._loop.call_soon_threadsafe(self._queue.put_nowait, list(events))

    def list_all(self, nodes: Mapping[str, bool]) -> None:
        """The first list: these nodes, ready or not, and nothing else in the cluster."""
        found = self.feed.applied(*(node(name, ready=ready) for name, ready in nodes.items()))
        self.tell([*found, *self.feed.synced()])

    def set_ready(self, name: str, *, ready: bool) -> None:
        self.tell(self.feed.applied(node(name, ready=ready)))

    def _signed(self, cluster: str, record: Record) -> Record:
        return signing_as_edge(edge_key(self.key, cluster))(cluster, record) if self.key else record

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)

    async def _told(self, emit: Callable[[list[Event]], Any]) -> None:
        while True:
            await emit(await self._queue.get())

    def _run(self) -> None:
        async def main() -> None:
            topics = await prepare(self.kafka)
            self.edge = Edge(self.cluster, self.term, self.kafka, topics, Clock(), sign=self._signed)
            played = self

            class Source:
                async def run(self, emit: Callable[[list[Event]], Any]) -> None:
                    await played._told(emit)

            await self.edge.run([Source()])

        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(main())
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._failure = error
            raise


class Stage:
    """Everything, started."""

    def __init__(self, folder: Path, kafka: Kafka, redis: Redis, prefix: str, clusters: Sequence[str]) -> None:
        self.folder = folder
        self.redis = redis
        self.kafka = kafka
        self.inbox = Inbox()
        self.kafka_settings = KafkaSettings(
            servers=kafka.servers.split(","), prefix=prefix, partitions=PARTITIONS, replicas=kafka.replicas
        )
        rules = folder / "discovery"
        rules.mkdir()
        (rules / "node-not-ready.yaml").write_text(RULE)
        self.config = folder / "sevenhop.yaml"
        self.config.write_text(
            json.dumps(
                {
                    "rules": [str(rules)],
                    "incidents": {"group_wait": "0s", "recall_wait": "1s", "reopen_within": "0s", "flap_limit": 1000},
                    "receivers": {"hook": {"type": "webhook", "url": self.inbox.url}},
                    "runtime": {"no_progress": "60s", "edge_silence": "120s"},
                    "kafka": {
                        "servers": kafka.servers.split(","),
                        "prefix": prefix,
                        "partitions": PARTITIONS,
                        "replicas": kafka.replicas,
                    },
                    "redis": {"url": redis.url},
                }
            )
        )
        self.workers: list[WorkerProcess] = []
        self.edges = {cluster: PlayedEdge(cluster, self.kafka_settings, int(time.time())) for cluster in clusters}
        self._closing = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, name="supervisor", daemon=True)
        self._supervisor.start()

    def _supervise(self) -> None:
        """Starts a worker that has ended by itself, as Kubernetes does."""
        while not self._closing.wait(0.2):
            for worker in list(self.workers):
                if worker.is_wanted and worker.code is not None:
                    worker.start()

    def add_worker(self) -> WorkerProcess:
        worker = WorkerProcess(self.folder / f"worker-{len(self.workers)}", self.config)
        self.workers.append(worker)
        worker.start()
        return worker

    def served(self, *, without: Sequence[WorkerProcess] = ()) -> bool:
        """Whether every partition is served, by exactly one worker."""
        found = [number for worker in self.workers if worker not in without for number in worker.partitions()]
        return sorted(found) == list(range(PARTITIONS))

    def close(self) -> None:
        self._closing.set()
        self._supervisor.join(5)
        for edge in self.edges.values():
            edge.close()
        for worker in self.workers:
            worker.stop()
        self.inbox.close()

    def logs(self) -> str:
        return "\n\n".join(f"{worker.log}\n{worker.tail()}" for worker in self.workers)


@contextmanager
def stage(folder: Path, kafka: Kafka, redis: Redis, prefix: str, clusters: Sequence[str]) -> Iterator[Stage]:
    """Everything, ended at the end."""
    made = Stage(folder, kafka, redis, prefix, clusters)
    try:
        yield made
    finally:
        made.close()


def wait_until(what: str, is_true: Callable[[], bool], seconds: float, detail: Callable[[], str] = str) -> float:
    """
    Seconds that it took.

    Raises:
        TimeoutError: With what was waited for, and `detail`.
    """
    began = time.monotonic()
    while not is_true():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s; {detail()}")
        time.sleep(0.05)
    return time.monotonic() - began
