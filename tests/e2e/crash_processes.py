"""The processes of the kill tests: a cluster and a Slack that stay up, and the service that is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from sevenhop.cli.cluster import ask_service
from sevenhop.cli.output import UsageError
from tests.fakes.slack_server import CHANNEL, TOKEN

ROOT = Path(__file__).resolve().parents[2]

Json = dict[str, Any]


def wait_until(what: str, is_true: Callable[[], bool], seconds: float = 30.0, detail: Callable[[], str] = str) -> None:
    """
    Raises:
        TimeoutError: With what was waited for, and `detail`.
    """
    ends_at = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > ends_at:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s; {detail()}")
        time.sleep(0.01)


@contextmanager
def _module(*words: str) -> Iterator[str]:
    """A Python module as a process; gives the first line it prints."""
    process = subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line, f"{words[0]} ended with {process.wait()}"
        yield line
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _ask(method: str, url: str, body: Any = None, content_type: str = "application/json") -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"Content-Type": content_type}, method=method), timeout=10) as answer:
        return json.loads(answer.read())


class Cluster:
    """The API of the simulated cluster, as kubectl would use it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def create(self, path: str, data: Json) -> Json:
        created: Json = _ask("POST", f"{self.url}{path}", data)
        return created

    def patch(self, path: str, change: Json) -> None:
        _ask("PATCH", f"{self.url}{path}", change, "application/merge-patch+json")

    def patch_status(self, path: str, status: Json) -> None:
        self.patch(f"{path}/status", {"status": status})


@contextmanager
def cluster() -> Iterator[Cluster]:
    with _module("tests.e2e.crash_cluster") as url:
        yield Cluster(url)


@dataclass(frozen=True)
class Body:
    """What a message said at one time; `identity` names the transition, as `Parcel.identity` does."""

    status: str
    identity: tuple[str, str]
    content: str


@dataclass
class Shown:
    """
    A message in the Slack channel.

    Attributes:
        cause: The incident's cause, such as ``component:prod/lane-1/engine``.
        bodies: What it said, post and edits, oldest first.
    """

    ts: str
    cause: str
    thread_ts: str
    bodies: list[Body] = field(default_factory=list)

    @property
    def status(self) -> str:
        return self.bodies[-1].status


class Slack:
    """The local Slack, known by the log of what it was asked and answered."""

    def __init__(self, base_url: str, log: Path) -> None:
        self.base_url = base_url
        self.messages: dict[str, Shown] = {}
        self.taken: set[tuple[str, datetime]] = set()  # identities of messages that were accepted
        self.held = 0  # calls that were left without an answer so far
        self._log = log
        self._read_bytes = 0

    def read(self) -> None:
        """Take in what is new in the log."""
        if not self._log.exists():
            return
        with self._log.open("rb") as log:
            log.seek(self._read_bytes)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._read_bytes += len(line)
                self._take(json.loads(line))

    def _take(self, entry: Json) -> None:
        if entry.get("fault", "").startswith("timeout"):
            self.held += 1
        answer, body = entry.get("answer") or {}, entry["body"]
        if not answer.get("ok") or entry["method"] not in ("chat.postMessage", "chat.update"):
            return
        ts = answer["ts"] if entry["method"] == "chat.postMessage" else body["ts"]
        payload = (body.get("metadata") or {}).get("event_payload", {})
        shown = self.messages.setdefault(ts, Shown(ts, payload.get("cause", ""), body.get("thread_ts", "")))
        content = json.dumps([body.get("text"), body.get("blocks")], sort_keys=True)
        identity = (payload.get("effect", ""), payload.get("at", ""))
        shown.bodies.append(Body(payload.get("status", ""), identity, content))
        if payload.get("effect"):
            self.taken.add((payload["effect"], datetime.fromisoformat(payload["at"])))

    def of(self, cause: str) -> list[Shown]:
        """Messages about a cause, without threads."""
        return [shown for shown in self.messages.values() if shown.cause == cause and not shown.thread_ts]

    def thread_of(self, parent: Shown) -> list[Shown]:
        return [shown for shown in self.messages.values() if shown.thread_ts == parent.ts]

    def hold(self, method: str, *, after_taking: bool) -> None:
        """Leave the next call of a method without an answer, before or after doing what it asks for."""
        kind = "timeout_after" if after_taking else "timeout_before"
        _ask("POST", self.base_url.replace("/api/", "/_fake/faults"), [{"method": method, "kind": kind}])


@contextmanager
def slack(folder: Path) -> Iterator[Slack]:
    log = folder / "slack.jsonl"
    with _module("tests.fakes.slack_server", "--port", "0", "--log", str(log)) as url:
        yield Slack(url, log)


@dataclass(frozen=True)
class Parcel:
    """
    One message in the outbox.

    Attributes:
        identity: Effect id and time of the message; the id alone may come again after the state was lost.
        status: What it says of the incident: ``firing`` or ``resolved``.
    """

    identity: tuple[str, datetime]
    state: str
    cause: str
    status: str


def _parcel(state: str, effect: Json) -> Parcel:
    message = effect["message"]
    at = datetime.fromisoformat(message["at"])
    return Parcel((effect["id"], at), state, effect["cause"], message["status"])


class Service:
    """``sevenhop run`` as a process that can be killed and started again on the same state."""

    def __init__(self, folder: Path, cluster: Cluster, slack: Slack, rules: Path) -> None:
        self.state = folder / "state"
        self.log = folder / "service.log"
        self._process: subprocess.Popen[bytes] | None = None
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(_kubeconfig(cluster.url))
        config = folder / "sevenhop.yaml"
        config.write_text(
            json.dumps(
                {
                    "cluster": "kills",
                    "state": str(self.state),
                    "rules": [str(rules)],
                    "kubernetes": {"kubeconfig": str(kubeconfig)},
                    "incidents": {"group_wait": "0s", "recall_wait": "3s"},
                    "receivers": {
                        "slack": {"type": "slack", "token": TOKEN, "channel": CHANNEL, "base_url": slack.base_url}
                    },
                }
            )
        )
        self._command = [sys.executable, "-m", "sevenhop.cli.main", "run", "--config", str(config)]

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=ROOT, stdout=log, stderr=log, env=os.environ | _QUIET)

    def kill(self) -> None:
        """SIGKILL: no handler, no flush, no goodbye."""
        assert self._process is not None
        assert self._process.poll() is None, f"it ended by itself; {self.tail()}"
        self._process.kill()
        self._process.wait()

    def stop(self) -> tuple[int, float]:
        """SIGTERM; gives the exit code, and seconds until then."""
        assert self._process is not None
        began = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(10)
        return code, time.monotonic() - began

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Delete the state, as a lost volume does."""
        shutil.rmtree(self.state, ignore_errors=True)

    def outbox(self) -> list[Parcel]:
        """What waits, oldest first, seen from outside: of a running service, or of a killed one."""
        path = self.state / "state.db"
        if not path.exists():
            return []
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1.0)) as db:
                rows = db.execute("select state, effect from outbox order by seq").fetchall()
        except sqlite3.OperationalError:
            return []  # killed before the tables were made
        return [_parcel(state, json.loads(effect)) for state, effect in rows]

    def is_ready(self) -> bool:
        """Whether it has seen the workload and the node that are always there."""
        try:
            workloads = ask_service(self.state, "GET", "/get/workloads") or ()
            nodes = ask_service(self.state, "GET", "/get/nodes") or ()
        except UsageError:
            return False  # the socket's other end is starting or dying
        return any(row["ready"] == 1 for row in workloads) and any(row["node"] == "steady" for row in nodes)

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:]) if self.log.exists() else ""


_QUIET = {"NO_COLOR": "1"}


def _kubeconfig(url: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "kills",
            "contexts": [{"name": "kills", "context": {"cluster": "kills", "user": "kills"}}],
            "clusters": [{"name": "kills", "cluster": {"server": url}}],
            "users": [{"name": "kills", "user": {"token": "not-a-real-token"}}],
        }
    )
