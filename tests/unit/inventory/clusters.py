"""Histories of small clusters for properties: every object in a few versions, as a source saw them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count

from hypothesis import strategies as st

from sevenhop.core import events as e
from sevenhop.core.facts.schema import Facts
from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod
from sevenhop.core.subject import Subject
from sevenhop.frameworks import FRAMEWORKS
from tests import builders as b

END = 420
"""Seconds after noon at which facts are compared: restarts are still in their window, throttles have let go."""

Version = Object | None
"""None: deleted."""


class History(dict[str, list[Version]]):
    """Object id to its versions; shown in a few words, for a failing example has dozens of objects."""

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {', '.join(map(_in_words, versions))}" for name, versions in self.items())


def _in_words(version: Version) -> str:
    if isinstance(version, Pod):
        status = version.status
        said = [f"{c.type}={c.status}@{c.last_transition_time:%H:%M:%S}" for c in status.conditions]
        counts = [f"{s.restart_count} restarts" for s in status.container_statuses]
        return " ".join([status.phase, version.spec.node_name, *said, *counts])
    if isinstance(version, Node):
        return f"{version.status.allocatable.get(b.GPU)} GPUs cordoned={version.spec.unschedulable}"
    return "gone" if version is None else f"generation {version.metadata.generation}"


def fresh() -> Inventory:
    return Inventory("test", FRAMEWORKS, Policy())


@st.composite
def _pod_versions(draw: st.DrawFn, make: Callable[..., Object], suffix: str, nodes: Sequence[str]) -> list[Version]:
    """A pod's lives: it waits, is placed, becomes ready or crashes, is deleted, comes back under the same name."""
    versions: list[Version] = []
    for _ in range(draw(st.integers(1, 2))):
        node, since = draw(st.sampled_from(nodes)), b.at(draw(st.integers(0, 60)))
        if draw(st.booleans()):
            words = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
            versions.append(make(suffix, unschedulable=words, since=since))
        for restarts in draw(st.lists(st.integers(0, 4), max_size=3).map(sorted)):
            if restarts == 0:
                versions.append(make(suffix, node=node, ready=draw(st.booleans()), since=since))
            else:
                ended = b.at(draw(st.integers(0, 300)))
                crashed = {"waiting": "CrashLoopBackOff", "restarts": restarts, "last_end": ended, "ready": False}
                versions.append(make(suffix, node=node, since=since, **crashed))
        versions.append(None)
    if draw(st.booleans()):
        versions.pop()
    return versions


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Object id to its versions; a Dynamo model and a Deployment on two GPU nodes, with a Service."""
    graph = b.dynamo("llama", decode=2, annotations={"sevenhop.dev/tier": "critical"})
    plain = b.deployment("summarizer", replicas=2, gpus=2, annotations={"sevenhop.dev/tier": "batch"})
    replicas = b.replicaset(plain)
    names = ["gpu-0", "gpu-1"]
    made = History()
    for name in names:
        versions = st.builds(
            lambda gpus, ready, cordoned, name=name: b.node(
                name, gpus=gpus, ready=ready, cordoned=cordoned, capacity=4
            ),
            st.integers(0, 4),
            st.booleans(),
            st.booleans(),
        )
        made[name] = draw(st.lists(versions, min_size=1, max_size=3))
    made["graph"] = [
        graph,
        *draw(st.lists(st.sampled_from([b.dynamo("llama", decode=3, generation=2), None]), max_size=1)),
    ]
    made["plain"], made["replicas"] = [plain], [replicas]
    service = b.service("summarizer", selector={"app": "summarizer"})
    made["service"] = draw(st.sampled_from([[service], [service, None], []]))
    for suffix in ("0", "1", "2"):
        made[f"decode-{suffix}"] = draw(
            _pod_versions(lambda s, **kw: b.dynamo_pod(graph, "decode", s, **kw), suffix, names)
        )
        made[f"plain-{suffix}"] = draw(_pod_versions(lambda s, **kw: b.pod_of(replicas, s, **kw), suffix, names))
    return made


def as_events(history: History, order: Sequence[str]) -> list[e.Event]:
    """
    The versions as events of one epoch, taken object by object as `order` says, the rest at the end.

    Sequence numbers follow each object's own order, so that two orders tell the same of every object.
    """
    lives = {name: _life(versions) for name, versions in history.items()}
    turns = [*order, *(name for name, life in lives.items() for _ in life)]
    return [lives[name].pop(0) for name in turns if lives[name]]


def _life(versions: Iterable[Version]) -> list[e.Event]:
    found: list[e.Event] = []
    before: Object | None = None
    numbers, seconds = count(1), count(0, 40)
    for incarnation, version in enumerate(versions):
        seq, at = next(numbers), b.at(next(seconds))
        if version is None:
            if before is not None:
                found.append(_deleted(before, at_seq=(at, 1, seq)))
            before = None
            continue
        obj = b.copy_of(version)
        obj.metadata.uid += "" if before is not None or not found else f"-{incarnation}"
        if before is not None:
            obj.metadata.uid = before.metadata.uid
        before = obj
        found.append(e.Applied(at=at, epoch=1, seq=seq, kind=b.kind_name(obj), obj=obj))
    return found


def _deleted(obj: Object, at_seq: tuple[object, int, int]) -> e.Deleted:
    at, epoch, seq = at_seq
    return e.Deleted(
        at=at,  # type: ignore[arg-type]
        epoch=epoch,
        seq=seq,
        kind=b.kind_name(obj),
        namespace=obj.metadata.namespace,
        name=obj.metadata.name,
        uid=obj.metadata.uid,
    )


def synced(epoch: int = 1) -> list[e.Event]:
    return [e.SourceChanged(at=b.NOON, epoch=epoch, seq=0, kind=kind, state=e.SyncState.SYNCED) for kind in KINDS]


def relisted(events: Sequence[e.Event], seconds: float) -> list[e.Event]:
    """What a new list would send after these events: everything that exists, in another order, in a new epoch."""
    alive: dict[tuple[str, str, str], Object] = {}
    for event in events:
        if isinstance(event, e.Applied):
            alive[(event.kind, *event.obj.metadata.key)] = event.obj
        elif isinstance(event, e.Deleted):
            alive.pop((event.kind, event.namespace, event.name), None)
    return [
        e.Applied(at=b.at(seconds), epoch=2, seq=seq, kind=kind, obj=b.copy_of(obj))
        for seq, ((kind, _, _), obj) in enumerate(sorted(alive.items(), reverse=True), start=1)
    ]


def facts_after(
    events: Iterable[e.Event], *, each: bool = False, inventory: Inventory | None = None
) -> dict[Subject, Facts]:
    """Facts at `END`, settled after every event or once."""
    inventory = inventory or fresh()
    for event in events:
        inventory.apply(event)
        if each:
            inventory.settle(event.at)
    inventory.settle(b.at(END))
    inventory.settle(b.at(END + 1))
    return inventory.facts
