"""Where a command finds the settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared import ROOT


@pytest.mark.parametrize(
    ("words", "named"),
    [([], "from-variable.yaml"), (["--config", "from-option.yaml"], "from-option.yaml")],
    ids=["by the variable", "the option wins"],
)
def test_the_variable_names_the_settings(tmp_path: Path, words: list[str], named: str) -> None:
    """What is typed in the service's pod finds its settings by SEVENHOP_CONFIG."""
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SEVENHOP_CONFIG": "from-variable.yaml"}
    for name in ("from-variable.yaml", "from-option.yaml"):
        (tmp_path / name).write_text("clutser: x\n", "utf-8")
    command = [sys.executable, "-m", "sevenhop.cli.main", "doctor", *words]
    answer = subprocess.run(
        command, cwd=tmp_path, env={**environ, "PYTHONPATH": str(ROOT / "service")}, capture_output=True, text=True
    )
    assert answer.returncode == 2
    assert f"{named}:1: clutser: unknown key" in answer.stderr
