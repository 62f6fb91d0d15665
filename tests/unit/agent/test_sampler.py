"""When something is sent, and what is in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from sevenhop.agent.kmsg import KmsgXid
from sevenhop.agent.nvml import NodeReading
from sevenhop.agent.nvml_told import Xid
from sevenhop.agent.pod_resources import Device
from sevenhop.agent.sampler import MAX_PROBLEMS, Sampler
from sevenhop.agent.xid_lines import XidLine
from sevenhop.core.events import GpusSampled
from sevenhop.core.gpu_sample import ContainerUsage, GpuReading, Holder, Throttle

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
TWO = tuple(GpuReading(index=i, uuid=f"GPU-{i}", product="H100") for i in range(2))


class Node:
    """A sampler, and a reading that can be changed; each step is two seconds later."""

    def __init__(self) -> None:
        self.sampler = Sampler("n", epoch=7)
        self.read = NodeReading(readings=TWO, is_whole=True, driver="550")
        self.devices: list[Device] | None = []
        self.at = AT
        self.usage_asked = 0

    def step(self, *, seconds: float = 2, problems: tuple[str, ...] = ()) -> GpusSampled | None:
        readings, has_holders, vague = self.sampler.join(self.read, self.devices)

        def usage() -> tuple[ContainerUsage, ...]:
            self.usage_asked += 1
            return ()

        sample = self.sampler.sample(
            self.at, self.read, readings, has_holders=has_holders, problems=(*problems, *vague), usage=usage, up_s=90.5
        )
        self.at += timedelta(seconds=seconds)
        return sample

    def change(self, index: int, **fields: Any) -> None:
        readings = list(self.read.readings)
        readings[index] = msgspec.structs.replace(readings[index], **fields)
        self.read = msgspec.structs.replace(self.read, readings=tuple(readings))


def test_one_summary_every_fifteen_seconds() -> None:
    """Whole, numbered, and the use of containers is averaged from one to the next."""
    node = Node()
    sent = [sample for _ in range(16) if (sample := node.step())]
    assert [(each.at - AT).total_seconds() for each in sent] == [0, 16]
    assert [(each.epoch, each.seq, each.is_whole, each.node) for each in sent] == [(7, 1, True, "n"), (7, 2, True, "n")]
    assert sent[0].readings == TWO
    assert node.usage_asked == 2
    assert {each.up_s for each in sent} == {90.5}


def test_a_change_is_sent_at_once_and_alone() -> None:
    """Only the GPU that changed; the summary keeps its time."""
    node = Node()
    node.step()
    node.change(1, throttle=Throttle.THERMAL)
    sent = node.step()
    assert sent is not None
    assert [each.uuid for each in sent.readings] == ["GPU-1"]
    assert not sent.is_whole
    assert node.step() is None
    assert node.step(seconds=9) is None  # 6 s after the summary
    assert node.step() is not None  # 15 s after it


def test_use_alone_sends_nothing() -> None:
    """It is in the next summary."""
    node = Node()
    node.step()
    node.change(0, utilization=0.9, power_w=650.0)
    assert node.step() is None


def test_a_gpu_that_vanished_needs_a_whole_sample() -> None:
    """What is not in a part says nothing; at once, not in 15 s."""
    node = Node()
    node.step()
    node.read = msgspec.structs.replace(node.read, readings=TWO[:1])
    sent = node.step()
    assert sent is not None
    assert (sent.is_whole, len(sent.readings)) == (True, 1)


def test_a_reading_that_is_not_whole_concludes_nothing() -> None:
    """A GPU that could not be named is not gone, and is not told as back later."""
    node = Node()
    node.step()
    node.read = msgspec.structs.replace(node.read, readings=TWO[:1], is_whole=False)
    assert node.step() is None
    node.read = msgspec.structs.replace(node.read, readings=TWO, is_whole=True)
    assert node.step() is None
    node.read = NodeReading(problems=("NVML hangs",))
    sent = node.step(problems=("NVML hangs",))
    assert sent is not None
    assert (sent.is_whole, sent.readings, sent.problems) == (False, (), ("NVML hangs",))


def test_a_holder_that_comes_or_goes_is_sent_at_once() -> None:
    """So that a lost GPU finds its pod."""
    node = Node()
    node.step()
    node.devices = [Device(holder=Holder("prod", "a", "main"), resource="nvidia.com/gpu", id="GPU-1")]
    sent = node.step()
    assert sent is not None
    assert [(each.uuid, each.holders) for each in sent.readings] == [("GPU-1", (Holder("prod", "a", "main"),))]


def test_a_silent_kubelet_is_told_at_once_and_whole() -> None:
    """Holders are then unknown on the whole node, not nobody."""
    node = Node()
    node.step()
    node.devices = None
    sent = node.step(problems=("Pod Resources: refuses",))
    assert sent is not None
    assert (sent.has_holders, sent.is_whole, sent.problems) == (False, True, ("Pod Resources: refuses",))
    assert node.step(problems=("Pod Resources: refuses",)) is None


def test_holders_that_become_unknown_need_no_other_reason() -> None:
    """A device of unknown form is held: then no GPU may be said to be nobody's."""
    node = Node()
    node.step()
    node.devices = None
    sent = node.step()
    assert sent is not None
    assert (sent.has_holders, sent.is_whole) == (False, True)


def test_problems_are_bounded() -> None:
    """However many GPUs have one."""
    sent = Node().step(problems=tuple(f"{i}: {'x' * 1000}" for i in range(100)))
    assert sent is not None
    assert len(sent.problems) == MAX_PROBLEMS
    assert max(map(len, sent.problems)) <= 300


def test_a_clock_that_is_set_back_does_not_silence_us() -> None:
    """The next summary would be due in an hour."""
    node = Node()
    node.step()
    node.at -= timedelta(hours=1)
    assert node.step() is not None


def test_xids_share_the_numbers_of_samples() -> None:
    """What was seen first has the lower number; a kernel line keeps its own time."""
    node = Node()
    first = node.step()
    by_nvml = node.sampler.xid_by_nvml(AT, Xid(xid=79, pci="0000:3b:00.0", uuid="GPU-0"))
    line = XidLine(pci="0000:3b:00.0", xid=79, pid=4, text="GPU has fallen off the bus.")
    by_kmsg = node.sampler.xid_by_kmsg(AT, KmsgXid(line=line, ago_s=3.0, uuid="GPU-0"))
    assert first is not None
    assert (first.seq, by_nvml.seq, by_kmsg.seq) == (1, 2, 3)
    assert (by_nvml.via, by_nvml.uuid, by_kmsg.via, by_kmsg.pid) == ("nvml", "GPU-0", "kmsg", 4)
    assert by_kmsg.at == AT - timedelta(seconds=3)
