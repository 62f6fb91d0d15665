"""Builds the programs of the test bed from their Go modules, once per recipe, and keeps them.

A recipe is the committed `go.mod`, `go.sum` and `*.go` files of one folder of `go/` and the command line
below; a change in it gives a new folder of the cache, so two checkouts never share a wrong binary.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_GO = Path(__file__).parent / "go"


class BuildFailed(Exception):
    """A part of the test bed cannot be had here; the message says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    One program and the files of its module that go with it.

    Attributes:
        folder: Folder below `go/` with its module.
        package: What `go build` is given.
        names: Names that the program is started under; the first is the file, others are links.
        files: (module, folder inside it, folder of ours) to copy beside the program.
    """

    folder: str
    version: str
    package: str
    names: tuple[str, ...]
    ldflags: str = "-s -w"
    files: tuple[tuple[str, str, str], ...] = ()


CONTROL_PLANE = Part(
    folder="controlplane",
    version="1.36.3",
    package=".",
    names=(
        "controlplane",
        "etcd",
        "kube-apiserver",
        "kube-scheduler",
        "kube-controller-manager",
        "service-account-key",
    ),
    # Without them /version answers v0.0.0-master, and clients that look at it go wrong.
    ldflags="-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3"
    " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
)
KWOK = Part(
    folder="kwok",
    version="0.8.0",
    package="sigs.k8s.io/kwok/cmd/kwok",
    names=("kwok",),
    files=(("sigs.k8s.io/kwok", "kustomize/stage", "stages"),),
)
KUBERAY = Part(
    folder="kuberay",
    version="1.5.0",
    package="github.com/ray-project/kuberay/ray-operator",
    names=("kuberay-operator",),
    files=(("github.com/ray-project/kuberay/ray-operator", "config/crd/bases", "crds"),),
)
PARTS = (CONTROL_PLANE, KWOK, KUBERAY)


def cache_folder() -> Path:
    """Where built programs and the record of `up` are kept; nothing else writes there."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sevenhop" / "testbed"


def part_folder(part: Part) -> Path:
    """The folder that `ensure` fills; its name changes with the recipe."""
    recipe = hashlib.sha256(f"{part} {platform.system()} {platform.machine()}".encode())
    for path in sorted((_GO / part.folder).iterdir()):
        recipe.update(path.name.encode() + b"\0" + path.read_bytes())
    return cache_folder() / f"{part.folder}-{part.version}-{recipe.hexdigest()[:12]}"


def ensure(part: Part, say: Callable[[str], None] = lambda _: None) -> Path:
    """
    Return the folder with `part` built, building it if need be (minutes when cold).

    Safe to call from several processes at once: the second waits for the first.

    Raises:
        BuildFailed: No Go, no network, or the compiler's last words.
    """
    folder = part_folder(part)
    if folder.is_dir():
        say(f"{part.folder} {part.version}: in the cache")
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with locked(folder.with_name(folder.name + ".lock")):
        if not folder.is_dir():  # another process may have built it while we waited
            say(f"{part.folder} {part.version}: building, minutes when cold …")
            _build(part, folder)
    say(f"{part.folder} {part.version}: ready after {time.monotonic() - started:.0f} s")
    return folder


def _build(part: Part, folder: Path) -> None:
    scratch = Path(tempfile.mkdtemp(prefix=f".{part.folder}-", dir=folder.parent))
    try:
        first, *links = part.names
        _go(
            part,
            *("build", "-trimpath", "-buildvcs=false", "-p", str(min(4, os.cpu_count() or 1))),
            *("-ldflags", part.ldflags, "-o", str(scratch / first), part.package),
        )
        for link in links:
            (scratch / link).symlink_to(first)
        for module, source, target in part.files:
            directory = Path(_go(part, "list", "-m", "-f", "{{.Dir}}", module).strip())
            _copy_yaml(directory / source, scratch / target)
        scratch.chmod(0o755)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _go(part: Part, *arguments: str) -> str:
    go = shutil.which("go")
    if go is None:
        raise BuildFailed(f"{part.folder}: no Go compiler on PATH")
    command = ["nice", go, *arguments] if shutil.which("nice") else [go, *arguments]
    # A workspace file or vendored modules around the checkout must not change the recipe.
    env = os.environ | {"GOWORK": "off", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"}
    done = subprocess.run(command, cwd=_GO / part.folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last_words = "\n".join(done.stderr.strip().splitlines()[-15:])
        raise BuildFailed(f"{part.folder}: go {arguments[0]} failed\n{last_words}")
    return done.stdout


def _copy_yaml(source: Path, target: Path) -> None:
    # Copied file by file: the module cache is read-only, and so would a copied tree be.
    for path in source.rglob("*.yaml"):
        to = target / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the kernel lets go of it when we die
        yield
