"""
Who waits for a pool: one rule for `get capacity`, the facts `pool.waiting_*` and the waiting list of a message.

A pod of an inference workload waits for a pool if it has no node, asks for GPUs of the pool, and GPUs are what keeps
it from running: one more that is healthy, offered and free, in one piece with others where it asks for several, would
do.  Why the pool has none for it does not matter: they are taken, or being given up for it, or split over nodes; they
are bad, or their device plugin does not offer them; or a node that has some is on its way.

It does not wait for the pool while something else keeps it, however many GPUs are free: its nodes are cordoned or not
ready, a node selector or somebody's taint, topology, a quota or a queue, a gate, a volume or a claim, CPU or memory, a
request that no node could ever meet.  Nor does the surge pod of a rollout, which waits for old pods of its own; nor a
member of a gang that waits for another member, which is counted itself; nor a pod of which it is unclear why it waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sevenhop.core.facts.component import waiting_reason
from sevenhop.core.facts.schema import Unknown
from sevenhop.core.inventory.capacity import Waiting
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import Slot
from sevenhop.core.inventory.workloads import Tier

GIVEN_UP_HELPS = frozenset(
    ("gpu-shortage", "gpu-fragmentation", "mig-shortage", "autoscaler-adding", "autoscaler-maxed", "autoscaler-backoff")
)
"""The pool has too few, or not where they are needed: who has some could help."""

ON_REPAIR = frozenset(("gpus-unhealthy", "device-plugin-not-advertising"))
"""The pool has them, and offers them to nobody."""

WAITS = GIVEN_UP_HELPS | ON_REPAIR | {"gpu-unavailable"}
"""The last where nodes cannot be seen: it is all that a text tells."""

_INSUFFICIENT = "insufficient "


def waits_for_gpus(row: PodRow) -> bool:
    """Whether a pod waits for the pool that its GPUs would come from; see the top of this file."""
    why = row.pending
    if not row.waiting or not row.gpus or why is None:
        return False
    if why.cause == "preempting":
        # Victims are leaving; of what they leave, GPUs have to be a part.
        return any(slug == f"{_INSUFFICIENT}{row.resource}" for slug, _ in why.excluded)
    return why.cause in WAITS


def place_in_queue(slot: Slot, tier: Tier, rows: Sequence[PodRow], since: datetime | None) -> Waiting | None:
    """
    A component's place among those that wait for its pool; None if none of its pods does.

    Args:
        rows: Its pods.
        since: When it began to wait, for whatever.
    """
    waiting = [row for row in rows if waits_for_gpus(row)]
    if not waiting:
        return None
    reason = waiting_reason(waiting, ())
    return Waiting(
        workload=slot[0],
        component=slot[1],
        tier=tier.value,
        pods=len(waiting),
        gpus=sum(row.gpus for row in waiting),
        since=since,
        cause="" if isinstance(reason, Unknown) else reason[1],
        on_repair=sum(row.gpus for row in waiting if row.pending is not None and row.pending.cause in ON_REPAIR),
        helped_by_others=any(row.pending is not None and row.pending.cause in GIVEN_UP_HELPS for row in waiting),
    )
