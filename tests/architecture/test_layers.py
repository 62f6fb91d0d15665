"""Who may know whom: the contracts of pyproject.toml, and what the core may import and call."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shared import ROOT

PACKAGE = ROOT / "service" / "sevenhop"
PURE = sorted((*(PACKAGE / "core").rglob("*.py"), *(PACKAGE / "frameworks").rglob("*.py")))

ALLOWED = frozenset(
    (
        "__future__", "bisect", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal", "difflib",
        "enum", "fnmatch", "fractions", "functools", "graphlib", "hashlib", "heapq", "ipaddress", "itertools", "json",
        "math", "operator", "posixpath", "re", "shlex", "string", "struct", "textwrap", "types", "typing",
        "unicodedata", "urllib", "weakref", "zlib", "msgspec",
    )
)  # fmt: skip
"""Modules without I/O, clock or randomness; a new one is worth a look."""

YAML = {"frameworks/kuberay.py"}
"""A RayService's applications are a YAML text inside of the object; whoever else needs this is worth a look too."""

CLOCKS = frozenset(("now", "utcnow", "today"))
WORLD = frozenset(("open", "print", "input", "exec", "eval", "__import__"))


def test_contracts_hold() -> None:
    """
    Dependencies point one way, as docs/architecture.md draws them.
    """
    # In a process of its own: import-linter sets up logging, which silences the loggers of other tests.
    lint = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    said = subprocess.run([sys.executable, "-c", lint], cwd=ROOT, capture_output=True, text=True, check=False)

    assert said.returncode == 0, said.stdout + said.stderr


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", PURE, ids=place)
def test_pure_modules(path: Path) -> None:
    """
    Core and frameworks import msgspec, a few harmless modules and each other, and ask neither clock nor world.
    """
    tree = ast.parse(path.read_text("utf-8"))
    names = {name for name in imported(tree) if not name.startswith(("sevenhop.core", "sevenhop.frameworks"))}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]

    extra = {"yaml"} if place(path) in YAML else set()
    assert {name.partition(".")[0] for name in names} - ALLOWED == extra
    assert [c.func.attr for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in CLOCKS] == []
    assert [c.func.id for c in calls if isinstance(c.func, ast.Name) and c.func.id in WORLD] == []
