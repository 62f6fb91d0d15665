"""
dcgm-exporter's series as the samples that our agent would have sent.

Names: https://github.com/NVIDIA/dcgm-exporter, etc/default-counters.csv; field ids and blank values: dcgm_fields.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from sevenhop.core.events import GpusSampled, XidSeen
from sevenhop.core.gpu_sample import GpuReading, Holder
from sevenhop.core.gpu_words import normal_pci, throttle_of
from sevenhop.sources.dcgm.series import Series

PREFIX = "DCGM_"
NODE_LABELS = ("node", "Hostname", "kubernetes_node", "nodename")

_XID = "DCGM_FI_DEV_XID_ERRORS"
_XID_COUNT = "DCGM_EXP_XID_ERRORS_COUNT"

_RATIOS = {"DCGM_FI_PROF_SM_ACTIVE": "sm_active", "DCGM_FI_PROF_SM_OCCUPANCY": "sm_occupancy"}
_COUNTS = {
    "DCGM_FI_DEV_GPU_TEMP": "temperature_c",
    "DCGM_FI_DEV_FB_USED": "memory_used_mib",
    "DCGM_FI_DEV_FB_TOTAL": "memory_total_mib",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "ecc_uncorrected",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": "ecc_corrected",
}
_FLAGS = {"DCGM_FI_DEV_ROW_REMAP_PENDING": "remap_pending", "DCGM_FI_DEV_ROW_REMAP_FAILURE": "remap_failed"}
_REASONS = ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS")

Key = tuple[str, str, str]
"""Node, UUID of the GPU, id of the MIG instance."""


class NodeGpus(msgspec.Struct, frozen=True, kw_only=True):
    """
    What the series say of one node.

    Attributes:
        xid_counts: (key of the GPU, XID) to how many there were lately.
    """

    node: str
    readings: tuple[GpuReading, ...]
    has_holders: bool
    driver: str = ""
    xid_counts: dict[tuple[Key, int], int] = {}


def read_nodes(series: Iterable[Series], node_label: str = "") -> tuple[list[NodeGpus], int]:
    """
    The nodes that the series tell of, and how many series name no node or no GPU.
    """
    grouped: dict[str, dict[Key, list[Series]]] = {}
    nameless = 0
    for each in series:
        node = _node(each.labels, node_label)
        uuid = each.labels.get("UUID") or each.labels.get("uuid") or ""
        if not node or not uuid:
            nameless += 1
            continue
        key = (node, uuid, each.labels.get("GPU_I_ID", ""))
        grouped.setdefault(node, {}).setdefault(key, []).append(each)
    return [_read_node(node, gpus) for node, gpus in sorted(grouped.items())], nameless


def to_sample(gpus: NodeGpus, at: datetime, epoch: int, seq: int) -> GpusSampled:
    return GpusSampled(
        at=at,
        epoch=epoch,
        seq=seq,
        node=gpus.node,
        is_whole=True,
        readings=gpus.readings,
        has_holders=gpus.has_holders,
        driver=gpus.driver,
        received_at=at,
    )


def new_xids(before: NodeGpus | None, now: NodeGpus) -> list[tuple[str, str, int]]:
    """
    (PCI address, UUID, XID) of what is new since the look before.

    By their counts, where the exporter has them.  The last XID alone is in the readings: whether it is a new one only
    shows against what was known before, over restarts of ours too.
    """
    pci = {reading.uuid: reading.pci for reading in now.readings}
    found: dict[tuple[str, int], None] = {}
    for (key, xid), count in now.xid_counts.items():
        if before is not None and count > before.xid_counts.get((key, xid), 0):
            found[key[1], xid] = None
    return [(pci.get(uuid, ""), uuid, xid) for uuid, xid in found]


def to_xid(node: str, found: tuple[str, str, int], at: datetime, epoch: int, seq: int) -> XidSeen:
    pci, uuid, xid = found
    return XidSeen(at=at, epoch=epoch, seq=seq, node=node, xid=xid, pci=pci, uuid=uuid, via="dcgm")


def _read_node(node: str, gpus: Mapping[Key, list[Series]]) -> NodeGpus:
    readings = []
    xids: dict[str, int] = {}
    counts: dict[tuple[Key, int], int] = {}
    driver = ""
    has_pods = False
    is_vague = False
    for key, series in gpus.items():
        values: dict[str, float] = {}
        holders: set[Holder] = set()
        labels: dict[str, str] = {}
        for each in series:
            labels.update({name: value for name, value in each.labels.items() if value})
            holder = _holder(each.labels)
            if holder is not None:
                holders.add(holder)
            if each.name == _XID_COUNT:
                code = each.labels.get("xid", "")
                if code.isdecimal():
                    counts[key, int(code)] = int(each.value)
            elif not _is_blank(each.value):
                values[each.name] = each.value
        if _XID in values:
            # Series of instances repeat what is their GPU's.
            xids[key[1]] = max(int(values[_XID]), xids.get(key[1], 0))
        driver = labels.get("DCGM_FI_DRIVER_VERSION", driver)
        has_pods = has_pods or bool(holders)
        # Its labels are empty, or one of several, where a device is shared or cut up: nobody, or unknown?
        is_vague = is_vague or (bool(key[2]) and not holders)
        readings.append(_reading(key, labels, values, holders))
    parents = {reading.uuid: reading for reading in readings if not reading.parent}
    readings += [
        GpuReading(index=part.index, uuid=part.parent, product=part.product, pci=part.pci)
        for part in {each.parent: each for each in readings if each.parent and each.parent not in parents}.values()
    ]
    readings = [msgspec.structs.replace(each, last_xid=xids.get(each.uuid)) for each in readings]
    readings.sort(key=lambda reading: (reading.index, reading.parent, reading.uuid))
    return NodeGpus(
        node=node,
        readings=tuple(readings),
        has_holders=has_pods and not is_vague,
        driver=driver,
        xid_counts=counts,
    )


def _reading(key: Key, labels: Mapping[str, str], values: Mapping[str, float], holders: Iterable[Holder]) -> GpuReading:
    _, gpu, instance = key
    index = labels.get("gpu", "")
    fields: dict[str, Any] = {
        **{field: _clamped(values[name]) for name, field in _RATIOS.items() if name in values},
        **{field: int(values[name]) for name, field in _COUNTS.items() if name in values},
        **{field: values[name] > 0 for name, field in _FLAGS.items() if name in values},
    }
    if "DCGM_FI_DEV_GPU_UTIL" in values:
        fields["utilization"] = _clamped(values["DCGM_FI_DEV_GPU_UTIL"] / 100)
    if "DCGM_FI_DEV_POWER_USAGE" in values:
        fields["power_w"] = max(0.0, values["DCGM_FI_DEV_POWER_USAGE"])
    if "memory_total_mib" not in fields and {"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"} <= values.keys():
        parts = ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED")
        fields["memory_total_mib"] = int(sum(values.get(name, 0) for name in parts))
    if "remap_pending" not in fields and "DCGM_FI_DEV_RETIRED_PENDING" in values:
        fields["remap_pending"] = values["DCGM_FI_DEV_RETIRED_PENDING"] > 0
    reasons = [values[name] for name in _REASONS if name in values]
    if reasons:
        fields["throttle"] = throttle_of(int(reasons[0]))
    return GpuReading(
        index=int(index) if index.isdecimal() else -1,
        # The UUID of an instance is not told; this is how instances were called before the driver gave them one.
        uuid=f"MIG-{gpu}/{instance}/0" if instance else gpu,
        product=labels.get("modelName", ""),
        pci=_pci(labels.get("pci_bus_id", "")),
        parent=gpu if instance else "",
        profile=labels.get("GPU_I_PROFILE", "") if instance else "",
        holders=tuple(sorted(holders)),
        **fields,
    )


def _node(labels: Mapping[str, str], chosen: str) -> str:
    return next((labels[name] for name in ((chosen,) if chosen else NODE_LABELS) if labels.get(name)), "")


def _holder(labels: Mapping[str, str]) -> Holder | None:
    """
    The pod that holds the GPU.  A Prometheus that does not honour labels calls it ``exported_pod``; its ``pod`` is
    then the exporter, which holds nothing.
    """
    if "exported_pod" in labels:
        names = [labels.get(f"exported_{part}", "") for part in ("namespace", "pod", "container")]
    else:
        names = [labels.get(part, "") for part in ("namespace", "pod", "container")]
        if "dcgm" in names[1] or "dcgm" in names[2]:
            return None
    return Holder(*names) if names[0] and names[1] else None


def _pci(text: str) -> str:
    try:
        return normal_pci(text)
    except ValueError:
        return ""


def _clamped(value: float) -> float:
    return min(1.0, max(0.0, value))


def _is_blank(value: float) -> bool:
    """DCGM's numbers for "no value": 2^31 - 16 and up as int32, 2^63 - 16 and up as int64, 2^47 and up as double."""
    return 2**31 - 16 <= value < 2**31 or 2**47 <= value <= 2**47 + 16 or value >= 2**62 or value < 0
