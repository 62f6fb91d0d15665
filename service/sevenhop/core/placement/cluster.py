"""
The cluster as placement sees it: nodes with their residents, indexed, and kept current one object at a time.

`refresh` builds it from `Objects`; after that the owner calls `update` for each object that changed, so that the live
service never rebuilds.  What-if questions mutate it and take that back: `removed`, `placed`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.cluster import Event, Node
from sevenhop.core.objects.devices import ResourceClaim
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.absence import Absence, resource_claims
from sevenhop.core.placement.demand import Static
from sevenhop.core.placement.devices import (
    CLAIMS,
    CLASSES,
    SLICES,
    TEMPLATES,
    DeviceKey,
    DeviceLedger,
)
from sevenhop.core.placement.events_about import EventsAbout
from sevenhop.core.placement.nodes import NodeView, Resident, resident
from sevenhop.core.placement.requests import amounts
from sevenhop.core.placement.residents import Residents
from sevenhop.core.placement.static_masks import StaticMasks
from sevenhop.core.placement.volumes import STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from sevenhop.core.words import Place, natural

_LONGEST_LOG = 20_000

_VOLUME_KINDS = frozenset((VOLUMES, VOLUME_CLAIMS, STORAGE_CLASSES))
_DEVICE_KINDS = frozenset((CLASSES, SLICES, CLAIMS, TEMPLATES))


class BadGpus(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        withdrawn: By resource, bad devices that the node does not advertise any more.
        words: What is wrong with them.
    """

    withdrawn: dict[str, int]
    words: str


class Cluster:
    """
    Attributes:
        objects: What it was built from; read for everything that is not a node or a pod.
        views: By node name, in no order.
        order: The same by name, `natural`: what is said of nodes does not hang on the order in which they came.
        pending: Pods that wait for a node.
        residents: Pods that hold a place on one.
        absence: Of which kinds all are here.
        bad_gpus: By node, what GPU agents say.
        epoch: Changes when a verdict about any class may have changed for a reason that `log` does not tell.
        evaluations: Kept by `evaluation.evaluate`, by scheduling class.
        log: Index of each node that changed, oldest first; a verdict that looks at nodes one by one is current up to
            a position in it.
    """

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.views: dict[str, NodeView] = {}
        self.order: list[NodeView] = []
        self.pending: dict[Key, Pod] = {}
        self.epoch = 0
        self.log: list[int] = []
        self.residents = Residents(self.namespace_labels)
        self.absence = Absence(objects)
        self._nominated: dict[Key, str] = {}
        self._static = StaticMasks()
        self._events = EventsAbout(objects)
        self._ledger: DeviceLedger | None = None
        self._remembered: dict[object, object] = {}
        self._remembered_at = (0, 0)
        self._is_hushed = False
        self._is_numbered = True
        self.bad_gpus: dict[str, BadGpus] = {}
        self.evaluations: dict[object, object] = {}
        self.refresh()

    # ---- keeping current

    def refresh(self) -> None:
        """Build everything anew from `objects`."""
        self.views = {}
        self.order = []
        self.pending = {}
        self.residents = Residents(self.namespace_labels)
        self.absence, self._events = Absence(self.objects), EventsAbout(self.objects)
        self._nominated, self._static, self._ledger = {}, StaticMasks(), None
        self.evaluations = {}
        self.log = []
        self.epoch += 1
        for node in self.objects.nodes().values():
            self._add_node(node)
        for pod in self.objects.pods().values():
            self._add_pod(pod)

    def update(self, kind: str, key: Key) -> None:
        """One object was applied to `objects`, or dropped from it."""
        if kind == "Pod":
            self._drop_pod(key)
            pod = self.objects.pods().get(key)
            if pod is not None:
                self._add_pod(pod)
            if self.absence.pod_changed(pod):
                self.epoch += 1
        elif kind == "Node":
            self._update_node(key[1])
        elif kind == "Event":
            self._events.update(key)
        elif kind == "PodDisruptionBudget.policy":
            self._remembered = {}  # whom preemption would take
        elif kind == "Namespace":
            self.residents.namespaces_changed()
            self.epoch += 1
        elif kind in _VOLUME_KINDS or kind in _DEVICE_KINDS:
            self.absence.forget()
            if kind in _DEVICE_KINDS:
                self._ledger = None
            self.epoch += 1

    def put_bad_gpus(self, node: str, bad: BadGpus | None) -> None:
        """What a GPU agent says of a node; it changes no place for anybody, only why there is none."""
        if self.bad_gpus.get(node) == bad:
            return
        if bad is None:
            del self.bad_gpus[node]
        else:
            self.bad_gpus[node] = bad
        self.epoch += 1

    def _update_node(self, name: str) -> None:
        node = self.objects.nodes().get(("", name))
        view = self.views.get(name)
        if node is None or view is None:
            self._renumber(name, node)
            return
        before = view.node
        placed_alike = (
            before.metadata.labels == node.metadata.labels
            and before.spec.taints == node.spec.taints
            and before.spec.unschedulable == node.spec.unschedulable
        )
        if placed_alike and before.status.allocatable == node.status.allocatable:
            view.node = node  # a heartbeat
            if before.status.capacity != node.status.capacity:
                view.capacity = amounts(node.status.capacity)
            return
        view.adopt(node)
        if not placed_alike:
            self._number()
            self._static.node_changed(view)
            self.epoch += 1
        self._touch(view)

    def _renumber(self, name: str, node: Node | None) -> None:
        self.epoch += 1
        self._static = StaticMasks()
        if node is not None:
            self._add_node(node)
            for pod in self.objects.pods_on(name):
                self._drop_pod(pod.metadata.key)
                self._add_pod(pod)
            return
        view = self.views.get(name)
        if view is None:
            return
        nominated = list(view.nominated)
        for key in (*view.residents, *nominated):
            self._drop_pod(key)
        del self.views[name]
        self.order.remove(view)
        self._is_numbered = False
        for key in nominated:  # they still wait, for another node
            waiting = self.objects.pods().get(key)
            if waiting is not None:
                self._add_pod(waiting)

    def _add_node(self, node: Node) -> None:
        view = NodeView(node, len(self.order))
        self.views[view.name] = view
        insort(self.order, view, key=_place)
        self._is_numbered = self._is_numbered and self.order[-1] is view

    def _number(self) -> None:
        """Only when somebody asks: at the start thousands of nodes come, each of them somewhere in between."""
        if not self._is_numbered:
            for index, view in enumerate(self.order):
                view.index = index
            self._is_numbered = True

    def _add_pod(self, pod: Pod) -> None:
        if pod.is_finished:
            return
        key = pod.metadata.key
        if pod.spec.node_name:
            self.admit(resident(pod))
        elif not pod.is_terminating:
            self.pending[key] = pod
            if pod.status.nominated_node_name in self.views:
                self._nominated[key] = pod.status.nominated_node_name
                view = self.views[pod.status.nominated_node_name]
                view.nominated[key] = resident(pod, view.name)
                self.epoch += 1

    def _drop_pod(self, key: Key) -> None:
        self.pending.pop(key, None)
        nominated = self._nominated.pop(key, None)
        if nominated is not None and nominated in self.views:
            self.views[nominated].nominated.pop(key, None)
            self.epoch += 1
        if key in self.residents:
            self.evict(key)

    def admit(self, each: Resident) -> None:
        """A pod holds its place on a node from now on."""
        view = self.views.get(each.node)
        if view is None:
            return  # its node is not known; it comes back with the node
        view.add(each)
        self.residents.put(each)
        self._touch(view)

    def evict(self, key: Key) -> Resident | None:
        """It holds nothing any more; returns what it was, None if it was not here."""
        name = self.residents.where(key)
        view = self.views.get(name) if name is not None else None
        each = view.remove(key) if view is not None else None
        if each is None or view is None:
            return None
        self.residents.drop(each)
        self._touch(view)
        return each

    def _touch(self, view: NodeView) -> None:
        if self._is_hushed:
            return
        if not self._is_numbered:
            self.epoch += 1
            return
        if len(self.log) >= _LONGEST_LOG:
            self.log = []
            self.epoch += 1
        self.log.append(view.index)

    # ---- asking

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        found = self.objects.get("Namespace", "", name)
        # The API server sets this label itself, so it holds for a namespace that was not seen.
        return found.metadata.labels if found is not None else {"kubernetes.io/metadata.name": name}

    def static_masks(self, static: Static) -> list[int]:
        """For each node in order, what keeps such a pod away whatever runs there."""
        self._number()
        return self._static.of(static, self.order)

    def where(self, key: Key) -> str | None:
        """The node that a resident is on."""
        return self.residents.where(key)

    def placed_by(self, scheduler: str) -> int:
        """Pods with a node that name this scheduler."""
        return self.residents.placed_by(scheduler)

    def has_nominated(self) -> bool:
        return bool(self._nominated)

    @property
    def ledger(self) -> DeviceLedger:
        if self._ledger is None:
            self._ledger = DeviceLedger(self.objects)
        return self._ledger

    def events_about(self, key: Key) -> list[Event]:
        """Events about the object of that namespace and name, the newest last."""
        return self._events.of(key)

    def remember(self, key: object, value: object) -> None:
        """Keep what was worked out, until anything here changes."""
        if self._remembered_at != (self.epoch, len(self.log)):
            self._remembered = {}
            self._remembered_at = (self.epoch, len(self.log))
        self._remembered[key] = value

    def remembered(self, key: object) -> object | None:
        """What `remember` kept, if nothing has changed since."""
        return self._remembered.get(key) if self._remembered_at == (self.epoch, len(self.log)) else None

    # ---- what if

    @contextmanager
    def removed(self, keys: Iterable[Key]) -> Iterator[None]:
        """The cluster as if these pods were gone, with what their claims held; taken back at the end."""
        undo: list[Callable[[], None]] = []
        try:
            for key in keys:
                self.remove(key, undo)
            yield
        finally:
            for back in reversed(undo):
                back()

    @contextmanager
    def hushed(self) -> Iterator[None]:
        """
        What is changed inside is taken back inside, and nobody need know.

        Verdicts that are remembered stay valid; inside, ask `masks_of`, never `evaluate`.
        """
        before, self._is_hushed = self._is_hushed, True
        try:
            yield
        finally:
            self._is_hushed = before

    def remove(self, key: Key, undo: list[Callable[[], None]]) -> None:
        """Take a pod away; what takes it back is appended to `undo`."""
        pod = self.pending.pop(key, None)
        if pod is not None:
            waiting = pod
            undo.append(lambda: self.pending.__setitem__(key, waiting))
            return
        each = self.evict(key)
        if each is None:
            return
        gone = each
        undo.append(lambda: self.admit(gone))
        bound = self.objects.pods().get(key)
        if bound is None or not (bound.spec.resource_claims or bound.status.extended_resource_claim_status):
            return
        ledger = self.ledger
        for claim in resource_claims(bound):
            if self._others_hold(claim, bound):
                continue
            devices = ledger.release(claim)
            if devices:
                undo.append(_taker(ledger, claim, devices))
        self._bump()
        undo.append(self._bump)

    def place(self, pod: Pod, node: str, devices: Mapping[Key, tuple[DeviceKey, ...]]) -> Callable[[], None]:
        """Bind a pending pod; returns what takes that back."""
        key = pod.metadata.key
        self.pending.pop(key, None)
        self.admit(resident(pod, node))
        for claim, keys in devices.items():
            self.ledger.take(claim, keys)
        if devices:
            self._bump()

        def back() -> None:
            self.evict(key)
            self.pending[key] = pod
            for claim in devices:
                self.ledger.release(claim)
            if devices:
                self._bump()

        return back

    def _bump(self) -> None:
        if not self._is_hushed:
            self.epoch += 1

    def _others_hold(self, key: Key, pod: Pod) -> bool:
        claim = self.objects.of(CLAIMS).get(key)
        if not isinstance(claim, ResourceClaim):
            return False
        for consumer in claim.status.reserved_for:
            name = str(consumer.get("name", ""))
            if consumer.get("resource", "pods") != "pods" or (
                name != pod.metadata.name and (key[0], name) in self.residents
            ):
                return True
        return False


def _place(view: NodeView) -> Place:
    return natural(view.name)


def _taker(ledger: DeviceLedger, claim: Key, devices: tuple[DeviceKey, ...]) -> Callable[[], None]:
    return lambda: ledger.take(claim, devices)
