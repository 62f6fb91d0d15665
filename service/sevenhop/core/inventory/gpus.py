"""
What the agents on GPU nodes say: GPUs by node, as they were last read, with their XIDs and who has them.

Samples are ordered per GPU by (epoch, sequence): one that comes late, or twice, changes nothing that is known better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from sevenhop.core.events import GpusSampled, XidSeen
from sevenhop.core.gpu_sample import ContainerUsage, GpuReading
from sevenhop.core.inventory.gpu_xids import BURST, XidRecord, with_record
from sevenhop.core.inventory.objects import Key

AGENT = "gpu-agent"
"""The source that samples come from, as a `SourceChanged` and a fact's subject name it."""

SILENT_AFTER = timedelta(seconds=60)
"""An agent sends every 15 s; one that has not been heard for four of them is silent, and its GPUs are unknown."""

CLOCKS_AGREE_S = 2.0
"""An agent's clock may differ by as much without anybody caring."""

Position = tuple[int, int, float]
"""(epoch, sequence, agent's time): the last only orders samples that are not numbered."""

_NEVER: Position = (-1, -1, 0.0)


class Gpu(msgspec.Struct, gc=False, kw_only=True):
    """
    One GPU, or one MIG instance.

    Attributes:
        position: Of the observation that `reading` and `present` come from.
        reading: The last one; None until the first sample, and of a GPU that is only remembered.
        present: The driver sees it; None where it could not be asked.
        missing_at: Since when it is not there, by our clock.
        held_before: Who had it last while nobody has, `released_at` since when.
        cleared_at: When it was last seen to be reset: it came back, or its error counters began anew.
        was_well: It was seen to be well; what is bad at first sight went bad at an unknown time.
        bad_at: When it went bad; None while it is well, and where that is not known.
        victims: Who had it when it went bad.
    """

    uuid: str
    node: str
    index: int = -1
    product: str = ""
    pci: str = ""
    parent: str = ""
    profile: str = ""
    position: Position = _NEVER
    reading: GpuReading | None = None
    present: bool | None = None
    missing_at: datetime | None = None
    held_before: tuple[Key, ...] = ()
    released_at: datetime | None = None
    xids: tuple[XidRecord, ...] = ()
    cleared_at: datetime | None = None
    was_well: bool = False
    bad_at: datetime | None = None
    victims: tuple[Key, ...] = ()

    @property
    def name(self) -> str:
        """As people say it: ``GPU 3``."""
        if self.index >= 0:
            return f"{'MIG instance of GPU' if self.parent else 'GPU'} {self.index}"
        return f"the GPU at {self.pci}" if self.pci else f"GPU {self.uuid}"

    def pods(self) -> tuple[Key, ...]:
        """Who has it, by the last reading."""
        return pods_of(self.reading) if self.reading is not None else ()


class Agent(msgspec.Struct, gc=False, kw_only=True):
    """
    The agent of one node.

    Attributes:
        position: Of the newest sample; `whole_at` of the newest that named all GPUs.
        sampled_at: When that sample came, by our clock; `heard_at` the same, XIDs included.
        watched_since: Since when samples come without a gap longer than `SILENT_AFTER`.
        skew_s: Its clock minus ours.
        has_holders: Whether the kubelet told it who has what.
    """

    node: str
    position: Position = _NEVER
    whole_at: Position = _NEVER
    sampled_at: datetime | None = None
    heard_at: datetime | None = None
    watched_since: datetime | None = None
    skew_s: float = 0.0
    has_holders: bool = False
    driver: str = ""
    problems: tuple[str, ...] = ()
    gpus: dict[str, Gpu] = msgspec.field(default_factory=dict)
    usage: dict[Key, tuple[ContainerUsage, ...]] = msgspec.field(default_factory=dict)

    def is_silent(self, now: datetime) -> bool:
        return self.sampled_at is None or now >= self.sampled_at + SILENT_AFTER

    def is_deaf(self, now: datetime) -> bool:
        """Not even an XID came lately."""
        return self.heard_at is None or now >= self.heard_at + SILENT_AFTER

    def falls_silent_at(self, now: datetime) -> datetime | None:
        """When it will be silent if nothing comes; None where it is."""
        times = [at + SILENT_AFTER for at in (self.sampled_at, self.heard_at) if at is not None]
        return min((at for at in times if at > now), default=None)

    def whole(self) -> list[Gpu]:
        """GPUs, without the instances that they are cut into; in order of index."""
        return sorted((g for g in self.gpus.values() if not g.parent), key=lambda g: (g.index, g.uuid))

    def parts(self, uuid: str) -> list[Gpu]:
        """MIG instances of a GPU."""
        return [g for g in self.gpus.values() if g.parent == uuid]


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
        recalled: Nodes whose GPUs are known from the store alone, until they were judged once.
    """

    def __init__(self) -> None:
        self.agents: dict[str, Agent] = {}
        self.recalled: set[str] = set()
        self.on_pod: dict[Key, set[tuple[str, str]]] = {}

    def take_sample(self, event: GpusSampled) -> Touched:
        """Take in a sample; what is older than what is known of a GPU changes nothing of it."""
        agent = self.agents.setdefault(event.node, Agent(node=event.node))
        position: Position = (event.epoch, event.seq, event.at.timestamp())
        at = event.received_at or event.at
        touched = Touched()
        if position > agent.position:
            self._take_head(agent, event, position, at, touched)
        is_whole = event.is_whole and not (event.problems and not event.readings)
        for reading in event.readings:
            gpu = agent.gpus.get(reading.uuid)
            if (gpu is None and position <= agent.whole_at) or (gpu is not None and position <= gpu.position):
                continue
            touched.node = event.node
            self._take_reading(agent, gpu, reading, position, at, touched)
        if is_whole and position > agent.whole_at:
            agent.whole_at = position
            self._miss(agent, {r.uuid for r in event.readings}, position, at, touched)
        return touched

    def take_xid(self, event: XidSeen) -> Touched:
        """Take in an XID; one that names no device is nobody's, and counts as a problem of the node."""
        agent = self.agents.setdefault(event.node, Agent(node=event.node))
        at = event.at
        if abs(agent.skew_s) > CLOCKS_AGREE_S:
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

    def has(self, pod: Key) -> Iterator[Gpu]:
        """The GPUs of a pod."""
        for node, uuid in sorted(self.on_pod.get(pod, ())):
            yield self.agents[node].gpus[uuid]

    # One observation

    def _take_head(
        self, agent: Agent, event: GpusSampled, position: Position, at: datetime, touched: Touched
    ) -> None:
        if agent.sampled_at is None or at - agent.sampled_at > SILENT_AFTER:
            agent.watched_since = at
        touched.node = event.node
        agent.position, agent.sampled_at = position, max(at, agent.sampled_at or at)
        agent.heard_at = max(at, agent.heard_at or at)
        if event.received_at is not None:
            agent.skew_s = (event.at - event.received_at).total_seconds()
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
        gpu.position, gpu.index = position, reading.index
        gpu.product, gpu.pci = reading.product or gpu.product, normal_pci(reading.pci) or gpu.pci
        gpu.parent, gpu.profile = reading.parent, reading.profile
        was_there = gpu.present
        gpu.present = _is_present(reading.error)
        if gpu.present is False:
            gpu.missing_at = gpu.missing_at or at
        elif gpu.present:
            gpu.missing_at = None
            if was_there is False or _counts_anew(before, reading):
                gpu.cleared_at = at
        if gpu.present is not True and not reading.holders:
            # Who cannot be asked any more does not say that nobody has it.
            reading = msgspec.structs.replace(reading, holders=before.holders if before is not None else ())
        held, holds = gpu.pods(), pods_of(reading)
        if held and not holds:
            gpu.held_before, gpu.released_at = held, at
        gpu.reading = reading
        self._hold(gpu, held, holds, touched)
        if not gpu.parent:
            self._replace_at(agent, gpu, touched)

    def _replace_at(self, agent: Agent, gpu: Gpu, touched: Touched) -> None:
        """Where this GPU is now, no other one is: it was exchanged, or its XID came before its name was known."""
        if not gpu.pci or not gpu.present:
            return
        for other in [g for g in agent.whole() if g.uuid != gpu.uuid and g.pci == gpu.pci and not g.present]:
            if other.uuid == _nameless(agent.node, gpu.pci):
                for record in other.xids:
                    gpu.xids = with_record(gpu.xids, record)
            self._drop(agent, other, touched)

    def _miss(self, agent: Agent, named: set[str], position: Position, at: datetime, touched: Touched) -> None:
        for gpu in list(agent.gpus.values()):
            if gpu.uuid in named or gpu.position >= position:
                continue
            parent = agent.gpus.get(gpu.parent) if gpu.parent else None
            if parent is not None and parent.present:
                self._drop(agent, gpu, touched)  # the GPU is cut in another way now
                continue
            gpu.position = position
            if gpu.present is not False:
                touched.node = agent.node
                gpu.missing_at = at
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
        pci = normal_pci(event.pci)
        here = [g for g in agent.whole() if pci and g.pci == pci]
        if here:
            return min(here, key=lambda g: (not g.present, g.uuid))
        uuid = event.uuid or (_nameless(agent.node, pci) if pci else "")
        if not uuid:
            return None
        made = agent.gpus[uuid] = Gpu(uuid=uuid, node=agent.node, pci=pci)
        return made


def pods_of(reading: GpuReading) -> tuple[Key, ...]:
    """Pods that the kubelet gave the device to, sorted."""
    if not reading.holders:
        return ()
    return tuple(sorted({(h.namespace, h.pod) for h in reading.holders}))


def normal_pci(text: str) -> str:
    """
    One spelling of a PCI address: the kernel leaves out the function, NVML writes eight digits of domain.

    >>> normal_pci("00000000:3B:00.0"), normal_pci("PCI:0000:3b:00"), normal_pci("3b:00.0"), normal_pci("")
    ('0000:3b:00.0', '0000:3b:00.0', '0000:3b:00.0', '')
    """
    parts = text.strip().lower().removeprefix("pci:").partition(".")[0].split(":")
    if len(parts) == 2:
        parts = ["0", *parts]
    try:
        domain, bus, device = (int(part, 16) for part in parts)
    except ValueError:
        return ""
    function = text.rpartition(".")[2] if "." in text else "0"
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}"


def _nameless(node: str, pci: str) -> str:
    return f"{node}/{pci}"


def _is_present(error: str) -> bool | None:
    """
    Whether the driver sees a GPU that was read with this error.

    NVML's words (nvmlErrorString) for one that is gone are "GPU is lost" and, of its handle, "not found"; any other
    error, such as our own time limit, says nothing.
    """
    if not error:
        return True
    said = error.lower()
    return False if any(word in said for word in ("lost", "fallen off", "not found")) else None


def _counts_anew(before: GpuReading | None, after: GpuReading) -> bool:
    """Counters since the driver was loaded run back: it was loaded again, or the GPU reset."""
    if before is None:
        return False
    pairs = (
        (before.ecc_uncorrected, after.ecc_uncorrected),
        (before.ecc_corrected, after.ecc_corrected),
    )
    return any(a is not None and b is not None and b < a for a, b in pairs)
