"""What keeps a pod away from a node whatever runs there: selectors, node affinity, taints, a cordon."""

from __future__ import annotations

from collections.abc import Sequence

from sevenhop.core.placement.constraints import (
    CORDONED,
    NODE_AFFINITY,
    NOT_READY,
    SELECTOR,
    TAINT,
    TAINTED,
)
from sevenhop.core.placement.demand import Static
from sevenhop.core.placement.nodes import NodeView
from sevenhop.core.placement.selectors import node_matches
from sevenhop.core.placement.taints import CONDITION_TAINTS, CORDON, tolerates, untolerated

_MOST_STATIC = 512


class StaticMasks:
    """Of each demand that was asked about, a mask of constraints for each node in order."""

    def __init__(self) -> None:
        self._masks: dict[Static, list[int]] = {}

    def of(self, static: Static, nodes: Sequence[NodeView]) -> list[int]:
        """For each node in order; do not change the list."""
        masks = self._masks.get(static)
        if masks is None:
            if len(self._masks) >= _MOST_STATIC:
                self._masks.pop(next(iter(self._masks)))
            masks = self._masks[static] = []
        for index in range(len(masks), len(nodes)):
            masks.append(static_mask(nodes[index], static))
        return masks

    def node_changed(self, view: NodeView) -> None:
        """Labels, taints or the cordon of one node changed."""
        for static, masks in self._masks.items():
            if view.index < len(masks):
                masks[view.index] = static_mask(view, static)


def static_mask(view: NodeView, static: Static) -> int:
    """The constraints, each a bit, that forbid one node."""
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
