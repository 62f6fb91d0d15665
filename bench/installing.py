"""Peers, installed where this user may: under the cache folder, never into the system."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

_PACKAGE = "prometheus-alertmanager"
_SHARE = b"/usr/share/prometheus/alertmanager"
_WITHIN_S = 90


class NotInstallableError(Exception):
    """A peer is not here and could not be fetched; one line says why."""


def cache_folder() -> Path:
    """Where peers are kept from one run to the next."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "sevenhop" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def alertmanager() -> Path:
    """
    Alertmanager's binary: installed, kept from an earlier run, or out of Debian's package.

    Raises:
        NotInstallableError: None of these.
    """
    installed = shutil.which(_PACKAGE) or shutil.which("alertmanager")
    if installed:
        return Path(installed)
    kept = cache_folder() / "alertmanager" / "usr" / "bin" / _PACKAGE
    if kept.is_file():
        return kept
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise NotInstallableError(f"no {_PACKAGE} on the path, and this is no Debian to fetch it from")
    _run(["apt-get", "download", _PACKAGE], cache_folder())
    for package in cache_folder().glob(f"{_PACKAGE}_*.deb"):
        _run(["dpkg-deb", "-x", str(package), str(cache_folder() / "alertmanager")], cache_folder())
        package.unlink()
    if not kept.is_file():
        raise NotInstallableError(f"Debian's package {_PACKAGE} has no {kept.name}")
    _look_beside_itself(kept)
    return kept


def _look_beside_itself(binary: Path) -> None:
    """
    Let Debian's build find its template without being installed: the folder in it becomes a relative one of its length.

    Raises:
        NotInstallableError: It is another build.
    """
    content = binary.read_bytes()
    if _SHARE not in content:
        raise NotInstallableError("this Alertmanager looks for its template elsewhere than Debian's of 2023")
    shared = cache_folder() / "alertmanager" / _SHARE.decode().lstrip("/")
    shutil.copy(shared / "default.tmpl", binary.with_name("default.tmpl"))
    shutil.copy(shared / "email.tmpl", binary.with_name("email.tmpl"))
    binary.write_bytes(content.replace(_SHARE, b"./" * (len(_SHARE) // 2)))


def kopf() -> Path:
    """
    A Python that has kopf, in an environment of its own.

    Raises:
        NotInstallableError: pip cannot fetch it.
    """
    folder = cache_folder() / "kopf"
    python = folder / "bin" / "python"
    if (folder / "ready").is_file():
        return python
    venv.create(folder, with_pip=True, clear=True)
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "kopf"], cache_folder())
    (folder / "ready").touch()
    return python


def _run(command: list[str], folder: Path) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=_WITHIN_S)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines() or [f"exit code {error.returncode}"]
        raise NotInstallableError(f"{' '.join(command[:3])}: {said[-1]}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstallableError(f"{' '.join(command[:3])}: {error}") from None


if __name__ == "__main__":
    for find in (alertmanager, kopf):
        sys.stdout.write(f"{find.__name__}: {find()}\n")
