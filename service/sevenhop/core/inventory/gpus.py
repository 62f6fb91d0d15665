"""
What the agents on GPU nodes say: GPUs by node, as they were last read, with their XIDs and who has them.

Samples are ordered per GPU by (epoch, sequence): one that comes late, or twice, changes nothing that is known better.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from sevenhop.core.events import GpusSampled, XidSeen
from sevenhop.core.gpu_sample import ContainerUsage, GpuReading
from sevenhop.core.inventory.gpu_agent import (
    CLOCKS_AGREE_S,
    SILENT_AFTER,
    Agent,
    Gpu,
    Position,
    pods_of,
    with_activity,
)
from sevenhop.core.inventory.gpu_saying import counts_anew, is_present, nameless, place_of
from sevenhop.core.inventory.gpu_xids import BURST, XidRecord, with_record
from sevenhop.core.inventory.objects import Key

_SKEWS_KEPT = 4


class Touched(msgspec.Struct, gc=False):
    """
    Attributes:
        node: Whose GPUs have to be judged again; empty if the event told nothing new.
        gone: GPUs that are no more: instances of another cut, one that was taken out for another.
        pods: Whose usage or GPUs changed.
    """

    node: str = ""
    gone: set[str] = set()
    pods: set[Key] = set()


class Gpus:
    """
    Mutable, owned by one inventory.

    Attributes:
        agents: By node.
        on_pod: Pod to the GPUs that it has, by the last readings: (node, uuid).
        owners: Of pods that had a GPU when it went bad, whose they were: (workload, component); the pod may be gone.
        recalled: Nodes whose GPUs are known from the store alone, until they were judged once.
    """

    def __init__(self) -> None:
        self.agents: dict[str, Agent] = {}
        self.owners: dict[Key, tuple[Key, str]] = {}
        self.recalled: set[str] = set()
        self.on_pod: dict[Key, set[tuple[str, str]]] = {}

    def take_sample(self, event: GpusSampled) -> Touched:
        """Take in a sample; what is older than what is known of a GPU changes nothing of it."""
        agent = self.agents.setdefault(event.node, Agent(node=event.node))
        position: Position = (event.epoch, event.seq, event.at.timestamp())
        if position > agent.position and event.received_at is not None:
            measured = (event.at - event.received_at).total_seconds()
            agent.skews = (*agent.skews, measured)[-_SKEWS_KEPT:]
        # What was held up on its way is as old as it is.
        at = event.at - timedelta(seconds=agent.skew_s)
        touched = Touched()
        if position > agent.position:
            self._take_head(agent, event, position, at, touched)
        is_whole = event.is_whole and not (event.problems and not event.readings)
        for reading in event.readings:
            gpu = agent.gpus.get(reading.uuid)
            if position <= (gpu.position if gpu is not None else agent.whole_at):
                self._take_late(agent, gpu, reading, position, touched)
                continue
            touched.node = event.node
            if not event.has_holders and gpu is not None and gpu.reading is not None:
                # Nobody was told of is not nobody.
                reading = msgspec.structs.replace(reading, holders=gpu.reading.holders)
            self._take_reading(agent, gpu, reading, position, at, touched)
        if is_whole and position > agent.whole_at:
            agent.whole_at = position
            self._miss(agent, {r.uuid for r in event.readings}, position, at, touched)
        return touched

    def take_xid(self, event: XidSeen) -> Touched:
        """Take in an XID; one that names no device is nobody's, and counts as a problem of the node."""
        agent = self.agents.setdefault(event.node, Agent(node=event.node))
        at = event.at
        if agent.sampled_at is not None and at - agent.sampled_at > SILENT_AFTER and agent.skew_s > CLOCKS_AGREE_S:
            # It lies in the future: by the agent's clock.  One that does not may have been set right by who took it in.
            at -= timedelta(seconds=agent.skew_s)
        agent.heard_at = max(at, agent.heard_at or at)
        gpu = self._gpu_of(agent, event)
        if gpu is None:
            line = f"XID {event.xid} names no device"
            if line not in agent.problems:
                agent.problems = (*agent.problems, line)
            return Touched(node=event.node)
        record = XidRecord(at, event.xid, event.text, self.users(agent, gpu, at))
        after = with_record(gpu.xids, record)
        if after == gpu.xids:
            return Touched()
        gpu.xids = after
        return Touched(node=event.node)

    def forget_node(self, node: str) -> Touched:
        """The node is gone, or another one of the same name took its place."""
        agent = self.agents.pop(node, None)
        if agent is None:
            return Touched()
        touched = Touched(node=node, gone=set(agent.gpus))
        for gpu in agent.gpus.values():
            self._hold(gpu, gpu.pods(), (), touched)
        touched.pods.update(agent.usage)
        return touched

    def users(self, agent: Agent, gpu: Gpu, at: datetime) -> tuple[Key, ...]:
        """Who had a GPU, or an instance of it, at that moment: now, or until shortly before."""
        found: set[Key] = set()
        for each in (gpu, *agent.parts(gpu.uuid)):
            found.update(each.pods())
            if not each.pods() and each.released_at is not None and abs(at - each.released_at) <= BURST:
                found.update(each.held_before)
        return tuple(sorted(found))

    # One observation

    def _take_head(self, agent: Agent, event: GpusSampled, position: Position, at: datetime, touched: Touched) -> None:
        if agent.sampled_at is None or at - agent.sampled_at > SILENT_AFTER:
            agent.watched_since = at
        touched.node = event.node
        agent.position, agent.sampled_at = position, max(at, agent.sampled_at or at)
        agent.heard_at = max(at, agent.heard_at or at)
        if event.up_s is not None:
            agent.booted_at = at - timedelta(seconds=event.up_s)
        agent.has_holders, agent.driver, agent.problems = event.has_holders, event.driver, event.problems
        if not event.usage and not agent.usage:
            return
        usage: dict[Key, tuple[ContainerUsage, ...]] = {}
        for each in event.usage:
            pod = (each.holder.namespace, each.holder.pod)
            usage[pod] = (*usage.get(pod, ()), each)
        if not event.is_whole:
            usage = {**agent.usage, **usage}
        touched.pods.update(pod for pod in usage.keys() | agent.usage.keys() if usage.get(pod) != agent.usage.get(pod))
        agent.usage = usage

    def _take_reading(
        self, agent: Agent, gpu: Gpu | None, reading: GpuReading, position: Position, at: datetime, touched: Touched
    ) -> None:
        if gpu is None:
            gpu = agent.gpus[reading.uuid] = Gpu(uuid=reading.uuid, node=agent.node)
        before = gpu.reading
        gpu.position = position
        was_there = gpu.present
        gpu.present = is_present(reading.error)
        if gpu.present is False:
            gpu.missing_at = gpu.missing_at or at
            gpu.lost_at = gpu.missing_at
        elif gpu.present:
            gpu.missing_at = None
            if was_there is False or counts_anew(before, reading):
                gpu.cleared_at = at
        if gpu.present is not True and not reading.holders:
            # Who cannot be asked any more does not say that nobody has it.
            reading = msgspec.structs.replace(reading, holders=before.holders if before is not None else ())
        held = gpu.pods()
        if held and not pods_of(reading):
            gpu.held_before, gpu.released_at = held, at
        self._put_reading(gpu, reading, position, touched)
        if gpu.pods() != held:
            gpu.activity = ()
        if reading.sm_active is not None:
            gpu.activity = with_activity(gpu.activity, at, reading.sm_active)
        if reading.last_xid is not None and not gpu.parent:
            self._take_last_xid(agent, gpu, reading.last_xid, at)
        if not gpu.parent:
            self._replace_at(agent, gpu, touched)

    def _take_last_xid(self, agent: Agent, gpu: Gpu, number: int, at: datetime) -> None:
        """
        A source that shows the last XID for ever: a change tells of a new one, whoever was started anew meanwhile.

        At the first look it may be a minute old or a month.
        """
        known, gpu.last_xid = gpu.last_xid, number
        if number in (known, 0):
            return
        if known is None:
            gpu.undated = XidRecord(at, number)
            return
        gpu.xids = with_record(gpu.xids, XidRecord(at, number, "", self.users(agent, gpu, at)))

    def _take_late(
        self, agent: Agent, gpu: Gpu | None, reading: GpuReading, position: Position, touched: Touched
    ) -> None:
        """
        A reading from before a whole sample that no longer names the GPU: it was there, and is not.

        Nothing else that comes late tells anything.
        """
        if gpu is None:
            parent = agent.gpus.get(reading.parent) if reading.parent else None
            if (parent is not None and parent.present) or self._is_taken(agent, reading.uuid, reading):
                return
            gpu = agent.gpus[reading.uuid] = Gpu(uuid=reading.uuid, node=agent.node, position=agent.whole_at)
            gpu.present, gpu.missing_at = False, agent.sampled_at
        if gpu.present is not False or position <= gpu.read_at:
            return
        touched.node = agent.node
        self._put_reading(gpu, reading, position, touched)

    def _is_taken(self, agent: Agent, uuid: str, reading: GpuReading) -> bool:
        """Whether another GPU answers in the place of this one."""
        pci = place_of(reading.pci)
        return (
            bool(pci)
            and not reading.parent
            and any(g.pci == pci and g.present and g.uuid != uuid for g in agent.whole())
        )

    def _put_reading(self, gpu: Gpu, reading: GpuReading, position: Position, touched: Touched) -> None:
        gpu.read_at, gpu.index = position, reading.index
        gpu.product, gpu.pci = reading.product or gpu.product, place_of(reading.pci) or gpu.pci
        gpu.parent, gpu.profile = reading.parent, reading.profile
        held = gpu.pods()
        gpu.reading = reading
        self._hold(gpu, held, pods_of(reading), touched)

    def _replace_at(self, agent: Agent, gpu: Gpu, touched: Touched) -> None:
        """Where this GPU is now, no other one is: it was exchanged, or its XID came before its name was known."""
        unnamed = nameless(agent.node, gpu.pci)
        for other in [g for g in agent.whole() if gpu.pci and g.uuid != gpu.uuid and g.pci == gpu.pci]:
            if other.uuid == unnamed:
                for record in other.xids:
                    gpu.xids = with_record(gpu.xids, record)
            if other.uuid == unnamed or (gpu.present and not other.present):
                self._drop(agent, other, touched)

    def _miss(self, agent: Agent, named: set[str], position: Position, at: datetime, touched: Touched) -> None:
        for gpu in list(agent.gpus.values()):
            if gpu.uuid in named or gpu.position >= position:
                continue
            parent = agent.gpus.get(gpu.parent) if gpu.parent else None
            if parent is not None and parent.present:
                self._drop(agent, gpu, touched)  # the GPU is cut in another way now
                continue
            if gpu.reading is not None and self._is_taken(agent, gpu.uuid, gpu.reading):
                self._drop(agent, gpu, touched)
                continue
            gpu.position = position
            if gpu.present is not False:
                touched.node = agent.node
                gpu.missing_at = gpu.lost_at = at
            gpu.present = False

    def _drop(self, agent: Agent, gpu: Gpu, touched: Touched) -> None:
        del agent.gpus[gpu.uuid]
        self._hold(gpu, gpu.pods(), (), touched)
        touched.node = agent.node
        touched.gone.add(gpu.uuid)

    def _hold(self, gpu: Gpu, before: Iterable[Key], after: Iterable[Key], touched: Touched) -> None:
        gone, come = set(before) - set(after), set(after) - set(before)
        for pod in gone:
            here = self.on_pod.get(pod, set())
            here.discard((gpu.node, gpu.uuid))
            if not here:
                self.on_pod.pop(pod, None)
        for pod in after:
            self.on_pod.setdefault(pod, set()).add((gpu.node, gpu.uuid))
        touched.pods |= gone | come

    def _gpu_of(self, agent: Agent, event: XidSeen) -> Gpu | None:
        """The whole GPU that an XID is about; made up from its place where no sample has named it yet."""
        gpu = agent.gpus.get(event.uuid) if event.uuid else None
        if gpu is not None and gpu.parent:
            gpu = agent.gpus.get(gpu.parent, gpu)
        if gpu is not None:
            return gpu
        pci = place_of(event.pci)
        here = [g for g in agent.whole() if pci and g.pci == pci]
        if here:
            return min(here, key=lambda g: (not g.present, g.uuid))
        uuid = event.uuid or (nameless(agent.node, pci) if pci else "")
        if not uuid:
            return None
        made = agent.gpus[uuid] = Gpu(uuid=uuid, node=agent.node, pci=pci)
        return made
