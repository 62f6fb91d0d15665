"""Commands start fast because they import only what they need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("aiohttp", "asyncio", "cel_expr_python", "kubernetes", "pydantic", "rich", "slack_sdk", "sqlite3")
"""Modules that cost 20 to 400 ms each."""

POD = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": []}}'


def imported(*words: str, stdin: str = "") -> set[str]:
    """Top-level modules that a command has imported when it ends."""
    code = (
        "import sys; from sevenhop.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, *words], input=stdin, capture_output=True, text=True, timeout=60, check=True
    )
    return {line.split(".")[0] for line in ended.stderr.splitlines()}


@pytest.mark.parametrize("output", ["text", "json"])
def test_diagnose_of_json_imports_nothing_heavy(output: str) -> None:
    """A bundle of 300 objects is answered in half a second, start included."""
    loaded = imported("diagnose", "-f", "-", "-o", output, stdin=POD)

    assert "sevenhop" in loaded
    assert not loaded & set(HEAVY)


def test_diagnose_of_yaml_imports_libyaml_and_nothing_else_heavy(tmp_path: Path) -> None:
    """YAML costs its parser."""
    file = tmp_path / "p.yaml"
    file.write_text(POD)

    assert not imported("diagnose", "-f", str(file)) & set(HEAVY)


@pytest.mark.parametrize("words", [["version"], ["--version"], ["--help"], ["diagnose", "--help"]])
def test_help_and_version_import_nothing_heavy(words: list[str]) -> None:
    """Shells ask for them while somebody types."""
    assert not imported(*words) & set(HEAVY)
