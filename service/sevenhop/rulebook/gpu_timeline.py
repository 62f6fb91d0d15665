"""
GPU samples in a rule's test: what the agents of a few nodes say, every 15 seconds, until the story changes it.

The samples go through the very inventory that runs in production, so that such a test also covers windows, folding of
XIDs and silence, which facts set by hand leave out.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
from pydantic import Field, field_validator

from sevenhop.core.events import Applied, Event, GpusSampled, SourceChanged, SyncState, XidSeen
from sevenhop.core.gpu_sample import GpuReading, Holder
from sevenhop.core.objects.base import Condition, Meta
from sevenhop.core.objects.cluster import Node, NodeSpec, NodeStatus
from sevenhop.core.objects.kinds import KINDS
from sevenhop.rulebook.schema import Duration, Model

EVERY = timedelta(seconds=15)
"""How often an agent tells everything; what a story changes it tells at once."""

BOOTS_FOR = timedelta(minutes=1)
"""A node is up for about so long when its agent speaks again."""

_WELL: dict[str, Any] = {
    "memory_used_mib": 60_000, "memory_total_mib": 81_559, "utilization": 0.6, "sm_active": 0.6, "sm_occupancy": 0.3,
    "power_w": 400.0, "temperature_c": 55, "throttle": "none", "ecc_uncorrected": 0, "ecc_corrected": 0,
    "remap_pending": False, "remap_failed": False, "nvlinks_down": 0, "processes": 1,
}  # fmt: skip
_READABLE = frozenset(GpuReading.__struct_fields__) - {
    "index",
    "uuid",
    "product",
    "pci",
    "holders",
    "parent",
    "profile",
}


class GpuWorld(Model):
    """Equal nodes ``node-1``, ``node-2`` …, each with an agent; their GPUs are ``GPU-node-1-0`` and so on."""

    nodes: int = Field(default=1, ge=1, le=20)
    gpus: int = Field(default=8, ge=1, le=16, description="On each node.")
    product: str = "NVIDIA-H100-80GB-HBM3"


class GpuMoment(Model):
    """What the agent of one node says from here on; each key stands for one thing."""

    at: Duration = Field(description="Since the start of the test.")
    node: str = Field(default="node-1", description="Whose agent; * for all.")
    gpus: list[int] = Field(default_factory=list, description="Which of its GPUs; all of them if none is named.")
    read: dict[str, Any] = Field(default_factory=dict, description="Fields of a reading, from here on.")
    gone: bool | None = Field(default=None, description="The driver does not list them any more.")
    holder: str | None = Field(default=None, description="The pod that has them, as namespace/name; empty for none.")
    xid: int | None = Field(default=None, description="The driver reports it of each of them, now.")
    text: str = Field(default="", description="The driver's line with the XID.")
    silent: bool | None = Field(default=None, description="The agent sends nothing.")
    booted: bool | None = Field(default=None, description="The node was booted anew a minute ago.")
    advertises: int | None = Field(default=None, description="GPUs that the node advertises from here on.")

    @field_validator("read")
    @classmethod
    def _readable(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name not in _READABLE:
                raise ValueError(f"a reading has no {name}; it has {', '.join(sorted(_READABLE))}")
        readings = {**_WELL, **value}
        try:
            msgspec.convert({"index": 0, "uuid": "", **readings}, GpuReading)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        return value


class _Agent:
    def __init__(self, node: str, world: GpuWorld) -> None:
        self.node = node
        self.readings = [dict(_WELL) for _ in range(world.gpus)]
        self.holders: list[str] = [f"test/pod-{node}-{i}" for i in range(world.gpus)]
        self.gone: set[int] = set()
        self.is_silent = False
        self.booted_at: datetime | None = None
        self.seq = 0
        self.advertises = world.gpus


def events_of(world: GpuWorld, moments: list[GpuMoment], start: datetime, end: timedelta) -> Iterator[Event]:
    """Everything that sources tell from 0 to `end`, in order of time."""
    agents = {f"node-{i + 1}": _Agent(f"node-{i + 1}", world) for i in range(world.nodes)}
    version = 0
    for agent in agents.values():
        yield _node(agent, world, start, version)
    for kind in KINDS:
        yield SourceChanged(at=start, epoch=1, seq=1, kind=kind, state=SyncState.SYNCED)
    waiting = list(moments)
    beats = int(end / EVERY) + 1
    times = sorted({*(EVERY * beat for beat in range(beats)), *(moment.at for moment in moments)})
    for since in times:
        at, told = start + since, set[str]()
        while waiting and waiting[0].at <= since:
            moment = waiting.pop(0)
            for agent in _whose(agents, moment):
                _change(agent, moment)
                if moment.booted:
                    agent.booted_at = at - BOOTS_FOR
                told.add(agent.node)
                if moment.advertises is not None:
                    version += 1
                    yield _node(agent, world, at, version)
                yield from _xids(agent, moment, world, at)
        for agent in agents.values():
            if not agent.is_silent and (agent.node in told or since % EVERY == timedelta(0)):
                yield _sample(agent, world, at)


def _whose(agents: dict[str, _Agent], moment: GpuMoment) -> list[_Agent]:
    if moment.node == "*":
        return list(agents.values())
    if moment.node not in agents:
        raise ValueError(f"there is no {moment.node}, only {', '.join(agents)}")
    return [agents[moment.node]]


def _change(agent: _Agent, moment: GpuMoment) -> None:
    for index in moment.gpus or range(len(agent.readings)):
        if index >= len(agent.readings):
            raise ValueError(f"{agent.node} has no GPU {index}")
        agent.readings[index].update(moment.read)
        if moment.holder is not None:
            agent.holders[index] = moment.holder
        if moment.gone is not None:
            (agent.gone.add if moment.gone else agent.gone.discard)(index)
    if moment.silent is not None:
        agent.is_silent = moment.silent
    if moment.advertises is not None:
        agent.advertises = moment.advertises


def _xids(agent: _Agent, moment: GpuMoment, world: GpuWorld, at: datetime) -> Iterator[Event]:
    if moment.xid is None:
        return
    for index in moment.gpus or range(world.gpus):
        yield XidSeen(at=at, node=agent.node, xid=moment.xid, pci=_pci(index), text=moment.text)


def _sample(agent: _Agent, world: GpuWorld, at: datetime) -> GpusSampled:
    agent.seq += 1
    readings = tuple(
        msgspec.convert(
            {
                "index": index,
                "uuid": f"GPU-{agent.node}-{index}",
                "product": world.product,
                "pci": _pci(index),
                "holders": _holders(agent.holders[index]),
                **agent.readings[index],
            },
            GpuReading,
        )
        for index in range(world.gpus)
        if index not in agent.gone
    )
    up_s = (at - agent.booted_at).total_seconds() if agent.booted_at is not None else None
    return GpusSampled(
        at=at, received_at=at, epoch=1, seq=agent.seq, node=agent.node, is_whole=True, readings=readings, up_s=up_s
    )


def _holders(pod: str) -> tuple[Holder, ...]:
    namespace, _, name = pod.partition("/")
    return (Holder(namespace, name, "main"),) if pod else ()


def _pci(index: int) -> str:
    return f"0000:{index + 16:02x}:00.0"


def _node(agent: _Agent, world: GpuWorld, at: datetime, version: int) -> Applied:
    labels = {"nvidia.com/gpu.product": world.product, "nvidia.com/gpu.count": str(world.gpus)}
    return Applied(
        at=at,
        epoch=1,
        seq=version,
        kind="Node",
        obj=Node(
            metadata=Meta(name=agent.node, uid=f"uid-{agent.node}", resource_version=str(version + 1), labels=labels),
            spec=NodeSpec(),
            status=NodeStatus(
                capacity={"nvidia.com/gpu": world.gpus},
                allocatable={"nvidia.com/gpu": agent.advertises},
                conditions=(Condition(type="Ready", status="True"),),
            ),
        ),
    )
