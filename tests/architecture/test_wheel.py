"""What travels in the wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.shared import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("*.whl")
    return found


def test_rules_and_playbooks_are_in_it(wheel: Path) -> None:
    """
    Whoever installs the wheel has every rule, with its tests, and the playbooks.
    """
    here = [
        path.relative_to(ROOT).as_posix()
        for folder in ("rules", "playbooks")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    ]
    inside = zipfile.ZipFile(wheel).namelist()

    assert len(here) > 50
    assert [path for path in here if f"sevenhop/_data/{path}" not in inside] == []


def test_only_the_package_is_in_it(wheel: Path) -> None:
    """
    Tests, documentation pages and benches stay at home; types, licence and the command are there.
    """
    inside = zipfile.ZipFile(wheel).namelist()
    (entry_points,) = [name for name in inside if name.endswith("entry_points.txt")]
    tops = {name.partition("/")[0] for name in inside if ".dist-info/" not in name}

    assert tops == {"sevenhop"}
    assert "sevenhop/py.typed" in inside
    assert [name for name in inside if name.endswith("/LICENSE")] != []
    assert "sevenhop = sevenhop.cli.main:main" in zipfile.ZipFile(wheel).read(entry_points).decode()


def test_an_installed_wheel_finds_its_own_rules(wheel: Path, tmp_path: Path) -> None:
    """
    Without a checkout around, the rules are those of the wheel.
    """
    zipfile.ZipFile(wheel).extractall(tmp_path)
    ask = "import sys; sys.path.insert(0, sys.argv[1])\nfrom sevenhop.rulebook.shipped import *\nprint(shipped_rules())"
    answer = subprocess.run(
        [sys.executable, "-P", "-c", ask, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert Path(answer.stdout.strip()) == (tmp_path / "sevenhop" / "_data" / "rules").resolve()
