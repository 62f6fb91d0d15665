"""What project files do not say: where they were made."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shared import ROOT

SKIPPED = frozenset(
    (".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".sevenhop",
     ".import_linter_cache", "dist", "build", "htmlcov", "node_modules")
)  # fmt: skip

FORBIDDEN: dict[str, re.Pattern[str]] = {
    # Paths inside of containers, as engines print them, are no machine's of ours.
    "a machine's path": re.compile(
        r"(?<![\w.:/-])/(?:work|tmp|home/\w+|Users/\w+)/[\w.]|(?<![\w.:/-])/root/(?!\.cache/huggingface)[\w.]"
    ),
    "a package index": re.compile(
        r"(?i)\b(?:pypi\.org|pythonhosted\.org|proxy\.golang\.org|sum\.golang\.org|registry\.npmjs\.org)"
        r"|\bindex[-_]url\s*=|\bGOPROXY=http"
    ),
    "a page that is not in the project": re.compile(r"\bdesign (?:§|\.md)|\bdesign\.md\b|\bfacts-and-rules\.md\b"),
    "an address on a private network": re.compile(r"https?://(?:[\w-]+\.)+(?:internal|local|corp|lan)\b"),
}


def files() -> Iterator[Path]:
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.endswith(".egg-info")]
        yield from (Path(folder) / name for name in sorted(names) if not name.startswith(".coverage"))


def text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        return ""  # pictures and recordings


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what: str) -> None:
    """
    A stranger's machine is not ours: no file of the project names one.
    """
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in files()
        if path != Path(__file__)
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]

    assert found == []


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a machine's path", "state: /home/anna/state"),
        ("a machine's path", "open('/tmp/x')"),
        ("a package index", "see https://pypi.org/simple"),
        ("a page that is not in the project", "in order (design §7)"),
        ("an address on a private network", "proxy: http://mirror.corp/x"),
    ],
)
def test_the_patterns_find(what: str, line: str) -> None:
    """
    Each pattern finds what it is there for.
    """
    assert FORBIDDEN[what].search(line)
