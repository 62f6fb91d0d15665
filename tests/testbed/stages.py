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
_KEY = f'.metadata.annotations["{ANNOTATION}"]'
_DRAIN = f"{ANNOTATION}-drain"


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


def _chosen_by(stage: dict[str, Any]) -> set[str]:
    """The values of the annotation that a stage of ours is played for."""
    for expression in stage["spec"]["selector"]["matchExpressions"]:
        if expression["key"] == _KEY:
            # A healthy pod that has not started is started by KWOK's own stage.
            return set(expression["values"]) - {"healthy"}
    raise ValueError(f"stage {stage['metadata']['name']} does not ask for {ANNOTATION}")


def _without(stage: dict[str, Any], failures: set[str]) -> dict[str, Any]:
    """
    Keep one of KWOK's stages off objects that are to fail.

    Two stages that both match would be played at random; and KWOK's would go on to heal what ours
    broke. Deletion concerns all pods and only gets a delay that the pod may choose.
    """
    spec = stage["spec"]
    if spec["next"].get("delete"):
        spec["delay"] = {"durationFrom": {"expressionFrom": f'.metadata.annotations["{_DRAIN}"]'}}
    else:
        spec["selector"]["matchExpressions"].append({"key": _KEY, "operator": "NotIn", "values": sorted(failures)})
    return stage
