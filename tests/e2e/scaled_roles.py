"""`sevenhop run --role edge|worker` as processes of their own, on one Kafka and one Redis."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sevenhop.cli.cluster import ask_service
from sevenhop.cli.output import UsageError
from tests.e2e.service import sevenhop
from tests.shared import ROOT

Row = dict[str, Any]


class Role:
    """
    One process.

    Args:
        settings: Its whole tree, but for the role and the state folder.
        env: More environment, such as a password.
    """

    def __init__(self, folder: Path, role: str, settings: Mapping[str, Any], env: Mapping[str, str] | None = None):
        folder.mkdir(parents=True, exist_ok=True)
        self.role = role
        self.state = folder / f"{role}-state"
        self.config = folder / f"{role}.yaml"
        runtime = {**settings.get("runtime", {}), "role": role}
        self.config.write_text(json.dumps({**settings, "state": str(self.state), "runtime": runtime}))
        self.config.chmod(0o600)
        self._env = env or {}
        self._runs = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Role:
        self._runs += 1
        command = [sys.executable, "-m", "sevenhop.cli.main", "run", "--config", str(self.config)]
        with self.log_file.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdout=log, stderr=log, env={**os.environ, "NO_COLOR": "1", **self._env}
            )
        return self

    @property
    def log_file(self) -> Path:
        return self.config.with_suffix(f".{self._runs}.log")

    @property
    def log(self) -> str:
        """What this run has said."""
        return self.log_file.read_text("utf-8", "replace")

    @property
    def has_run(self) -> bool:
        return self._runs > 0

    @property
    def code(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def ends(self, seconds: float = 30) -> int:
        """The exit code of a run that ends by itself."""
        assert self._process is not None
        return self._process.wait(seconds)

    def kill(self) -> None:
        """SIGKILL; fine if it has ended."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command that finds this process by its settings."""
        return sevenhop(*words, "--config", str(self.config))

    def rows(self, view: str) -> list[Row]:
        """What `get` lists; nothing while it cannot be asked."""
        try:
            return list(ask_service(self.state, "GET", f"/get/{view}") or [])
        except (UsageError, OSError):
            return []

    def serves(self, cluster: str) -> bool:
        """Whether it has rebuilt this cluster, and sees it."""
        try:
            report: Row = ask_service(self.state, "GET", "/doctor") or {}
        except (UsageError, OSError):
            return False
        rows = report.get("partitions", {}).values()
        return any(row["ready"] and not row["clusters"].get(cluster, {"blind": True})["blind"] for row in rows)

    def tail(self, lines: int = 25) -> str:
        return f"{self.role}:\n" + "\n".join(self.log.splitlines()[-lines:])


def tails(roles: Sequence[Role]) -> str:
    """The ends of their logs, for whoever reads why a test failed."""
    return "\n\n".join(role.tail() for role in roles)
