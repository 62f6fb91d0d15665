"""Facts of one node."""

from __future__ import annotations

from functools import partial

from sevenhop.core.facts.schema import FactSpec, FactType
from sevenhop.core.subject import SubjectKind

_row = partial(FactSpec, subject=SubjectKind.NODE, source="Node", unknown_when="nodes cannot be seen")

SPECS: tuple[FactSpec, ...] = (
    _row(
        name="node.ready",
        type=FactType.BOOL,
        doc="The Ready condition is True; a kubelet that fell silent (status Unknown) is not ready.",
        unknown_when="nodes cannot be seen, or the node has no Ready condition yet",
    ),
    _row(
        name="node.maintenance",
        type=FactType.BOOL,
        doc="Cordoned, being drained, or tainted for maintenance or removal, by somebody else than us.",
        not_applicable=False,
    ),
    _row(
        name="node.gpu.expected",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs that the node should advertise: the most of its label, its capacity and what it advertised before.",
        source="Node, history",
        not_applicable=0,
    ),
    _row(
        name="node.gpu.visible",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs that the driver sees.",
        source="gpu agent",
        not_applicable=0,
        unknown_when="no agent on the node (no_source)",
    ),
    _row(
        name="node.gpu.allocatable",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs that the node advertises to the scheduler.",
        not_applicable=0,
    ),
    _row(
        name="node.gpu.bound",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs of all pods that have this node and have not finished, terminating ones included.",
        source="Pod",
        not_applicable=0,
        unknown_when="pods cannot be seen",
    ),
    _row(
        name="node.gpu.unhealthy_allocatable",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs that the agent calls unhealthy and the node still advertises.",
        source="gpu agent",
        not_applicable=0,
        unknown_when="no agent on the node (no_source)",
    ),
    _row(
        name="node.plugin_ready",
        type=FactType.BOOL,
        doc="The device plugin's pod on this node is ready, or, where none can be told apart, the node advertises GPUs.",
        source="Pod, Node",
        not_applicable=True,
        unknown_when="no device-plugin pod is recognised and the node advertises nothing (no_source)",
    ),
    _row(
        name="node.loads_fail_only_here",
        type=FactType.BOOL,
        doc="Pods of one release fail here at least twice, nowhere else, and are ready on another node.",
        source="Pod",
        not_applicable=False,
        unknown_when="pods cannot be seen",
    ),
)
