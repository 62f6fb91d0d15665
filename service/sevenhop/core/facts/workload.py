"""Facts of one workload."""

from __future__ import annotations

from functools import partial

from sevenhop.core.facts.schema import FactSpec, FactType
from sevenhop.core.subject import SubjectKind

_row = partial(FactSpec, subject=SubjectKind.WORKLOAD)

SPECS: tuple[FactSpec, ...] = (
    _row(
        name="workload.changed_30m",
        type=FactType.BOOL,
        doc="Its image, arguments, replicas or spec changed within 30 minutes.",
        source="history",
        unknown_when="we have not looked for 30 minutes and saw no change (window)",
    ),
    _row(
        name="workload.operator_disagrees",
        type=FactType.BOOL,
        doc="Its operator calls it ready while a component that should run has no ready replica.",
        source="the workload's root, Pod",
        not_applicable=False,
        unknown_when="the root or its pods cannot be seen",
    ),
    _row(
        name="workload.gang_incomplete",
        type=FactType.BOOL,
        doc="Of pods that only work together, some have a node and some wait for one.",
        source="Pod",
        not_applicable=False,
        unknown_when="pods cannot be seen, or a member was not read",
    ),
    _row(
        name="workload.kv_transfer_failures_10m",
        type=FactType.INT,
        unit="failures in 10 min",
        doc="KV-cache transfers between prefill and decode that failed.",
        source="engine metrics",
        unknown_when="no metrics source (no_source)",
    ),
)
