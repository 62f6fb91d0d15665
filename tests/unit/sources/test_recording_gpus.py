"""Recordings carry what GPU agents say."""

from __future__ import annotations

from pathlib import Path

from sevenhop.core.gpu_sample import ContainerUsage, Holder
from sevenhop.sources.recording import Recorder, Recording
from tests.builders import NOON, pod
from tests.unit.inventory.gpu_agents import Agent


def test_samples_and_xids_read_back_as_they_were(tmp_path: Path) -> None:
    """
    Equal, in their order, or a replay would end elsewhere.
    """
    agent = Agent("n", 2)
    agent.pods = {0: [pod("p", node="n", gpus=1)]}
    agent.changes[1] = {"error": "GPU is lost"}
    usage = (ContainerUsage(holder=Holder("prod", "p", "main"), cpu_cores=1.5, memory_bytes=2**30),)
    events = [
        agent.sample(1, usage=usage, problems=("NVML: driver too old for GPM",), skew=3),
        agent.xid(2, 79, 1, text="GPU has fallen off the bus.", via="kmsg"),
        agent.sample(3, only=[1]),
    ]
    path = tmp_path / "recording"

    with Recorder(path, cluster="test", started_at=NOON) as write:
        for event in events:
            write(event)

    assert list(Recording(path)) == events
