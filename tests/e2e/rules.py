"""The shipped rules with shorter waits, for tests that run in real time, and a small one that needs none."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.shared import ROOT

FEW_GPUS = """\
id: node-has-few-gpus
status: experimental
subject: node
expr: node.gpu.allocatable < 8
for: 0s
severity: warning
annotations:
  summary: "{{ node }} offers few GPUs"
description: A node offers fewer GPUs than all of ours have, and what waits for them waits longer.
false_positives: [A node that has fewer by design.]
triage: |
  1. Look at the node.
"""


def hurried_rules(folder: Path, hold: Mapping[str, str], keep: str = "1s") -> Path:
    """
    Copy the shipped rules into `folder`, with another `for:` (and `keep_firing_for:`) for some of them.

    Args:
        hold: Rule id to its `for:`.
    """
    target = folder / "rules"
    shutil.copytree(ROOT / "rules", target, ignore=shutil.ignore_patterns("*.test.yaml"))
    for rule, value in hold.items():
        (path,) = target.rglob(f"{rule}.yaml")
        text, waits = re.subn(r"(?m)^for: .*$", f"for: {value}", path.read_text("utf-8"))
        text, keeps = re.subn(r"(?m)^keep_firing_for: .*$", f"keep_firing_for: {keep}", text)
        assert (waits, keeps) == (1, 1), f"{rule} has no `for:` and `keep_firing_for:` of its own line"
        path.write_text(text, "utf-8")
    return target


def few_gpus_rule(folder: Path) -> Path:
    """A folder of rules with `FEW_GPUS` alone, below this one."""
    target = folder / "discovery"
    target.mkdir(exist_ok=True)
    (target / "node-has-few-gpus.yaml").write_text(FEW_GPUS, "utf-8")
    return target


def patient_rules() -> list[str]:
    """Ids of the shipped rules that wait at all before they fire."""
    found = [path for path in (ROOT / "rules").rglob("*.yaml") if not path.name.endswith(".test.yaml")]
    return sorted(path.stem for path in found if not re.search(r"(?m)^for: 0s", path.read_text("utf-8")))
