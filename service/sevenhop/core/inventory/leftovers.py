"""
Failed pods that nobody deletes: which of them still tell what is wrong.

A kubelet that evicts or rejects a pod leaves it behind, and its controller makes another one.  Once that one stands for
itself the old one is history; until then it is all that tells why the replica is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from heapq import nlargest

from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.workloads import Component

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def without_history(part: Component | None, rows: Sequence[PodRow]) -> list[PodRow]:
    """
    A component's pods without the failed ones that were replaced, or that nothing is to replace.

    Args:
        part: None, or without a count, where nothing says how many there should be: then all of them tell something.
    """
    failed = [row for row in rows if row.failure is not None and _is_left_over(row)]
    if not failed or part is None or (part.desired is None and not part.intended_zero):
        return list(rows)
    wanted = 0 if part.intended_zero else (part.desired or 0) * max(1, part.pods_per_replica)
    missing = max(0, wanted - sum(_stands_for_itself(row) for row in rows))
    newest = nlargest(missing, failed, key=lambda row: (row.created or _LONG_AGO, row.key))  # of thousands a few
    kept = {row.key for row in newest}
    return [row for row in rows if not _is_left_over(row) or row.key in kept]


def live_or_telling(rows: Iterable[PodRow]) -> list[PodRow]:
    """Pods that live, and failed ones that are not on their way out."""
    return [row for row in rows if row.live or (row.failure is not None and not row.terminating)]


def _is_left_over(row: PodRow) -> bool:
    return not row.live and not row.terminating and row.failure is not None


def _stands_for_itself(row: PodRow) -> bool:
    """
    Whether a pod lives and shows how it is: it runs, it fails, or it waits.

    One that was just made does not: a kubelet that rejects every pod would otherwise make the failure come and go.
    """
    return row.live and (row.ready or row.started or row.failure is not None or row.waiting)
