"""The processes of the kill tests: a cluster that stays up, and the service that is killed."""

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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec

from sevenhop.cli.cluster import ask_service
from sevenhop.cli.output import UsageError
from sevenhop.core.incidents.keeping import BEGAN
from sevenhop.core.incidents.state import ADOPT_WITHIN
from tests.fakes.slack_server import CHANNEL, TOKEN

ROOT = Path(__file__).resolve().parents[2]

Json = dict[str, Any]

PATIENCE_S = 120.0
"""On a machine that does ten other things a start alone takes half a minute."""


def wait_until(
    what: str, is_true: Callable[[], bool], seconds: float = PATIENCE_S, detail: Callable[[], str] = str
) -> None:
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
def module(*words: str) -> Iterator[str]:
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


def ask(method: str, url: str, body: Any = None, content_type: str = "application/json") -> Any:
    """One HTTP request with JSON in and out; raises as `urlopen` does."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"Content-Type": content_type}, method=method), timeout=60) as answer:
        return json.loads(answer.read())


class Cluster:
    """The API of the simulated cluster, as kubectl would use it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def create(self, path: str, data: Json) -> Json:
        created: Json = ask("POST", f"{self.url}{path}", data)
        return created

    def patch(self, path: str, change: Json) -> None:
        ask("PATCH", f"{self.url}{path}", change, "application/merge-patch+json")

    def patch_status(self, path: str, status: Json) -> None:
        self.patch(f"{path}/status", {"status": status})


@contextmanager
def cluster() -> Iterator[Cluster]:
    with module("tests.e2e.crash_cluster") as url:
        yield Cluster(url)


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

    def __init__(self, folder: Path, cluster: Cluster, slack_url: str, rules: Path) -> None:
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
                        "slack": {"type": "slack", "token": TOKEN, "channel": CHANNEL, "base_url": slack_url}
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

    def freeze(self) -> None:
        """SIGSTOP: it sees nothing more of what happens, until it is killed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

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

    def grow_old(self) -> bool:
        """
        Let the killed service's state have begun two hours ago; False where it holds nothing yet.

        While a state is young the channel is asked before every first message, which hides what a crash may do later.
        """
        began = msgspec.json.encode(datetime.now(UTC) - 2 * ADOPT_WITHIN)
        if not (self.state / "state.db").exists():
            return False
        with closing(sqlite3.connect(self.state / "state.db", isolation_level=None)) as db:
            tables = db.execute("select count(*) from sqlite_master where name = 'state'").fetchone()[0]
            return bool(tables) and db.execute("update state set value = ? where tab = ?", (began, BEGAN)).rowcount == 1

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
