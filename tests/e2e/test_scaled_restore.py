"""
A worker reads a large partition back: its watchdog leaves it alone, it stays a member, and then it knows everything.

    SEVENHOP_ROUNDS=soak   150,000 objects; 5,000 by default.  `python -m bench restore` has the seconds
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from bench.restore import partition_records
from bench.scaled_bed import Bed, bed
from sevenhop.cli.cluster import ask_service
from tests.saying import Say

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

IS_SOAK = os.environ.get("SEVENHOP_ROUNDS") == "soak"
NODES, MODELS, OTHERS, PATIENCE = (5_000, 2_500, 115_400, "60s") if IS_SOAK else (200, 100, 3_800, "10s")
"""The patience is `runtime.no_progress`, its default in the soak."""


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with bed(tmp_path_factory.mktemp("restore"), runtime={"no_progress": PATIENCE, "edge_silence": "1h"}) as running:
        running.produce(running.topics.objects, partition_records(NODES, MODELS, OTHERS))
        yield running


@pytest.mark.parametrize("after", ["nothing", "a kill"])
def test_a_large_partition_is_restored_in_one_go(at: Bed, after: str, say: Say) -> None:
    """Once, by a process that nobody ended meanwhile, with or without state in Redis."""
    before = len(at.worker.log.read_text().splitlines()) if at.worker.log.exists() else 0
    took_s = at.start_worker()
    rows = ask_service(at.worker.state, "GET", "/get/workloads")
    said = at.worker.log.read_text().splitlines()[before:]
    say(f"{at.end(at.topics.objects):,} records after {after}: served {took_s:.1f} s after the start")
    assert at.worker.code is None
    assert [line for line in said if "ending" in line] == []
    assert sum("partition 0: rebuilt" in line for line in said) == 1
    assert len(rows) == MODELS
    assert {row["ready"] for row in rows} == {8}
    at.worker.kill()
