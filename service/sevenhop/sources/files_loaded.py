"""What files hold: objects, one of each name, how much is said of each kind, and what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from sevenhop.core.events import Applied, Event, SourceChanged, SyncState
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.base import Object, condition
from sevenhop.core.objects.kinds import KINDS, Kind
from sevenhop.core.objects.pod import Pod

_DETAILS = {SyncState.NO_SOURCE: "the files hold none"}
_PARTIAL = "a part of the files could not be read"

_KINDS_OF_A_DUMP = 4
"""With fewer kinds, what is absent was probably not asked for."""


class Problem(msgspec.Struct, frozen=True):
    """
    Something that could not be read; the rest was.

    Attributes:
        where: ``file:line``, or the file alone.
    """

    where: str
    message: str


class Loaded:
    """
    What files hold.

    Attributes:
        items: (kind's name, object) in the order of reading, one for each object: of several with one name the
            newest resourceVersion stands, or the last.
        problems: What could not be read, in the order of reading.
        skipped: Objects of kinds that we do not read, by ``Kind.group``.
        listed: Kinds of which the files say something, were it an empty list.
        partial: Kinds of which something stood in the files that could not be read.
        is_cut: Whether some file ends too early, so that whole kinds may be missing.
        has_gap: Whether something could not be read of which even the kind is unknown: it may be the only one of it.
        files: How many were read.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.skipped: Counter[str] = Counter()
        self.listed: set[str] = set()
        self.partial: set[str] = set()
        self.is_cut = self.has_gap = False
        self.files = 0
        self._items: dict[tuple[str, str, str], Object] = {}

    @property
    def items(self) -> list[tuple[str, Object]]:
        return [(key[0], obj) for key, obj in self._items.items()]

    def add(self, kind: Kind, obj: Object) -> None:
        meta = obj.metadata
        if kind.namespaced:
            # As kubectl would apply it.
            meta.namespace = meta.namespace or "default"
        else:
            meta.namespace = ""
        self.listed.add(kind.name)
        key = (kind.name, meta.namespace, meta.name)
        before = self._items.get(key)
        if before is None or not _is_newer(before, obj):
            self._items[key] = obj

    def free_name(self, kind: Kind, namespace: str, name: str) -> str:
        """The name, or one like it: manifests that leave their names to the API server are different objects."""
        place = (namespace or "default") if kind.namespaced else ""
        number, free = 1, name
        while (kind.name, place, free) in self._items:
            number += 1
            free = f"{name}{number}"
        return free

    def events(self, at: datetime) -> Iterator[Event]:
        """
        The same as a source would tell it: the objects, then each kind as `SYNCED`, or `NO_SOURCE` if the files say
        nothing of it.
        """
        for seq, (kind, obj) in enumerate(self.items, 1):
            yield Applied(at=at, epoch=1, seq=seq, kind=kind, obj=obj)
        for name, state in self._states().items():
            yield SourceChanged(
                at=at, epoch=1, seq=len(self._items) + 1, kind=name, state=state, detail=self._detail(name, state)
            )

    def objects(self) -> Objects:
        """All objects in the order of their names, so that theirs in the files is irrelevant; each kind's state."""
        objects = Objects()
        for (kind, _, _), obj in sorted(self._items.items()):
            objects.put(kind, obj)
        for name, state in self._states().items():
            objects.states[name] = state
            if detail := self._detail(name, state):
                objects.details[name] = detail
        return objects

    def _detail(self, name: str, state: SyncState) -> str:
        return _PARTIAL if name in self.partial else _DETAILS.get(state, "")

    def _states(self) -> dict[str, SyncState]:
        """
        How much the files say of each kind.

        ``kubectl get`` writes nothing at all for a kind without objects.  In the dump of a whole cluster that is taken
        as "there are none"; in a handful of manifests it says nothing, nor in a file that ends too early or has a gap.
        Of a kind that was not read to its end an object may be missing, and that is not known to be absent.
        """
        has_kinds = {"Node", "Pod"} <= self.listed and len(self.listed) >= _KINDS_OF_A_DUMP
        is_dump = has_kinds and not self.is_cut and not self.has_gap
        omitted = omitted_kinds(obj for _, obj in self.items if isinstance(obj, Pod)) if is_dump else frozenset(KINDS)
        return {
            name: SyncState.SYNCED
            if name not in self.partial and (name in self.listed or name not in omitted)
            else SyncState.NO_SOURCE
            for name in KINDS
        }


def omitted_kinds(pods: Iterable[Pod]) -> frozenset[str]:
    """
    Kinds that exist in the cluster although the files hold none: pods that have a node use them.

    A pod whose verdict says nothing of the missing object is a sign too: the scheduler looks for claims first.
    """
    found: set[str] = set()
    for pod in pods:
        scheduled = condition(pod.status.conditions, "PodScheduled")
        text = scheduled.message if scheduled else ""
        exists = bool(pod.spec.node_name)
        if any(v.persistent_volume_claim or v.ephemeral for v in pod.spec.volumes) and (
            exists or (text and "volume" not in text.lower())
        ):
            found |= {"PersistentVolumeClaim", "PersistentVolume"}
        if pod.spec.resource_claims and (exists or text):
            found |= {"ResourceClaim.resource.k8s.io", "ResourceClaimTemplate.resource.k8s.io"}
        if pod.spec.runtime_class_name and (exists or text):
            found.add("RuntimeClass.node.k8s.io")
    return frozenset(found)


def _is_newer(before: Object, after: Object) -> bool:
    """Whether `before` is the newer one; only of two numbers can that be said."""
    old, new = _version(before), _version(after)
    return old is not None and new is not None and old > new


def _version(obj: Object) -> tuple[int, str] | None:
    """A number of any length, as something that orders as it does; None for anything else."""
    text = obj.metadata.resource_version
    if not (text.isascii() and text.isdecimal()):
        return None
    digits = text.lstrip("0")
    return len(digits), digits
