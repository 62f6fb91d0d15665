"""The kubelet's Pod Resources API, spoken with a real gRPC server on a unix socket."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.agent.pod_resources import Device, PodResources, PodResourcesError, parse_list
from sevenhop.agent.protobuf import ProtobufError, fields
from sevenhop.core.gpu_sample import Holder
from tests.fakes.kubelet import claim, devices, field, kubelet, pod

ANSWER = (
    pod("decode-0", devices("nvidia.com/gpu", "GPU-a", "GPU-b"), devices("rdma/hca", "mlx5_0"))
    + pod("mig-0", devices("nvidia.com/mig-1g.10gb", "MIG-1"))
    + pod("dra-0", claim("gpu.nvidia.com", "gpu-3", "k8s.gpu.nvidia.com/device=gpu-3"))
    + pod("dra-1", claim("", "", "k8s.gpu.nvidia.com/device=gpu-4"))
    + pod("idle-0")
    + field(99, "a field of a later version")
)


def held(name: str, resource: str, device: str, *, claimed: bool = False) -> Device:
    return Device(holder=Holder("prod", name, "main"), resource=resource, id=device, is_claimed=claimed)


EXPECTED = (
    held("decode-0", "nvidia.com/gpu", "GPU-a"),
    held("decode-0", "nvidia.com/gpu", "GPU-b"),
    held("decode-0", "rdma/hca", "mlx5_0"),
    held("mig-0", "nvidia.com/mig-1g.10gb", "MIG-1"),
    held("dra-0", "gpu.nvidia.com", "gpu-3", claimed=True),
    held("dra-1", "", "k8s.gpu.nvidia.com/device=gpu-4", claimed=True),
)


async def test_who_holds_what(tmp_path: Path) -> None:
    """Devices of plug-ins, MIG instances and claims, with their pods and containers."""
    socket = tmp_path / "kubelet.sock"
    async with kubelet(socket, lambda: ANSWER):
        asked = PodResources(socket)
        assert await asked.devices() == EXPECTED
        await asked.close()


async def test_a_kubelet_that_starts_anew(tmp_path: Path) -> None:
    """A new socket under the same name is found by itself."""
    socket = tmp_path / "kubelet.sock"
    asked = PodResources(socket, call_s=10)
    async with kubelet(socket, lambda: ANSWER):
        assert await asked.devices() == EXPECTED
    socket.unlink(missing_ok=True)
    with pytest.raises(PodResourcesError, match="is not there; mount its folder"):
        await asked.devices()
    async with kubelet(socket, lambda: b""):
        async with asyncio.timeout(10):
            while True:
                try:
                    assert await asked.devices() == ()
                    break
                except PodResourcesError:  # the old connection's end is noticed at the first call
                    await asyncio.sleep(0.05)
    await asked.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(grpc.StatusCode.UNIMPLEMENTED, "does not serve v1", id="too old"),
        pytest.param(grpc.StatusCode.PERMISSION_DENIED, "refuses: permission_denied", id="refused"),
        pytest.param(grpc.StatusCode.RESOURCE_EXHAUSTED, "refuses: resource_exhausted", id="rate limited"),
        pytest.param(30.0, "did not answer in time", id="hangs"),
        pytest.param(b"\x0a\x7fcut", "cannot be read: cut off", id="cut off"),
        pytest.param(field(1, b"\x0a\x02\xff\xff"), "cannot be read: not UTF-8", id="not text"),
    ],
)
async def test_an_answer_that_is_none(tmp_path: Path, answer: Any, said: str) -> None:
    """One line each, and holders are then unknown."""
    socket = tmp_path / "kubelet.sock"
    async with kubelet(socket, lambda: answer):
        asked = PodResources(socket, call_s=0.3 if said == "did not answer in time" else 10)
        with pytest.raises(PodResourcesError, match=said):
            await asked.devices()
        await asked.close()


async def test_a_socket_that_refuses(tmp_path: Path) -> None:
    """Nobody listens behind the name."""
    socket = tmp_path / "kubelet.sock"
    socket.touch()
    asked = PodResources(socket, call_s=10)
    with pytest.raises(PodResourcesError, match="socket refuses"):
        await asked.devices()
    await asked.close()


@given(st.binary(max_size=200))
def test_bytes_of_any_sort(data: bytes) -> None:
    """Read, or refused as what they are: never another error."""
    for read in (lambda: list(fields(data)), lambda: parse_list(data)):
        with suppress(ProtobufError):
            read()
