"""The stages KWOK is given: its own for healthy life, ours for failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_OURS = Path(__file__).parent / "stages"
_THEIRS = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
ANNOTATION = "sevenhop.dev/testbed"


def render(default_stages: Path) -> str:
    """Return KWOK's configuration: its stages from `default_stages`, kept off what is to fail, and ours."""
    documents: list[Any] = []
    failures: set[str] = set()
    for path in sorted(_OURS.glob("*.yaml")):
        for stage in yaml.safe_load_all(path.read_text()):
            documents.append(stage)
            failures |= _chosen_by(stage)
    for name in _THEIRS:
        stage = yaml.safe_load((default_stages / name).read_text())
        documents.append(_without(stage, failures))
    return yaml.safe_dump_all(documents)
