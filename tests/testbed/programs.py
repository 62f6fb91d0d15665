"""Programs on loopback that tests start: each in a process of its own, ended by its pid, and with the test runner."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.testbed.ports import listens

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class ProgramFailed(Exception):
    """It did not come up; the message has its last words."""


class Program:
    """
    One server.

    Args:
        port: Where it listens once it is there.
        log: Its output goes there.
    """

    def __init__(
        self, command: Sequence[str], *, port: int, log: Path, folder: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self._command = list(command)
        self._env = env
        self.port = port
        self.log = log
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self._command[0]} does not run"
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, wait_s: float = 90.0) -> None:
        """
        Start it; returns when it listens.

        Raises:
            ProgramFailed: It ended, or did not listen in time.
        """
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=self._env,
                preexec_fn=_die_with_parent,
            )
        if wait_s:
            self.wait(wait_s)

    def wait(self, seconds: float = 90.0) -> None:
        """Until it listens; errors as `start`."""
        ends_at = time.monotonic() + seconds
        while not listens(self.port):
            if not self.runs or time.monotonic() > ends_at:
                raise ProgramFailed(f"{self._command[0]} does not listen on {self.port}; {self.tail()}")
            time.sleep(0.05)

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL; fine if it ended by itself."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        if self._process is not None:
            self._process.wait()

    def stop(self, grace_s: float = 10.0) -> None:
        """SIGTERM, and SIGKILL after `grace_s`."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.send_signal(signal.SIGCONT)  # one that is paused would not see the first
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def tail(self, lines: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
