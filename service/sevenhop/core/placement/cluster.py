"""
The cluster as placement sees it: nodes with their residents, indexed, and kept current one object at a time.

`refresh` builds it from `Objects`; after that the owner calls `update` for each object that changed, so that the live
service never rebuilds.  What-if questions mutate it and take that back: `removed`, `placed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar, cast

import msgspec

from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.cluster import Event, Node, PersistentVolumeClaim, ResourceClaim
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.constraints import (
    CORDONED,
    NODE_AFFINITY,
    NOT_READY,
    SELECTOR,
    TAINT,
    TAINTED,
)
from sevenhop.core.placement.demand import AffinityTerm, Static
from sevenhop.core.placement.devices import (
    CLAIMS,
    CLASSES,
    SLICES,
    TEMPLATES,
    DeviceKey,
    DeviceLedger,
    device_classes,
)
from sevenhop.core.placement.nodes import NodeView, Resident, resident
from sevenhop.core.placement.requests import amounts
from sevenhop.core.placement.selectors import Selector, node_matches
from sevenhop.core.placement.taints import CONDITION_TAINTS, CORDON, tolerates, untolerated
from sevenhop.core.placement.volumes import STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES, claims_of

Counts = dict[str, int]
"""Node name to number of pods."""

_K = TypeVar("_K")

_MOST_INDEXES = 512
_MOST_STATIC = 512
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
        views: By node name, in a fixed order.
        pending: Pods that wait for a node.
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
        self._where: dict[Key, str] = {}
        self._by_namespace: dict[str, dict[Key, Resident]] = {}
        self._repelling: dict[AffinityTerm, Counts] = {}
        self._exclusive: dict[Key, int] = {}
        self._nominated: dict[Key, str] = {}
        self._priorities: dict[int, int] = {}
        self._schedulers: dict[str, int] = {}
        self._indexes: dict[object, tuple[Callable[[Resident], bool], Counts]] = {}
        self._static: dict[Static, list[int]] = {}
        self._absence: dict[str, bool] = {}
        self._events: dict[Key, dict[Key, Event]] | None = None
        self._ledger: DeviceLedger | None = None
        self._remembered: dict[object, object] = {}
        self._remembered_at = (0, 0)
        self._is_hushed = False
        self.bad_gpus: dict[str, BadGpus] = {}
        self.evaluations: dict[object, object] = {}
        self.refresh()

    # ---- keeping current

    def refresh(self) -> None:
        """Build everything anew from `objects`."""
        self.views = {}
        self.order = []
        self.pending = {}
        self._where, self._by_namespace, self._repelling = {}, {}, {}
        self._exclusive, self._nominated, self._indexes, self._static = {}, {}, {}, {}
        self._absence, self._ledger, self._events = {}, None, None
        self._priorities, self._schedulers = {}, {}
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
            if self._absence:
                self._update_absence(pod)
        elif kind == "Node":
            self._update_node(key[1])
        elif kind == "Event":
            self._update_event(key)
        elif kind == "PodDisruptionBudget.policy":
            self._remembered = {}  # whom preemption would take
        elif kind == "Namespace":
            self._indexes = {}
            self.epoch += 1
        elif kind in _VOLUME_KINDS or kind in _DEVICE_KINDS:
            self._absence = {}
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

    def _update_absence(self, pod: Pod | None) -> None:
        """A pod that runs may prove that what it uses exists; one that ends takes its proof along."""
        runs = pod is not None and bool(pod.spec.node_name) and not pod.is_finished and not pod.is_terminating
        for kind, is_absent in list(self._absence.items()):
            named = _REFERENCES.get(kind)
            if named is None or self.objects.of(kind):
                continue
            proves = pod is not None and runs and bool(named(pod))
            if proves if is_absent else not runs:
                del self._absence[kind]
                self.epoch += 1

    def _update_event(self, key: Key) -> None:
        if self._events is None:
            return
        event = self.objects.of("Event").get(key)
        if isinstance(event, Event):
            self._events.setdefault((event.about.namespace, event.about.name), {})[key] = event
        else:
            for about in self._events.values():
                about.pop(key, None)

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
            for static, masks in self._static.items():
                if view.index < len(masks):
                    masks[view.index] = _static_mask(view, static)
            self.epoch += 1
        self._touch(view)

    def _renumber(self, name: str, node: Node | None) -> None:
        self.epoch += 1
        self._static = {}
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
        self.order = list(self.views.values())
        for index, each in enumerate(self.order):
            each.index = index
        for key in nominated:  # they still wait, for another node
            waiting = self.objects.pods().get(key)
            if waiting is not None:
                self._add_pod(waiting)

    def _add_node(self, node: Node) -> None:
        view = NodeView(node, len(self.order))
        self.views[view.name] = view
        self.order.append(view)

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
        if key in self._where:
            self.evict(key)

    def admit(self, each: Resident) -> None:
        """A pod holds its place on a node from now on."""
        view = self.views.get(each.node)
        if view is None:
            return  # its node is not known; it comes back with the node
        view.add(each)
        self._where[each.key] = each.node
        self._by_namespace.setdefault(each.key[0], {})[each.key] = each
        self._count(each, 1)
        self._touch(view)

    def evict(self, key: Key) -> Resident | None:
        """It holds nothing any more; returns what it was, None if it was not here."""
        name = self._where.pop(key, None)
        view = self.views.get(name) if name is not None else None
        each = view.remove(key) if view is not None else None
        if each is None or view is None:
            return None
        there = self._by_namespace[key[0]]
        there.pop(key, None)
        self._count(each, -1)
        self._touch(view)
        return each

    def _count(self, each: Resident, sign: int) -> None:
        _tally(self._priorities, each.priority, sign)
        _tally(self._schedulers, each.scheduler, sign)
        for term in each.anti_affinity:
            _tally(self._repelling.setdefault(term, {}), each.node, sign)
            if not self._repelling[term]:
                del self._repelling[term]
        for claim in each.claims:
            _tally(self._exclusive, claim, sign)
        for counts_it, counts in self._indexes.values():
            if counts_it(each):
                _tally(counts, each.node, sign)

    def _touch(self, view: NodeView) -> None:
        if self._is_hushed:
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
        masks = self._static.get(static)
        if masks is None:
            if len(self._static) >= _MOST_STATIC:
                self._static.pop(next(iter(self._static)))
            masks = self._static[static] = []
        for index in range(len(masks), len(self.order)):
            masks.append(_static_mask(self.order[index], static))
        return masks

    def spread_counts(self, namespace: str, selector: Selector) -> Counts:
        """Pods per node that a spread constraint counts: of the namespace, not terminating; ``{}`` counts none."""
        if selector.is_everything or selector.nothing:
            return {}

        def counts_it(each: Resident) -> bool:
            return each.key[0] == namespace and not each.terminating and selector.matches(each.labels)

        return self._index(("spread", namespace, selector), counts_it, frozenset((namespace,)))

    def affinity_counts(self, terms: tuple[AffinityTerm, ...]) -> Counts:
        """Pods per node that match all of the terms at once, terminating ones too."""

        def counts_it(each: Resident) -> bool:
            namespace = each.key[0]
            return all(t.covers(namespace, each.labels, self.namespace_labels(namespace)) for t in terms)

        named = all(t.namespace_selector is None for t in terms)
        namespaces = frozenset[str]().union(*(t.namespaces for t in terms)) if named else None
        return self._index(("affinity", terms), counts_it, namespaces)

    def repelled_by(self, pod: Pod) -> tuple[AffinityTerm, ...]:
        """Anti-affinity terms of pods that are here already, which speak of this pod."""
        if not self._repelling:
            return ()
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        of_namespace = self.namespace_labels(namespace)
        return tuple(t for t in self._repelling if t.covers(namespace, labels, of_namespace))

    def repelling(self, term: AffinityTerm) -> Counts:
        """Pods per node that carry the term."""
        return self._repelling.get(term, {})

    def users_of(self, claim: Key) -> int:
        """Pods with a node that mount a PersistentVolumeClaim."""
        return self._exclusive.get(claim, 0)

    def where(self, key: Key) -> str | None:
        """The node that a resident is on."""
        return self._where.get(key)

    def lowest_priority(self) -> int | None:
        """Of all pods that have a node; None if there are none."""
        return min(self._priorities, default=None)

    def placed_by(self, scheduler: str) -> int:
        """Pods with a node that name this scheduler."""
        return self._schedulers.get(scheduler, 0)

    def has_nominated(self) -> bool:
        return bool(self._nominated)

    @property
    def ledger(self) -> DeviceLedger:
        if self._ledger is None:
            self._ledger = DeviceLedger(self.objects)
        return self._ledger

    def events_about(self, key: Key) -> list[Event]:
        """Events about the object of that namespace and name, the newest last."""
        if self._events is None:
            self._events = {}
            for each, event in cast("Mapping[Key, Event]", self.objects.of("Event")).items():
                self._events.setdefault((event.about.namespace, event.about.name), {})[each] = event
        return sorted(self._events.get(key, {}).values(), key=lambda e: e.last_seen.timestamp() if e.last_seen else 0.0)

    def absence_counts(self, kind: str) -> bool:
        """
        Whether an object of this kind that is not here does not exist.

        Not so while the kind is not fully known; nor where none of the kind is here and yet a pod *runs* with one: then
        nobody collected them.
        """
        if not self.objects.is_known(kind):
            return False
        if kind not in self._absence:
            self._absence[kind] = not self._is_contradicted(kind)
        return self._absence[kind]

    def _is_contradicted(self, kind: str) -> bool:
        there = self.objects.of(kind)
        if there:
            return False
        if kind == CLASSES:
            claims = cast("Mapping[Key, ResourceClaim]", self.objects.of(CLAIMS)).values()
            return any(("", n) not in there for c in claims if c.status.allocation for n in device_classes(c.spec))
        if kind == STORAGE_CLASSES:
            volumes = cast("Mapping[Key, PersistentVolumeClaim]", self.objects.of(VOLUME_CLAIMS)).values()
            names = {v.spec.storage_class_name for v in volumes if v.status.phase == "Bound"}
            return any(name and ("", name) not in there for name in names)
        named = _REFERENCES.get(kind)
        if named is None:
            return False
        return any(
            key not in there
            for pod in self.objects.pods().values()
            if pod.spec.node_name and not pod.is_finished and not pod.is_terminating
            for key in named(pod)
        )

    def _index(self, name: object, counts_it: Callable[[Resident], bool], namespaces: frozenset[str] | None) -> Counts:
        known = self._indexes.get(name)
        if known is not None:
            return known[1]
        counts: Counts = {}
        for namespace in namespaces if namespaces is not None else list(self._by_namespace):
            for each in self._by_namespace.get(namespace, {}).values():
                if counts_it(each):
                    _tally(counts, each.node, 1)
        if len(self._indexes) >= _MOST_INDEXES:
            self._indexes.pop(next(iter(self._indexes)))
        self._indexes[name] = (counts_it, counts)
        return counts

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
                name != pod.metadata.name and (key[0], name) in self._where
            ):
                return True
        return False


def resource_claims(pod: Pod) -> list[Key]:
    """Keys of the ResourceClaims that a pod uses, as far as its status or spec name them."""
    generated = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
    names = [c.resource_claim_name or generated.get(c.name) for c in pod.spec.resource_claims]
    extended = pod.status.extended_resource_claim_status or {}
    names.append(cast("str | None", extended.get("resourceClaimName")))
    return [(pod.metadata.namespace, name) for name in names if name]


def claim_templates(pod: Pod) -> list[Key]:
    """Keys of the ResourceClaimTemplates that a pod names."""
    names = (c.resource_claim_template_name for c in pod.spec.resource_claims)
    return [(pod.metadata.namespace, name) for name in names if name]


_REFERENCES: dict[str, Callable[[Pod], list[Key]]] = {
    VOLUME_CLAIMS: claims_of,
    CLAIMS: resource_claims,
    TEMPLATES: claim_templates,
}
"""Kind to what a running pod proves to exist."""


def _taker(ledger: DeviceLedger, claim: Key, devices: tuple[DeviceKey, ...]) -> Callable[[], None]:
    return lambda: ledger.take(claim, devices)


def _tally(counts: dict[_K, int], key: _K, sign: int) -> None:
    value = counts.get(key, 0) + sign
    if value:
        counts[key] = value
    else:
        counts.pop(key, None)


def _static_mask(view: NodeView, static: Static) -> int:
    mask = 0
    if view.node.spec.unschedulable and not tolerates(static.tolerances, CORDON, "", "NoSchedule"):
        mask |= CORDONED
    for taint in untolerated(view.taints, static.tolerances) if view.taints else ():
        mask |= TAINTED
        if taint.key == CORDON:
            mask |= CORDONED
        else:
            mask |= NOT_READY if taint.key in CONDITION_TAINTS else TAINT
    labels = view.labels
    for key, value in static.node_selector:
        if labels.get(key) != value:
            mask |= SELECTOR
            break
    if static.node_affinity is not None and not node_matches(static.node_affinity, view.name, labels):
        mask |= NODE_AFFINITY
    return mask
