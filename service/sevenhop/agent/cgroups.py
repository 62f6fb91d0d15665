"""
CPU and memory of containers from cgroup v2.

The kubelet's API names containers without saying where they run.  Its folder of log links does:
``/var/log/containers/<pod>_<namespace>_<container>-<64 hex digits>.log`` (only the names are looked at, never a log),
and the container's id is in the name of its cgroup: ``cri-containerd-<id>.scope``, ``crio-<id>.scope``, ``<id>``.
https://docs.kernel.org/admin-guide/cgroup-v2.html says what the files hold.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from sevenhop.core.gpu_sample import ContainerUsage, Holder

CGROUPS = Path("/sys/fs/cgroup")
CONTAINER_LOGS = Path("/var/log/containers")

MAX_DEPTH = 8
_LOG = re.compile(r"(?P<pod>[^_]+)_(?P<namespace>[^_]+)_(?P<container>.+)-(?P<id>[0-9a-f]{64})\.log")
_SCOPE = re.compile(r"(?:[a-z-]+-)?([0-9a-f]{64})(?:\.scope)?")


class _Before(msgspec.Struct, frozen=True):
    at_s: float
    usage_us: int
    periods: int
    throttled: int


class Cgroups:
    """Looks for containers by name, and remembers where it found them."""

    def __init__(self, root: Path = CGROUPS, logs: Path = CONTAINER_LOGS) -> None:
        self._root = root
        self._logs = logs
        self._folders: dict[str, Path] = {}  # container id to cgroup
        self._before: dict[Path, _Before] = {}

    @property
    def problem(self) -> str:
        """Why nothing can be told; empty otherwise."""
        if not (self._root / "cgroup.controllers").exists():
            return f"cgroups: {self._root} is not the node's cgroup v2 tree; CPU and memory of containers are not told"
        try:
            os.scandir(self._logs).close()
        except OSError as error:
            return f"cgroups: {self._logs}: {error.strerror}; CPU and memory of containers are not told"
        return ""

    def usage(self, holders: Iterable[Holder], now_s: float) -> tuple[ContainerUsage, ...]:
        """
        What each uses, as far as it can be told; CPU is averaged since the call before, so it is None at first.

        Args:
            now_s: A monotonic clock.
        """
        wanted = sorted(set(holders))
        if not wanted or self.problem:
            self._before.clear()
            return ()
        ids = self._ids(wanted)
        self._find({each for found in ids.values() for each in found})
        before, self._before = self._before, {}
        result = []
        for holder in wanted:
            # A container that was restarted left links of its predecessors behind: the one that runs has a cgroup.
            folders = [self._folders[each] for each in ids.get(holder, ()) if each in self._folders]
            if folders:
                result.append(self._read(holder, folders[-1], before, now_s))
        return tuple(result)

    def _ids(self, wanted: list[Holder]) -> dict[Holder, list[str]]:
        try:
            names = sorted(os.listdir(self._logs))  # noqa: PTH208  names alone, of thousands
        except OSError:  # gone since it was looked at; `problem` says so next time
            return {}
        looked_for = set(wanted)
        found: dict[Holder, list[str]] = {}
        for name in names:
            match = _LOG.fullmatch(name)
            if match is None:
                continue
            holder = Holder(match["namespace"], match["pod"], match["container"])
            if holder in looked_for:
                found.setdefault(holder, []).append(match["id"])
        return found

    def _find(self, ids: set[str]) -> None:
        """Look for the cgroups of ids that are new; forget those that are gone."""
        self._folders = {each: path for each, path in self._folders.items() if each in ids and path.is_dir()}
        missing = ids - self._folders.keys()
        if not missing:
            return
        for top in _subfolders(self._root):
            # kubepods.slice, kubepods, or below a slice of the node's own, as in kind.
            if "kube" in top.name:
                self._walk(top, missing, MAX_DEPTH)

    def _walk(self, folder: Path, missing: set[str], depth: int) -> None:
        for child in _subfolders(folder):
            match = _SCOPE.fullmatch(child.name)
            if match is not None:
                if match[1] in missing:
                    self._folders[match[1]] = child
            elif depth:
                self._walk(child, missing, depth - 1)

    def _read(self, holder: Holder, folder: Path, before: dict[Path, _Before], now_s: float) -> ContainerUsage:
        cpu = _pairs(folder / "cpu.stat")
        memory = _pairs(folder / "memory.stat")
        current = _number(folder / "memory.current")
        cores = throttled = None
        if "usage_usec" in cpu:
            now = _Before(now_s, cpu["usage_usec"], cpu.get("nr_periods", 0), cpu.get("nr_throttled", 0))
            self._before[folder] = now
            past = before.get(folder)
            if past is not None and now_s > past.at_s and now.usage_us >= past.usage_us:
                cores = (now.usage_us - past.usage_us) / 1e6 / (now_s - past.at_s)
                periods = now.periods - past.periods
                # Without a CPU limit there are no periods, and no throttling.
                throttled = min(1.0, max(0, now.throttled - past.throttled) / periods) if periods > 0 else 0.0
        if current is not None:
            # Cached files can be dropped.  Shared memory cannot; it is a file too, but on other lists.
            current = max(0, current - memory.get("active_file", 0) - memory.get("inactive_file", 0))
        return ContainerUsage(
            holder=holder,
            cpu_cores=cores,
            cpu_throttled=throttled,
            memory_bytes=current,
            memory_limit_bytes=_number(folder / "memory.max"),
        )


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:  # gone meanwhile
        return []


def _pairs(path: Path) -> dict[str, int]:
    try:
        text = path.read_text("ascii")
    except (OSError, UnicodeDecodeError):  # the container ended meanwhile, or the controller is off
        return {}
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}


def _number(path: Path) -> int | None:
    """None where the file is not there, and for ``max``: no limit."""
    try:
        text = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() else None
