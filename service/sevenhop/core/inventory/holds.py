"""What one pod has of its node's accelerators, by resources or by claims, and whose it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.products import pod_gpus
from sevenhop.core.objects.pod import Pod


class Hold(msgspec.Struct, frozen=True, gc=False):
    """
    Accelerators that one pod has, or asks for: ``{"nvidia.com/gpu": 2}``.

    Devices that it has by claims stand there under `NodeDevices.resource`: ``{"gpu.nvidia.com": 2}``.
    """

    node: str
    gpus: dict[str, int]
    releasing: bool
    workload: Key | None
    component: str
    created: datetime | None = None

    def total(self) -> int:
        return sum(self.gpus.values())


Holder = tuple[Key, str] | None
"""(workload, component); None for pods of no inference workload"""

Held = tuple[int, int]
"""(GPUs, pods)"""


def hold_of(
    pod: Pod,
    workload: Key | None,
    component: str,
    *,
    claimed: Mapping[str, int] | None = None,
    asked: dict[str, int] | None = None,
) -> Hold | None:
    """
    What a pod holds on its node; None without node or accelerators, and for one that has finished.

    Args:
        claimed: Devices that it has by claims.
        asked: What `asks` says of it, where that is known.
    """
    if not pod.spec.node_name or pod.is_finished:
        return None
    gpus = asks(pod) if asked is None else asked
    if claimed:
        served = _served_by_devices(pod)
        gpus = {**{name: count for name, count in gpus.items() if name not in served}, **claimed}
    if not gpus:
        return None
    created = pod.metadata.creation_timestamp
    return Hold(pod.spec.node_name, gpus, pod.is_terminating, workload, component, created)


def _served_by_devices(pod: Pod) -> frozenset[str]:
    """Extended resources that the scheduler has made a claim for: they are held once, as devices."""
    said = pod.status.extended_resource_claim_status or {}
    mappings = said.get("requestMappings")
    rows = mappings if isinstance(mappings, list) else []
    return frozenset(str(row.get("resourceName", "")) for row in rows if isinstance(row, dict))


def asks(pod: Pod) -> dict[str, int]:
    """Accelerators that a pod asks for; a quantity that is none counts as nothing."""
    try:
        return pod_gpus(pod.spec)
    except ValueError:
        return {}


def by_holder(resource: str, holds: Iterable[Hold]) -> dict[Holder, Held]:
    """Who has how much of one resource."""
    found: dict[Holder, Held] = {}
    for hold in holds:
        gpus = hold.gpus.get(resource, 0)
        if gpus:
            holder = (hold.workload, hold.component) if hold.workload is not None else None
            had_gpus, had_pods = found.get(holder, (0, 0))
            found[holder] = (had_gpus + gpus, had_pods + 1)
    return found
