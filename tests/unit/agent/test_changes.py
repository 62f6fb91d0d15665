"""What is told at once, and how many NVLinks are missing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sevenhop.agent.changes import changed, with_links
from sevenhop.core.gpu_sample import GpuReading, Holder, Throttle

GPU = GpuReading(index=0, uuid="GPU-0", product="H100", throttle=Throttle.NONE, ecc_uncorrected=0, utilization=0.5)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("error", "GPU is lost"),
        ("throttle", Throttle.THERMAL),
        ("throttle", Throttle.HW),
        ("ecc_uncorrected", 1),
        ("remap_pending", True),
        ("remap_failed", True),
        ("nvlinks_down", 1),
        ("profile", "1g.10gb"),
        ("holders", (Holder("a", "b", "c"),)),
    ],
)
def test_what_is_told_at_once(field: str, value: Any) -> None:
    """Levels that ask somebody to act."""
    now = msgspec.structs.replace(GPU, **{field: value})
    assert changed({GPU.uuid: GPU}, [now]) == (now,)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("utilization", 0.9),
        ("sm_active", 0.9),
        ("power_w", 700.0),
        ("temperature_c", 80),
        ("memory_used_mib", 5),
        ("ecc_corrected", 9),
        ("processes", 3),
        ("throttle", Throttle.POWER),
    ],
)
def test_what_can_wait(field: str, value: Any) -> None:
    """What moves all the time, and the power cap, are in the next summary."""
    assert changed({GPU.uuid: GPU}, [msgspec.structs.replace(GPU, **{field: value})]) == ()


def test_a_new_gpu_is_told() -> None:
    """It was not there before."""
    assert changed({}, [GPU]) == (GPU,)


@pytest.mark.parametrize(
    ("up", "most_up", "down"),
    [
        pytest.param([18, 18, 18, 17], {}, [0, 0, 0, 1], id="one of equals has fewer"),
        pytest.param([18, 18, 18, 0], {}, [0, 0, 0, 18], id="one has none"),
        pytest.param([4, 4, 0, 0], {}, [0, 0, 0, 0], id="bridged pairs are wired differently"),
        pytest.param([18, 17], {}, [0, 0], id="two may be wired differently"),
        pytest.param([18, 17], {"GPU-1": 18}, [0, 1], id="but it had more before"),
        pytest.param([18, 18, 18, None], {}, [0, 0, 0, None], id="not told"),
        pytest.param([0, 0, 0, 0], {}, [0, 0, 0, 0], id="no bridge at all"),
    ],
)
def test_links_that_should_be_up(up: list[int | None], most_up: dict[str, int], down: list[int | None]) -> None:
    """NVML tells which are up, not which are wired: only what surely was meant to be up is missing."""
    readings = [GpuReading(index=i, uuid=f"GPU-{i}", product="H100") for i in range(len(up))]
    found = with_links(readings, {f"GPU-{i}": count for i, count in enumerate(up)}, dict(most_up))
    assert [reading.nvlinks_down for reading in found] == down
