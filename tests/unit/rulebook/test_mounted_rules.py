"""Rules in a folder as a kubelet mounts a ConfigMap."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenhop.core.facts.table import FACTS
from sevenhop.rulebook.load import load_rulebook, rule_files
from sevenhop.rulebook.shipped import shipped_rules
from sevenhop.rulebook.testing import test_files as timeline_files


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """Files that are links to links: name → ``..data/name``, ``..data`` → ``..2026_11_30``."""
    (rule,) = shipped_rules().rglob("component-short-of-gpus.yaml")
    folder = tmp_path / rule.parent.name
    real = folder / "..2026_11_30_10_00_00.123"
    real.mkdir(parents=True)
    (folder / "..data").symlink_to(real.name)
    for path in (rule, rule.with_suffix(".test.yaml")):
        (real / path.name).write_text(path.read_text("utf-8"), "utf-8")
        (folder / path.name).symlink_to(f"..data/{path.name}")
    return folder


def test_each_rule_is_there_once(mounted: Path) -> None:
    """What lies in hidden folders is the same again."""
    assert rule_files([mounted]) == [mounted / "component-short-of-gpus.yaml"]
    book = load_rulebook([mounted], FACTS)
    assert [rule.id for rule in book.rules] == ["component-short-of-gpus"]
    assert book.problems == ()


def test_each_timeline_is_there_once(mounted: Path) -> None:
    """`sevenhop rules test` runs it once."""
    assert timeline_files([mounted]) == [mounted / "component-short-of-gpus.test.yaml"]
