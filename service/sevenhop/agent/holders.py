"""Devices as plug-ins call them, matched to GPUs as NVML calls them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from sevenhop.agent.pod_resources import Device
from sevenhop.core.gpu_sample import GpuReading, Holder

_UUID = re.compile(r"((?:GPU|MIG)-[0-9A-Za-z/-]+)")
_INDEX = re.compile(r"(\d+)(?::(\d+))?")  # k8s-device-plugin with deviceIDStrategy=index; gpu:instance under MIG
_FILE = re.compile(r"nvidia(\d+)(/.*)?")  # GKE's plug-in: nvidia0, nvidia0/gi1, nvidia0/vgpu1
_CLAIMED = re.compile(r"(?:.*[=-])?gpu-(\d+)(-.+)?")  # NVIDIA's DRA driver: gpu-<minor>, gpu-<minor>-mig-…
_REPLICA = "::"  # time slicing and MPS: <uuid>::3


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        by: UUID to its holders, in order.
        vague: Devices that a container holds and no GPU could be found for, in words.
        is_known: Whether every GPU device could be placed: else a GPU without a holder may have one.
    """

    by: dict[str, tuple[Holder, ...]] = {}
    vague: tuple[str, ...] = ()
    is_known: bool = True


def match(devices: Iterable[Device], readings: Iterable[GpuReading], minors: Mapping[str, int]) -> Held:
    """
    Who holds what.

    A UUID that NVML does not show is a GPU that is gone: it is told, and is no doubt about the others.  A part of a
    GPU that cannot be told apart is held on the whole GPU, and in words.

    Args:
        minors: UUID to the number of the device file.
    """
    readings = tuple(readings)
    by_uuid = {reading.uuid: reading for reading in readings}
    by_minor = {number: uuid for uuid, number in minors.items() if number >= 0}
    found: dict[str, set[Holder]] = {}
    vague: dict[str, None] = {}
    is_known = True
    for device in devices:
        if not _is_gpu(device):
            continue
        uuid, whole = _place(device, readings, by_uuid, by_minor)
        if uuid:
            found.setdefault(uuid, set()).add(device.holder)
        if not uuid or whole:
            holder = f"{device.holder.namespace}/{device.holder.pod}"
            is_gone = not uuid and _UUID.match(device.id) is not None
            why = (
                "NVML does not show it"
                if is_gone
                else "which part of the GPU is not known"
                if whole
                else "unknown form"
            )
            vague[f"{holder} holds {device.id[:80]}: {why}"] = None
            is_known = is_known and (is_gone or bool(uuid))
    return Held(by={uuid: tuple(sorted(who)) for uuid, who in found.items()}, vague=tuple(vague), is_known=is_known)


def _is_gpu(device: Device) -> bool:
    if device.is_claimed:
        return device.resource == "gpu.nvidia.com" or "gpu.nvidia.com" in device.id
    # Resources may be renamed; then the UUID still speaks for itself.
    name = device.resource.removeprefix("nvidia.com/")
    is_ours = name != device.resource and name.startswith(("gpu", "mig-", "pgpu"))
    return is_ours or _UUID.match(device.id) is not None


def _place(
    device: Device,
    readings: tuple[GpuReading, ...],
    by_uuid: Mapping[str, GpuReading],
    by_minor: Mapping[int, str],
) -> tuple[str, bool]:
    """(UUID or empty, whether only the whole GPU is known while a part of it is held)."""
    name = device.id.partition(_REPLICA)[0]
    if name in by_uuid:
        return name, False
    if _UUID.match(name):
        return "", False
    if device.is_claimed:
        if claimed := _CLAIMED.fullmatch(name):
            return _part(by_minor.get(int(claimed[1]), ""), readings, is_part=bool(claimed[2]))
        return "", False
    if by_file := _FILE.fullmatch(name):
        is_part = (by_file[2] or "").startswith("/gi")
        return _part(by_minor.get(int(by_file[1]), ""), readings, is_part=is_part)
    if by_index := _INDEX.fullmatch(name):
        whole = [reading for reading in readings if reading.index == int(by_index[1]) and not reading.parent]
        if not whole:
            return "", False
        if by_index[2] is None:
            return whole[0].uuid, False
        parts = [reading.uuid for reading in readings if reading.parent == whole[0].uuid]
        number = int(by_index[2])
        return (parts[number], False) if number < len(parts) else (whole[0].uuid, True)
    return "", False


def _part(gpu: str, readings: tuple[GpuReading, ...], *, is_part: bool) -> tuple[str, bool]:
    if not gpu or not is_part:
        return gpu, False
    parts = [reading.uuid for reading in readings if reading.parent == gpu]
    return (parts[0], False) if len(parts) == 1 else (gpu, True)
