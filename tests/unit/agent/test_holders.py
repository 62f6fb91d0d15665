"""Which GPU a plug-in means, in all the ways in which plug-ins call them."""

from __future__ import annotations

import pytest

from sevenhop.agent.holders import match
from sevenhop.agent.pod_resources import Device
from sevenhop.core.gpu_sample import GpuReading, Holder

ME = Holder("prod", "decode-0", "main")
READINGS = (
    GpuReading(index=0, uuid="GPU-a"),
    GpuReading(index=1, uuid="GPU-b"),
    GpuReading(index=1, uuid="MIG-b1", parent="GPU-b", profile="1g.10gb"),
    GpuReading(index=1, uuid="MIG-b2", parent="GPU-b", profile="1g.10gb"),
    GpuReading(index=2, uuid="GPU-c"),
    GpuReading(index=2, uuid="MIG-c1", parent="GPU-c", profile="7g.80gb"),
)
MINORS = {"GPU-a": 3, "GPU-b": 1, "GPU-c": 0}


def device(name: str, resource: str = "nvidia.com/gpu", *, claimed: bool = False) -> Device:
    return Device(holder=ME, resource=resource, id=name, is_claimed=claimed)


@pytest.mark.parametrize(
    ("held", "uuid"),
    [
        pytest.param(device("GPU-a"), "GPU-a", id="uuid"),
        pytest.param(device("GPU-a::2", "nvidia.com/gpu.shared"), "GPU-a", id="time slice"),
        pytest.param(device("MIG-b2", "nvidia.com/mig-1g.10gb"), "MIG-b2", id="instance"),
        pytest.param(device("GPU-a", "corp.example/h100"), "GPU-a", id="renamed resource"),
        pytest.param(device("0"), "GPU-a", id="index"),
        pytest.param(device("1:1", "nvidia.com/mig-1g.10gb"), "MIG-b2", id="index of an instance"),
        pytest.param(device("nvidia3"), "GPU-a", id="device file, numbered otherwise than NVML's index"),
        pytest.param(device("nvidia3/vgpu1"), "GPU-a", id="shared on GKE"),
        pytest.param(device("gpu-3", "gpu.nvidia.com", claimed=True), "GPU-a", id="claimed"),
        pytest.param(
            device("k8s.gpu.nvidia.com/device=gpu-3", "", claimed=True), "GPU-a", id="claimed, before the driver told"
        ),
        pytest.param(device("gpu-0-mig-7g.80gb-0-8", "gpu.nvidia.com", claimed=True), "MIG-c1", id="the only instance"),
    ],
)
def test_a_device_is_found(held: Device, uuid: str) -> None:
    """By UUID, index or device file; whatever the resource is called."""
    found = match([held], READINGS, MINORS)
    assert found.by == {uuid: (ME,)}
    assert found.vague == ()
    assert found.is_known


def test_a_part_that_cannot_be_told_apart() -> None:
    """Its GPU is held, and it is said that the part is not known."""
    found = match([device("gpu-1-mig-1g.10gb-19-0", "gpu.nvidia.com", claimed=True)], READINGS, MINORS)
    assert found.by == {"GPU-b": (ME,)}
    assert "which part of the GPU is not known" in found.vague[0]
    assert found.is_known


def test_a_gpu_that_is_gone() -> None:
    """A pod that holds a GPU which NVML does not show is told, and casts no doubt on the others."""
    found = match([device("GPU-gone"), device("GPU-a")], READINGS, MINORS)
    assert found.by == {"GPU-a": (ME,)}
    assert found.vague == ("prod/decode-0 holds GPU-gone: NVML does not show it",)
    assert found.is_known


@pytest.mark.parametrize("name", ["what-is-this", "99", "nvidia99"])
def test_a_device_of_unknown_form(name: str) -> None:
    """Then a GPU without a holder may have one: holders are unknown, not nobody."""
    found = match([device(name)], READINGS, MINORS)
    assert found.by == {}
    assert not found.is_known
    assert "unknown form" in found.vague[0]


@pytest.mark.parametrize(
    "other",
    [
        device("0", "example.com/fpga"),
        device("3", "cpu"),
        device("channel-0", "compute-domain.nvidia.com", claimed=True),
        device("mlx5_0", "rdma/hca"),
    ],
)
def test_other_devices_are_left_alone(other: Device) -> None:
    """Network cards and FPGAs have indices too."""
    found = match([other], READINGS, MINORS)
    assert (found.by, found.vague, found.is_known) == ({}, (), True)


def test_several_holders_of_one() -> None:
    """Time slices are held by several, each named once."""
    you = Holder("prod", "decode-1", "main")
    devices = [
        Device(holder=you, resource="nvidia.com/gpu", id="GPU-a::1"),
        device("GPU-a::0"),
        device("GPU-a::2"),
    ]
    assert match(devices, READINGS, MINORS).by == {"GPU-a": (ME, you)}
