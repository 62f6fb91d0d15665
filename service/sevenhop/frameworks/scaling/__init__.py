"""
What is patched to give one component fewer replicas: one row per framework.

Each row finds the object that really rules the replicas, or says in words why it may not be reduced; docs/reference/
scaling.md is rendered from it, and what the executor may patch is granted from it.
"""

from __future__ import annotations

from sevenhop.core.inventory.workloads import Framework
from sevenhop.core.remediation.reduction import ScalingSpec, ScalingTable
from sevenhop.frameworks.scaling.controllers import LEADER_WORKER_SET, LLM_D, PLAIN
from sevenhop.frameworks.scaling.dynamo import DYNAMO
from sevenhop.frameworks.scaling.kserve import KSERVE
from sevenhop.frameworks.scaling.kuberay import KUBERAY
from sevenhop.frameworks.scaling.nim import NIM
from sevenhop.frameworks.scaling.proven import not_proven

_ROWS: tuple[ScalingSpec, ...] = (
    DYNAMO,
    KUBERAY,
    KSERVE,
    LEADER_WORKER_SET,
    LLM_D,
    NIM,
    PLAIN,
    not_proven(Framework.AIBRIX, "a StormService shrinks by role or by whole RoleSet, as its mode says"),
    not_proven(Framework.KUBEAI, "a Model scales itself from its requests, within limits that it keeps itself"),
    not_proven(Framework.PRODUCTION_STACK, "its chart and its operator set replicas in different places"),
    not_proven(Framework.RBG, "a RoleBasedGroup has roles, coordination and a scaling adapter"),
    not_proven(Framework.GROVE, "which pods Grove removes, and what a gang below its least does, was not seen"),
    not_proven(Framework.KAITO, "a Workspace owns its nodes, and an InferenceSet its Workspaces"),
)

SCALING: ScalingTable = {spec.framework: spec for spec in _ROWS}
