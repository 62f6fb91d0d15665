"""Facts of one workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sevenhop.core.facts.schema import Facts, FactSpec, FactType, Unknown, UnknownReason
from sevenhop.core.inventory.rows import PodRow
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

NOT_LOOKED_LONG_ENOUGH = Unknown(UnknownReason.WINDOW, "we have not looked for 30 minutes")


def derive(
    *,
    changed: bool | Unknown,
    operator_says_ready: bool,
    without_ready: bool,
    rows: Iterable[PodRow],
    pods_unknown: Unknown | None = None,
    root_unknown: Unknown | None = None,
) -> Facts:
    """
    Facts of one workload.

    Args:
        changed: Whether something changed within 30 minutes.
        operator_says_ready: What the root's status says, see `operator_says_ready`.
        without_ready: Whether a component that should run has no ready replica.
    """
    return {
        "workload.changed_30m": changed,
        "workload.operator_disagrees": root_unknown or pods_unknown or (operator_says_ready and without_ready),
        "workload.gang_incomplete": pods_unknown or gang_incomplete(rows),
        "workload.kv_transfer_failures_10m": Unknown(UnknownReason.NO_SOURCE, "engine metrics"),
    }


def gang_incomplete(rows: Iterable[PodRow]) -> bool:
    """Whether some pods of one gang, or of one multi-pod replica, have a node while others wait for one."""
    placed: set[tuple[str, str]] = set()
    waiting: set[tuple[str, str]] = set()
    for row in rows:
        if not row.live or not (row.gang or row.group):
            continue
        together = [("gang", row.gang)] if row.gang else []
        together += [(row.component, row.group)] if row.group else []
        (placed if row.node else waiting if row.waiting else set()).update(together)
    return not placed.isdisjoint(waiting)


def operator_says_ready(status: Mapping[str, Any]) -> bool:
    """Whether a root's own status calls the workload ready: a Ready condition, or Dynamo's ``state: successful``."""
    conditions: Sequence[Any] = status.get("conditions") or ()
    said = [c.get("status") for c in conditions if isinstance(c, dict) and c.get("type") == "Ready"]
    return "True" in said or status.get("state") == "successful"
