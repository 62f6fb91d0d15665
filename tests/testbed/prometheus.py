"""
Real promtool, Prometheus and Alertmanager on loopback: from PATH, or unpacked from Debian's packages into the test
bed's cache (nothing is installed).
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.testbed.binaries import BuildFailed, cache_folder, locked
from tests.testbed.ports import free_ports
from tests.testbed.programs import Program

_PACKAGES = {"promtool": "prometheus", "prometheus": "prometheus", "prometheus-alertmanager": "prometheus-alertmanager"}
"""Program to the Debian package that has it; they need no library but libc."""


def ensure(program: str, say: Callable[[str], None] = lambda _: None) -> str:
    """
    The program's path.

    Raises:
        BuildFailed: Neither on PATH nor to be had from Debian.
    """
    found = shutil.which(program)
    if found:
        return found
    package = _PACKAGES[program]
    folder = cache_folder() / f"{package}-debian"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            say(f"{package}: fetching Debian's package …")
            _fetch(package, folder)
    return str(folder / "usr" / "bin" / program)


def _fetch(package: str, folder: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise BuildFailed(f"{package}: not on PATH, and this is no Debian")
    scratch = Path(tempfile.mkdtemp(prefix=f".{package}-", dir=folder.parent))
    try:
        done = _run(["apt-get", "download", package], scratch)
        if done.returncode != 0:
            _run(["apt-get", "update"], scratch)  # the lists of a new machine are empty
            done = _run(["apt-get", "download", package], scratch)
        (deb,) = scratch.glob("*.deb") if done.returncode == 0 else (None,)
        if deb is None or _run(["dpkg-deb", "-x", str(deb), str(scratch / "root")], scratch).returncode != 0:
            raise BuildFailed(f"{package}: apt-get download failed\n{done.stderr[-1500:]}")
        (scratch / "root").rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def promtool(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """One call of promtool; `text` is its standard input."""
    command = [ensure("promtool"), *words]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)


def alertmanager(folder: Path) -> Program:
    """An Alertmanager that tells nobody; not started."""
    (port,) = free_ports(1)
    config = folder / "alertmanager.yaml"
    config.write_text(yaml.safe_dump({"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}), "utf-8")
    command = [
        ensure("prometheus-alertmanager"), f"--config.file={config}", f"--storage.path={folder / 'am'}",
        f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=",
    ]  # fmt: skip
    return Program(command, port=port, log=folder / "alertmanager.log", folder=folder)


def prometheus(folder: Path, targets: Sequence[str], rules: Path, scrape: Mapping[str, Any]) -> Program:
    """
    A Prometheus that scrapes its targets every second, as the job ``sevenhop``; not started.

    Args:
        targets: Of ``host:port``.
        rules: A file of alert rules.
        scrape: Further keys of the scrape's configuration.
    """
    (port,) = free_ports(1)
    config = folder / "prometheus.yaml"
    job = {"job_name": "sevenhop", "static_configs": [{"targets": list(targets)}], **scrape}
    config.write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(rules)],
                "scrape_configs": [job],
            }
        ),
        "utf-8",
    )
    command = [
        ensure("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    return Program(command, port=port, log=folder / "prometheus.log", folder=folder)
