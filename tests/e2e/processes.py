"""`sevenhop run` as one of several processes, and what it answers at its HTTP door."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.shared import ROOT
from tests.testbed.ports import free_ports

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Run:
    """
    One process, with a folder and an HTTP door of its own.

    Args:
        name: As a pod is called: the process names itself so in a Lease.
        config: A file instead of `settings`, such as the chart renders it.

    Attributes:
        environ: What a shell has, and nothing of ours.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        settings: Mapping[str, Any] | None = None,
        *,
        config: Path | None = None,
    ) -> None:
        self.folder = folder / name
        self.folder.mkdir(parents=True)
        self.name = name
        self.log = self.folder / "log"
        (self.port,) = free_ports(1)
        self.config = self.folder / "sevenhop.yaml" if config is None else config
        if config is None:
            here = {"state": str(self.folder / "state"), "web": {"listen": f"127.0.0.1:{self.port}"}}
            self.config.write_text(json.dumps({**(settings or {}), **here}), "utf-8")
        self.environ = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("SEVENHOP_", "KUBE"))},
            "HOSTNAME": name,
            "NO_COLOR": "1",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Run:
        command = [sys.executable, "-m", "sevenhop.cli.main", "run", "--config", str(self.config)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=self.environ)
        return self

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        assert self._process is not None
        return self._process.poll()

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL: no handler, no flush, no goodbye."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """As a kubelet does: SIGTERM, and SIGKILL for what stays."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()

    def get(self, path: str) -> tuple[int, str]:
        """Status and text; 0 while nobody listens."""
        return answer_of(f"http://127.0.0.1:{self.port}{path}")

    def series(self) -> Series:
        """What /metrics serves; empty while nobody listens."""
        _, text = self.get("/metrics")
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        """One series of ours; None while it is not served."""
        return self.series().get((f"sevenhop_{name}", frozenset(labels.items())))

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self, lines: int = 25) -> str:
        return f"--- {self.name}\n" + "\n".join(self.said().splitlines()[-lines:])


def answer_of(url: str) -> tuple[int, str]:
    """Status and text; 0 while nobody listens."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""
