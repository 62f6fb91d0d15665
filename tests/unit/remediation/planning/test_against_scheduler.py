"""What is promised of a set of victims, compared with what a real scheduler did once they were gone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sevenhop.core.inventory.objects import Key
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.remediation.planning.board import Outcome
from sevenhop.core.remediation.planning.queue import queue_of
from sevenhop.core.remediation.planning.simulate import Simulation
from tests.scheduler_cases import cases, objects_of


def _promised(case: dict[str, Any]) -> Outcome:
    cluster = Cluster(objects_of(case))
    need = cluster.pending[(case["subject"]["namespace"], case["subject"]["name"])]
    gone = frozenset[Key]((key[0], key[2]) for key in (name.partition("/") for name in case["donors"]))
    return Simulation(cluster, [need], queue_of(cluster, [need], ())).outcome(gone, tell=True)


def test_what_is_promised_came_true(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is promised that the scheduler did not do, on a node that was named; little is withheld that it did."""
    said: Counter[str] = Counter()
    broken: list[str] = []
    for case in cases("whatif"):
        came_true = bool(case["after"]["fits"])
        outcome = _promised(case)
        said[f"promised {outcome.holds}, placed {came_true}"] += 1
        if not outcome.holds:
            continue
        nodes = {name for _, names in outcome.nodes for name in names}
        if not came_true or case["after"]["node"] not in nodes:
            broken.append(case["id"])
    with capsys.disabled():
        print(f"\n{sum(said.values())} recorded cases: {dict(said)}; not kept {broken[:10]}")
    assert said["promised True, placed True"] > 0
    assert not broken
    kept = said["promised True, placed True"]
    assert kept >= 0.8 * (kept + said["promised False, placed True"])
