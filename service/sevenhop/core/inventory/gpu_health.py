"""Which GPUs of a node are well, which are bad and by what, and what that leaves of what the node offers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.hops.xids import LOST, XidClass, rank_of, words_of
from sevenhop.core.inventory.gpu_agent import AGENT, Agent, Gpu, lost_since
from sevenhop.core.inventory.gpu_xids import (
    BURST,
    Root,
    XidRecord,
    breaks_peers,
    changes_at,
    is_victim,
    may_stand,
    recent,
    repeats,
    root,
    stands_for,
)
from sevenhop.core.inventory.objects import Key

_NEEDS_RESET = ("requires reset", "requires restart", "reset required")
"""NVML's words for a GPU that does nothing until it is reset: the library's, and its Python binding's."""

NOT_SAMPLED = Unknown(UnknownReason.NO_SOURCE, "gpu agent: no sample yet")


class GpuState(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """
    One GPU as it was last judged.

    Attributes:
        unknown: Why nothing can be said now: its agent is silent, or has not spoken; None while it can.
        present: The driver sees it.
        xid: The root; 0 for none, and for one that only follows from another GPU's.
        undated: Why that is not known: one stands there that may be of now, or of long ago.
        cls: What is asked for; None where nothing tells.
        is_bad: Not to be used until somebody reset or replaced it.
        cause: A slug of the published causes; empty while it is well.
        trouble: One phrase for people; empty while it is well.
        since: When the trouble began; None where nobody saw it begin.
        victims: Pods that had it when it went bad, and that have it.
    """

    unknown: Unknown | None = None
    present: bool | Unknown = True
    xid: int = 0
    undated: Unknown | None = None
    cls: XidClass | None = XidClass.NONE
    repeats: int = 0
    is_bad: bool = False
    cause: str = ""
    trouble: str = ""
    since: datetime | None = None
    victims: tuple[Key, ...] = ()


class BadUnit(msgspec.Struct, frozen=True, gc=False):
    """
    One bad device.

    Attributes:
        pods: That have it, as far as it was told.
        lost_at: Since when that is not told any more; None while it is.
    """

    pods: tuple[Key, ...] = ()
    lost_at: datetime | None = None


class Units(msgspec.Struct, frozen=True, gc=False):
    """
    Devices of one sort on a node, by what the agent knows.

    Attributes:
        known: That are there, or were.
    """

    known: int = 0
    bad: tuple[BadUnit, ...] = ()


class NodeHealth(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """
    Attributes:
        unknown: Why the numbers are not current: they are then the last known ones.
        visible: GPUs that the driver sees.
        units: By MIG profile; whole GPUs under the empty one.
        bad: (uuid, phrase with the GPU's name) of each bad GPU, in order of index.
    """

    unknown: Unknown | None
    visible: int
    units: dict[str, Units]
    bad: tuple[tuple[str, str], ...]

    @property
    def known(self) -> int:
        """Devices in all."""
        return sum(units.known for units in self.units.values())


def judge(agent: Agent, now: datetime) -> dict[str, GpuState]:
    """
    Every GPU of a node as of `now`; what went bad since is noted on the GPUs.

    XIDs are told of whole GPUs; an instance is bad if its GPU is.
    """
    unknown = silence(agent, now)
    if unknown is NOT_SAMPLED:
        return {
            gpu.uuid: GpuState(unknown=unknown, is_bad=gpu.is_bad, victims=gpu.victims) for gpu in agent.gpus.values()
        }
    roots = {
        gpu.uuid: found for gpu in agent.whole() if (found := root(gpu.xids, now, agent.cleared_at(gpu))) is not None
    }
    broke = {gpu.uuid: [*breaks_peers(gpu.xids), *([gpu.lost_at] if gpu.lost_at else [])] for gpu in agent.whole()}
    states: dict[str, GpuState] = {}
    for gpu in agent.whole():
        gpu.xids = recent(gpu.xids, now)
        gpu.undated = gpu.undated if may_stand(gpu.undated, now, agent.cleared_at(gpu)) else None
        own = roots.get(gpu.uuid)
        peers = (at for uuid, times in broke.items() if uuid != gpu.uuid for at in times)
        if own is not None and gpu.present is not False and is_victim(own, peers):
            own = None
        states[gpu.uuid] = _judge(agent, gpu, own, unknown, now)
    for gpu in agent.gpus.values():
        if gpu.parent:
            states[gpu.uuid] = _judge_part(gpu, states.get(gpu.parent), unknown)
    return states


def silence(agent: Agent, now: datetime) -> Unknown | None:
    """Why nothing is known of a node's GPUs now; None while its agent speaks."""
    if agent.sampled_at is None:
        return None if agent.heard_at is not None and not agent.is_deaf(now) else NOT_SAMPLED
    if not agent.is_silent(now):
        return None
    said = f"{AGENT} on {agent.node}: last heard {agent.sampled_at:%H:%M:%S} UTC"
    return Unknown(UnknownReason.STALE, said)


def _judge(agent: Agent, gpu: Gpu, own: Root | None, unknown: Unknown | None, now: datetime) -> GpuState:
    reading = gpu.reading
    needs_reset = reading is not None and any(words in reading.error.lower() for words in _NEEDS_RESET)
    remap_failed = reading is not None and reading.remap_failed is True
    cls = own.cls if own is not None else XidClass.NONE
    if needs_reset and (cls is None or not cls.is_bad):
        cls = XidClass.RESET
    if remap_failed and cls is not XidClass.REBOOT:
        cls = XidClass.REPLACE
    is_lost = gpu.present is False
    is_bad = is_lost or (cls is not None and cls.is_bad)
    _note(agent, gpu, own, now, is_bad=is_bad)
    cause, trouble = _trouble(gpu, own, is_lost=is_lost, remap_failed=remap_failed, needs_reset=needs_reset)
    return GpuState(
        unknown=unknown,
        present=_present(gpu),
        xid=own.xid if own is not None else 0,
        undated=_undated(gpu.undated) if own is None and gpu.undated is not None else None,
        cls=cls,
        repeats=repeats(gpu.xids, now),
        is_bad=is_bad,
        cause=cause if is_bad else "",
        trouble=trouble,
        since=own.at if own is not None else gpu.bad_at,
        victims=gpu.victims if is_bad else own.pods if own is not None else (),
    )


def _note(agent: Agent, gpu: Gpu, own: Root | None, now: datetime, *, is_bad: bool) -> None:
    """Keep when a GPU went bad, and who had it then."""
    if not is_bad:
        gpu.was_well = gpu.was_well or gpu.present is True
        gpu.is_bad, gpu.bad_at, gpu.victims = False, None, ()
        return
    users: set[Key] = set(own.pods) if own is not None else set()
    if not gpu.is_bad:
        gpu.is_bad = True
        if own is not None and own.cls is not None and own.cls.is_bad:
            gpu.bad_at = own.at
        elif gpu.was_well:
            gpu.bad_at = gpu.missing_at or now
        users |= {pod for part in (gpu, *agent.parts(gpu.uuid)) for pod in part.pods() or _shortly_before(part, gpu)}
    gpu.victims = tuple(sorted({*gpu.victims, *users}))


def _shortly_before(part: Gpu, gpu: Gpu) -> tuple[Key, ...]:
    """Who had it until just before the GPU went."""
    if part.released_at is None or gpu.missing_at is None or abs(gpu.missing_at - part.released_at) > BURST:
        return ()
    return part.held_before


def _undated(record: XidRecord) -> Unknown:
    return Unknown(UnknownReason.WINDOW, f"XID {record.xid} stood there at our first look, when it came is not told")


def _present(gpu: Gpu) -> bool | Unknown:
    if gpu.present is not None:
        return gpu.present
    if gpu.reading is None:
        return NOT_SAMPLED
    return Unknown(UnknownReason.UNREADABLE, gpu.reading.error or AGENT)


def _trouble(gpu: Gpu, own: Root | None, *, is_lost: bool, remap_failed: bool, needs_reset: bool) -> tuple[str, str]:
    """(cause, phrase)"""
    if own is not None:
        followed = f" (then XID {', '.join(map(str, own.followed))})" if own.followed else ""
        phrase = f"{gpu.name}: {words_of(own.xid)}{followed}"
        if own.xid == LOST or is_lost:
            return "gpu-lost", phrase if own.xid == LOST else f"{phrase}, and gone"
        return "gpu-ecc" if rank_of(own.xid) == rank_of(48) or remap_failed else "gpu-xid", phrase
    if is_lost:
        return "gpu-lost", f"{gpu.name}: the driver does not see it any more"
    if remap_failed:
        return "gpu-ecc", f"{gpu.name}: remapping of a memory row failed"
    if needs_reset:
        return "gpu-xid", f"{gpu.name}: the driver asks for a reset"
    return "", ""


def _judge_part(gpu: Gpu, whole: GpuState | None, unknown: Unknown | None) -> GpuState:
    is_bad = gpu.present is False or (whole is not None and whole.is_bad)
    return GpuState(
        unknown=unknown,
        present=_present(gpu),
        is_bad=is_bad,
        cause=(whole.cause if whole is not None else "") or ("gpu-lost" if is_bad else ""),
        trouble=(whole.trouble if whole is not None else "") or (f"{gpu.name}: gone" if is_bad else ""),
        since=whole.since if whole is not None else None,
        victims=gpu.pods() if is_bad else (),
    )


def health_of(agent: Agent, states: Mapping[str, GpuState], now: datetime) -> NodeHealth:
    """The numbers of one node."""
    counts: dict[str, tuple[int, tuple[BadUnit, ...]]] = {}
    for gpu in agent.whole():
        parts = agent.parts(gpu.uuid)
        for each in parts or (gpu,):
            known, holds = counts.get(each.profile, (0, ()))
            if states[each.uuid].is_bad:
                holds = (*holds, BadUnit(each.pods(), lost_since(each)))
            counts[each.profile] = (known + 1, holds)
    return NodeHealth(
        unknown=silence(agent, now) or (NOT_SAMPLED if agent.sampled_at is None else None),
        visible=sum(1 for gpu in agent.whole() if gpu.present is True),
        units={profile: Units(*found) for profile, found in sorted(counts.items())},
        bad=tuple((gpu.uuid, states[gpu.uuid].trouble) for gpu in agent.whole() if states[gpu.uuid].is_bad),
    )


def next_change(agent: Agent, now: datetime) -> datetime | None:
    """When time alone next changes what is said of this node's GPUs."""
    times = [changes_at(gpu.xids, now) for gpu in agent.gpus.values() if gpu.xids]
    times += [gpu.undated.at + stands_for(gpu.undated) for gpu in agent.gpus.values() if gpu.undated is not None]
    times.append(agent.falls_silent_at(now))
    return min((at for at in times if at is not None), default=None)
