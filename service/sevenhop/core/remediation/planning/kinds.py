"""Pods and nodes as the board knows them: pods by kind, nodes by room; worked out once for one state."""

from __future__ import annotations

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement import constraints as c
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.evaluation import SchedulingClass, class_of, evaluate
from sevenhop.core.placement.nodes import NodeView
from sevenhop.core.remediation.planning.board import Board, Room


class Kinds:
    """
    Attributes:
        board: Knows every kind that was asked about.
        classes: Scheduling class of each kind.
        plain: Of each kind, whether nothing but the node itself and its room decides.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.board = Board()
        self.classes: list[SchedulingClass] = []
        self.plain: list[bool] = []
        self._of_class: dict[SchedulingClass, int] = {}
        self._of_pod: dict[Key, int] = {}
        self._resources: dict[str, int] = {}
        self._open_to: dict[int, tuple[int, int]] = {}
        self._elsewhere: dict[int, bool] = {}

    def of(self, pod: Pod) -> int:
        """The kind of a pod that waits."""
        key = pod.metadata.key
        if key not in self._of_pod:
            wanted = class_of(self._cluster, pod)
            if wanted not in self._of_class:
                needs = [
                    (self._resources.setdefault(name, len(self._resources)), amount)
                    for name, amount in wanted.demand.needs
                    if not _is_delegated(self._cluster, name)
                ]
                self._of_class[wanted] = self.board.learn(needs)
                self.classes.append(wanted)
                self.plain.append(_is_plain(self._cluster, wanted))
            self._of_pod[key] = self._of_class[wanted]
        return self._of_pod[key]

    def fits_now(self, kind: int) -> bool:
        """Whether some node takes such a pod as things are."""
        if kind not in self._elsewhere:
            self._elsewhere[kind] = evaluate(self._cluster, self.classes[kind]).fits
        return self._elsewhere[kind]

    def room(self, view: NodeView, left: frozenset[Key]) -> Room:
        """A node once these pods have left it."""
        going = [resident for key in left if (resident := view.residents.get(key)) is not None]
        free = tuple(
            view.free.get(name, 0) + sum(resident.holds.get(name, 0) for resident in going) for name in self._resources
        )
        return Room(free, view.max_pods - len(view.residents) + len(going), self._kinds_open_to(view))

    def _kinds_open_to(self, view: NodeView) -> int:
        known, bits = self._open_to.get(view.index, (0, 0))
        for kind in range(known, len(self.classes)):
            if not self._cluster.static_masks(self.classes[kind].demand.static)[view.index] & ~c.TAINTED:
                bits |= 1 << kind
        self._open_to[view.index] = (len(self.classes), bits)
        return bits


def _is_plain(cluster: Cluster, wanted: SchedulingClass) -> bool:
    volumes, claims = wanted.volumes, wanted.claims
    return (
        wanted.is_local
        and not wanted.trouble
        and not wanted.demand.ports
        and wanted.priority is None
        and not (volumes.affinity or volumes.zones or volumes.unbound or volumes.unseen)
        and not (claims.nodes or claims.unseen)
        and not any(_is_delegated(cluster, name) for name, _ in wanted.demand.needs)
    )


def _is_delegated(cluster: Cluster, resource: str) -> bool:
    """Whether a device class stands behind an extended resource, so that free units say nothing."""
    return "/" in resource and cluster.ledger.class_for_resource(resource) is not None
