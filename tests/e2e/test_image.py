"""
The image as far as it can be had without a container engine: its Dockerfile is linted, and the steps of its build stage
are done one after another in an empty folder, in which the commands of the image then run.

What this does not show: the Debian packages of both stages, and that the layers go together.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.chart import programs
from tests.shared import ROOT
from tests.testbed.tools import HADOLINT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

DOCKERFILE = ROOT / "Dockerfile"


@dataclass(frozen=True)
class Step:
    """One instruction of one stage; `words` is what follows it, on one line."""

    stage: str
    verb: str
    words: str


def steps(text: str) -> list[Step]:
    """The instructions of a Dockerfile; a stage without a name is called ``final``."""
    joined = re.sub(r"\\\n", " ", "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#")))
    found, stage = [], ""
    for line in joined.splitlines():
        if not line.strip():
            continue
        verb, _, words = line.strip().partition(" ")
        if verb == "FROM":
            stage = words.partition(" AS ")[2] or "final"
        found.append(Step(stage, verb, re.sub(r" +", " ", words).strip()))
    return found


STEPS = steps(DOCKERFILE.read_text("utf-8"))


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the build stage, each step done as the Dockerfile says but for the distribution's packages."""
    root = tmp_path_factory.mktemp("image")
    environ = {"HOME": str(root), "PATH": os.environ["PATH"]} | {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))
    }
    at = root
    for step in (step for step in STEPS if step.stage == "build"):
        match step.verb:
            case "WORKDIR":
                at = root / step.words.lstrip("/")
                at.mkdir(parents=True)
            case "COPY":
                *sources, target = step.words.split()
                for source in sources:
                    _copy(ROOT / source, at / target)
            case "RUN" if not step.words.startswith("apt-get"):
                done = subprocess.run(
                    ["sh", "-euc", _moved(step.words, root)], cwd=at, env=environ, capture_output=True, text=True
                )
                assert done.returncode == 0, f"{step.words}\n{done.stdout}{done.stderr}"
    return root


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    else:
        shutil.copy(source, target / source.name if target.is_dir() else target)


def _moved(command: str, root: Path) -> str:
    """The command with its absolute paths below `root`, and this Python."""
    below = re.sub(r"(?<![\w.$)/}-])/(wheels|build|opt|src)\b", rf"{root}/\1", command)
    return below.replace("python3 -m", f"{shlex.quote(sys.executable)} -m")


def sevenhop(prefix: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of the image, with the environment that it sets and no other, in an empty folder."""
    home = prefix / "var-lib-sevenhop"
    home.mkdir(exist_ok=True)
    environ = {"PATH": f"{prefix}/opt/sevenhop/bin:/usr/bin:/bin", "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(prefix / "opt/sevenhop/bin/sevenhop"), *words]
    return subprocess.run(command, cwd=home, env=environ, capture_output=True, text=True, timeout=120)


def test_the_dockerfile_is_linted() -> None:
    """hadolint has nothing to say but what the file itself excuses, with a reason."""
    said = subprocess.run([programs(HADOLINT) / "hadolint", str(DOCKERFILE)], capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (0, "")


def test_the_service_starts_in_it(prefix: Path) -> None:
    """The version, the shipped rules by the path that the chart gives, and the service itself up to its cluster."""
    version = sevenhop(prefix, "version")
    assert version.returncode == 0, version.stderr
    assert version.stdout.startswith("sevenhop ")
    for command, share in (("rules", "rules"), ("playbooks", "playbooks")):
        checked = sevenhop(prefix, command, "check", str(prefix / "opt/sevenhop/share" / share))
        assert checked.returncode == 0, checked.stdout + checked.stderr
    run = sevenhop(prefix, "run")
    assert (run.returncode, "no kubeconfig found" in run.stderr) == (3, True), run.stderr


def test_the_agent_starts_in_it(prefix: Path) -> None:
    """With nothing to read, it says what is missing and ends well."""
    once = sevenhop(prefix, "gpu-agent", "--once", "--node=gpu-00")
    assert once.returncode == 0, once.stderr


def test_extras_are_in_it(prefix: Path) -> None:
    """What the agent and the scaled runtime import is there."""
    ask = "import faust, grpc, opentelemetry.sdk, pynvml, redis; print('all')"
    python = prefix / "opt/sevenhop/bin/python"
    said = subprocess.run([python, "-W", "ignore", "-c", ask], capture_output=True, text=True, cwd=prefix)
    assert said.stdout == "all\n", said.stderr


def test_nothing_that_builds_is_in_it(prefix: Path) -> None:
    """No pip, no setuptools, nothing of the development group, and not the project's tests."""
    (site,) = (prefix / "opt/sevenhop/lib").glob("python3*/site-packages")
    inside = {path.name.partition("-")[0].lower() for path in site.iterdir()}
    builders = {"pip", "setuptools", "wheel", "hatchling", "editables", "pytest", "mypy", "ruff", "hypothesis", "tests"}
    assert inside & builders == set()
    assert "sevenhop" in inside
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"\nPython packages of the image: {size / 1e6:.0f} MB")


def test_it_is_run_by_nobody_in_particular() -> None:
    """The last user is a number and not root; nothing is installed after it."""
    final = [step for step in STEPS if step.stage == "final"]
    users = [step.words for step in final if step.verb == "USER"]
    assert users == ["65532:65532"]
    last_run = max(number for number, step in enumerate(final) if step.verb in ("RUN", "COPY"))
    assert last_run < next(number for number, step in enumerate(final) if step.verb == "USER")
    assert not any(step.verb == "HEALTHCHECK" for step in final)
    installed = " ".join(step.words for step in final if step.verb == "RUN")
    assert not re.search(r"pip|setuptools|gcc|build-essential|-dev\b", installed)


def test_the_builder_sees_only_what_is_copied() -> None:
    """.dockerignore lets through what the Dockerfile copies, and nothing else."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").split("\n")
    let_through = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = {
        source
        for step in STEPS
        if step.verb == "COPY" and not step.words.startswith("--from")
        for source in step.words.split()[:-1]
    }
    assert "*" in lines
    assert let_through == copied
