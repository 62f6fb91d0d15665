"""`sevenhop run` as a process of its own, and the other commands as an operator types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import yaml

from sevenhop.cli.cluster import ask_service
from tests.e2e.rules import hurried_rules
from tests.e2e.slack import FakeSlack
from tests.shared import ROOT
from tests.testbed.waiting import eventually

HOLD_S = 5
"""The `for:` of rules under test; their incidents wait no longer."""


def sevenhop(*words: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """One command, as from a shell, with nothing of ours in its environment."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SEVENHOP_", "KUBE"))}
    command = [sys.executable, "-m", "sevenhop.cli.main", *words]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=timeout)


class Service:
    """
    A service in a folder of its own.

    Args:
        rules: Ids of rules that hold for `HOLD_S` instead of minutes.
        name: Of the cluster: in its messages, and part of the identity of its incidents.
        more: Further settings.
        words: Further words of the command line.
    """

    def __init__(
        self,
        folder: Path,
        kubeconfig: Path,
        *,
        slack: FakeSlack,
        rules: tuple[str, ...] = (),
        name: str = "testbed",
        only_console: bool = False,
        more: Mapping[str, Any] | None = None,
        words: tuple[str, ...] = (),
    ) -> None:
        self._words = words
        folder.mkdir()
        self.folder = folder
        self.state = folder / "state"
        self.config = folder / "sevenhop.yaml"
        settings: dict[str, Any] = {
            "cluster": name,
            "state": str(self.state),
            "rules": [str(hurried_rules(folder, dict.fromkeys(rules, f"{HOLD_S}s")))],
            "kubernetes": {"kubeconfig": str(kubeconfig), "discovery_interval": "2s"},
            "incidents": {"group_wait": "0s"},
            "receivers": {"console": {"type": "console"}, **({} if only_console else {"slack": slack.settings})},
            **(more or {}),
        }
        self.config.write_text(yaml.safe_dump(settings), "utf-8")
        self.config.chmod(0o600)
        self._process: subprocess.Popen[bytes] | None = None
        self._run = 0

    def start(self, *, timeout: float = 40) -> Self:
        """Start it, and return when it has seen every kind that the API server serves."""
        self._run += 1
        command = [sys.executable, "-m", "sevenhop.cli.main", "run", "--config", str(self.config), *self._words]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=err)
        eventually(self._is_synced, timeout=timeout, every=0.2, what=f"sync of {self.folder.name}")
        return self

    def stop(self) -> tuple[int, float]:
        """End it as a supervisor does (SIGTERM); its exit code, and the seconds that it took."""
        process, self._process = self._process, None
        if process is None:
            return 0, 0.0
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        return code, time.monotonic() - began

    def kill(self) -> None:
        """SIGKILL: no handler, no flush, no goodbye."""
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        process.wait()

    def pause(self) -> None:
        """Stop it in its tracks: its connections stay open, and it reads nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @property
    def console(self) -> str:
        """What this run has told on its console."""
        return self._out.read_text("utf-8")

    @property
    def errors(self) -> str:
        """What this run has logged."""
        return self._err.read_text("utf-8", "replace")

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command that finds this service by its settings."""
        return sevenhop(*words, "--config", str(self.config))

    def rows(self, view: str) -> list[dict[str, Any]]:
        """What `sevenhop get <view>` lists; through the local door, because polling with processes is slow."""
        rows: list[dict[str, Any]] | None = ask_service(self.state, "GET", f"/get/{view}")
        return rows or []

    def state_of(self, kind: str) -> str:
        """How much of a kind is known."""
        return next((row["state"] for row in self.rows("sources") if row["kind"] == kind), "")

    def doctor(self) -> dict[str, Any]:
        """The report of `sevenhop doctor`."""
        answer = self.ask("doctor", "-o", "json")
        assert answer.returncode in (0, 1), answer.stderr
        report: dict[str, Any] = json.loads(answer.stdout)
        return report

    def explain(self, subject: str, *words: str) -> str:
        """What `sevenhop explain` says to a person."""
        answer = self.ask("explain", subject, *words)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    @property
    def _out(self) -> Path:
        return self.folder / f"console-{self._run}"

    @property
    def _err(self) -> Path:
        return self.folder / f"log-{self._run}"

    def _is_synced(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the service ended: {self.errors}"
        rows = self.rows("sources")
        return bool(rows) and all(row["state"] != "not_synced" for row in rows)
