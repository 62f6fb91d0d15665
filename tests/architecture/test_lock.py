"""What is installed: pinned, from no named host, and each for a reason."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from tests.shared import ROOT

LOCK = (ROOT / "requirements.lock").read_text("utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text("utf-8")


def name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def requirements() -> Iterator[str]:
    """All requirements of pyproject.toml as they stand there, the build's own included."""
    data = tomllib.loads(PROJECT)
    yield from data["build-system"]["requires"]
    yield from data["project"]["dependencies"]
    for group in (*data["project"]["optional-dependencies"].values(), *data["dependency-groups"].values()):
        yield from group


def test_the_lock_names_no_host() -> None:
    """
    It installs from whichever index a machine uses.
    """
    assert re.findall(r"(?im)https?://\S+|^--?(?:extra-)?index-url.*|^-i .*|--find-links.*|\S+ @ \S+", LOCK) == []


def test_everything_is_pinned_with_hashes() -> None:
    """
    Nothing else than what was locked can be installed.
    """
    joined = LOCK.replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]

    assert len(lines) > 30
    assert [line[:60] for line in lines if not re.match(r"[A-Za-z0-9._-]+(\[[^]]+\])?==\S+", line)] == []
    assert [line[:60] for line in lines if "--hash=sha256:" not in line] == []


def test_the_lock_has_every_dependency() -> None:
    """
    A dependency added to pyproject.toml is locked (`make lock`).
    """
    locked = {name_of(line) for line in LOCK.splitlines() if re.match(r"[A-Za-z0-9]", line)}

    assert [name for name in map(name_of, requirements()) if name not in locked] == []


def test_every_dependency_says_why() -> None:
    """
    On its line stands the one reason it is there for.
    """
    silent = []
    for requirement in requirements():
        lines = [line for line in PROJECT.splitlines() if f'"{requirement}"' in line]
        reasons = [re.search(r"#\s*(\S.*)$", line) for line in lines]
        if not any(reason and len(reason[1]) > 5 for reason in reasons):
            silent.append(requirement)

    assert silent == []
