"""What no sample returns of a node's GPUs: which were there, their XIDs, when they went bad and who had them then."""

from __future__ import annotations

from datetime import datetime

import msgspec

from sevenhop.core.inventory.gpu_agent import Agent, Gpu
from sevenhop.core.inventory.gpu_xids import XidRecord
from sevenhop.core.inventory.gpus import Gpus
from sevenhop.core.inventory.objects import Key


class KeptGpu(msgspec.Struct, frozen=True, kw_only=True):
    """
    See `Gpu`; `owners` are the (namespace, workload, component) of the victims, None for a pod of no workload.
    """

    uuid: str
    index: int
    product: str = ""
    pci: str = ""
    parent: str = ""
    profile: str = ""
    xids: tuple[XidRecord, ...] = ()
    last_xid: int | None = None
    undated: XidRecord | None = None
    lost_at: datetime | None = None
    cleared_at: datetime | None = None
    was_well: bool = False
    is_bad: bool = False
    bad_at: datetime | None = None
    victims: tuple[Key, ...] = ()
    owners: tuple[tuple[str, str, str] | None, ...] = ()


class KeptGpus(msgspec.Struct, frozen=True):
    """One node's."""

    gpus: tuple[KeptGpu, ...]


def kept_gpus(gpus: Gpus, node: str) -> KeptGpus | None:
    """None for a node that is gone, or has none."""
    agent = gpus.agents.get(node)
    if agent is None or not agent.gpus:
        return None
    return KeptGpus(tuple(_kept(gpus, gpu) for _, gpu in sorted(agent.gpus.items())))


def recall_gpus(gpus: Gpus, node: str, kept: KeptGpus) -> None:
    """
    Take over what was kept.

    Whether a GPU is there is not: the first sample tells, and until then it is unknown.
    """
    agent = gpus.agents.setdefault(node, Agent(node=node))
    for each in kept.gpus:
        agent.gpus[each.uuid] = Gpu(
            node=node,
            **{name: getattr(each, name) for name in each.__struct_fields__ if name != "owners"},
        )
        for pod, owner in zip(each.victims, each.owners, strict=False):
            if owner is not None:
                gpus.owners[pod] = ((owner[0], owner[1]), owner[2])
    gpus.recalled.add(node)


def _kept(gpus: Gpus, gpu: Gpu) -> KeptGpu:
    found = [gpus.owners.get(pod) for pod in gpu.victims]
    return KeptGpu(
        **{name: getattr(gpu, name) for name in KeptGpu.__struct_fields__ if name != "owners"},
        owners=tuple((o[0][0], o[0][1], o[1]) if o is not None else None for o in found),
    )
