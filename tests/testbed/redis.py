"""Real Redis on loopback: from PATH, or Debian's packages unpacked into the test bed's cache (nothing is installed)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.testbed.binaries import BuildFailed, cache_folder, locked
from tests.testbed.certificates import Signed
from tests.testbed.ports import free_ports
from tests.testbed.programs import Program

_PACKAGES = (
    "redis-server",
    "redis-tools",
    "libhiredis0.14",
    "libjemalloc2",
    "liblua5.1-0",
    "lua-bitop",
    "lua-cjson",
    "liblzf1",
)


def ensure_server(say: Callable[[str], None] = lambda _: None) -> tuple[str, dict[str, str]]:
    """
    The server's path, and what its environment must have.

    Raises:
        BuildFailed: Neither on PATH nor to be had from Debian.
    """
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found:
            return found, {}
    folder = cache_folder() / "redis-debian"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name("redis-debian.lock")):
        if not folder.is_dir():
            say("redis: fetching Debian's packages …")
            _fetch(folder)
    libraries = sorted({str(path.parent) for path in folder.rglob("*.so*")})
    return str(folder / "usr" / "bin" / "redis-server"), {"LD_LIBRARY_PATH": ":".join(libraries)}


def _fetch(folder: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise BuildFailed("redis: no redis-server or valkey-server on PATH, and this is no Debian")
    scratch = Path(tempfile.mkdtemp(prefix=".redis-", dir=folder.parent))
    try:
        done = _run(["apt-get", "download", *_PACKAGES], scratch)
        if done.returncode != 0:
            _run(["apt-get", "update"], scratch)  # the lists of a new machine are empty
            done = _run(["apt-get", "download", *_PACKAGES], scratch)
        if done.returncode != 0:
            raise BuildFailed(f"redis: apt-get download failed\n{done.stderr[-1500:]}")
        root = scratch / "root"
        for package in scratch.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), str(root)], scratch)
        root.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


class Redis:
    """
    One server.

    Args:
        remembers: Each write is on disk before it is answered, so a restart keeps all; else it forgets everything.
        password: That it wants; empty wants none.
        identity: Listen with TLS alone, with this certificate for 127.0.0.1.
    """

    def __init__(
        self,
        *,
        remembers: bool = True,
        password: str = "",
        identity: Signed | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._remembers = remembers
        self._password = password
        self._identity = identity
        self._say = say
        self.folder = Path()
        self.server: Program | None = None

    @property
    def url(self) -> str:
        """For `redis.url` of the settings; without the password."""
        assert self.server is not None
        return f"{'rediss' if self._identity else 'redis'}://127.0.0.1:{self.server.port}/0"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """
        Raises:
            BuildFailed: It cannot be had here.
            ProgramFailed: It does not come up.
        """
        path, env = ensure_server(self._say)
        self.folder = Path(tempfile.mkdtemp(prefix="sevenhop-redis-"))
        (port,) = free_ports(1)
        keeping = ["--appendonly", "yes", "--appendfsync", "always"] if self._remembers else ["--appendonly", "no"]
        self.server = Program(
            [path, *self._listening(port), "--bind", "127.0.0.1", "--save", "", *keeping, "--dir", str(self.folder)],
            port=port,
            log=self.folder / "redis.log",
            folder=self.folder,
            env=os.environ | env,
        )
        self.server.start()
        return self

    def _listening(self, port: int) -> list[str]:
        words: list[str] = []
        if self._password:
            config = self.folder / "redis.conf"  # not on the command line, which everybody may read
            config.write_text(f"requirepass {self._password}\n")
            config.chmod(0o600)
            words = [str(config)]
        if self._identity is None:
            return [*words, "--port", str(port)]
        files = ["--tls-cert-file", str(self._identity.certificate), "--tls-key-file", str(self._identity.key)]
        return [*words, "--port", "0", "--tls-port", str(port), "--tls-auth-clients", "no", *files]

    def crash(self) -> None:
        """kill -9; `come_back` starts it on the same port, with what it remembers."""
        assert self.server is not None
        self.server.kill()

    def come_back(self) -> None:
        assert self.server is not None
        self.server.start()

    def pause(self) -> None:
        """SIGSTOP: it accepts connections and answers nothing."""
        assert self.server is not None
        self.server.signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.server is not None
        self.server.signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it and remove its folder; fine to call twice."""
        if self.server is not None:
            self.server.kill()
            self.server = None
        if self.folder != Path() and not os.environ.get("SEVENHOP_TESTBED_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)
