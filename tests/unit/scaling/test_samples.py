"""Manifests that the frameworks' own projects publish."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sevenhop.core.objects.decode import UndecodableError, convert
from sevenhop.core.objects.kinds import kind_of
from sevenhop.core.remediation.reduction import Conflict, Ruler
from sevenhop.frameworks.scaling import SCALING
from tests.shared import SHARED
from tests.unit.scaling.world import World

SAMPLES = SHARED / "data" / "samples"
FILES = sorted(SAMPLES.glob("*/*.yaml")) if SAMPLES.is_dir() else []


def manifests(path: Path) -> list[dict[str, Any]]:
    """Those of kinds that are read, in one namespace, as if an API server had taken them."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = yaml.load_all(path.read_text("utf-8"), Loader=loader)  # a safe loader
    taken = [manifest for manifest in found if isinstance(manifest, dict) and _is_taken(manifest)]
    for number, manifest in enumerate(taken):
        manifest["metadata"] |= {"namespace": "prod", "uid": f"uid-{number}"}
    return taken


def _is_taken(manifest: dict[str, Any]) -> bool:
    """Some are templates still, with words where numbers will be: no API server would take these."""
    kind = kind_of(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    if kind is None or not manifest.get("metadata", {}).get("name"):
        return False
    try:
        convert(kind, manifest)
    except UndecodableError:
        return False
    return True


@pytest.mark.skipif(not FILES, reason="shared data absent (SEVENHOP_SHARED)")
@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.stem}" for path in FILES])
def test_every_component_gets_an_answer(path: Path) -> None:
    """
    Whatever a published manifest looks like, each of its components has a ruler, whose patch can be written, or a
    refusal with words.
    """
    world = World(manifests(path))

    for workload in world.discovery.workloads.values():
        spec = SCALING[workload.framework]
        for part in workload.components:
            found = spec.rule(world, workload, part, [])
            if isinstance(found, Ruler):
                actions = spec.actions(world, workload, part, found, found.floor, [])
                assert not isinstance(actions, Conflict), actions
                assert actions[-1].before > actions[-1].after  # type: ignore[union-attr]  # a Scale comes last
            else:
                assert len(found.text) > 20
