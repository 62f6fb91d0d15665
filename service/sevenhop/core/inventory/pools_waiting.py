"""
Who waits for a pool: one rule for `get capacity`, the facts `pool.waiting_*` and the waiting list of a message.

A pod of an inference workload waits for a pool if it has no node, asks for GPUs of the pool, and GPUs are what keeps
it from running: one more that is healthy, offered and free, in one piece with others where it asks for several, would
do.  Why the pool has none for it does not matter: they are taken, or being given up for it, or split over nodes; they
are bad, or their device plugin does not offer them; or a node that has some is on its way.  Who asks by ResourceClaims
waits for the devices that these could get, as `claims_wanted` says.

It does not wait for the pool while something else keeps it, however many GPUs are free: its nodes are cordoned or not
ready, a node selector or somebody's taint, topology, a quota or a queue, a gate, a volume or a claim, CPU or memory, a
request that no node could ever meet.  Nor does the surge pod of a rollout, which waits for old pods of its own; nor a
member of a gang that waits for another member, which is counted itself; nor a pod of which it is unclear why it waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sevenhop.core.facts.component import waiting_reason
from sevenhop.core.facts.schema import Unknown
from sevenhop.core.inventory.capacity import Waiting
from sevenhop.core.inventory.claims_wanted import BY_CLAIM, Asked, asked_by_claims, claims_of
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import Slot, State
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

Claims = Mapping[Key, Asked]
"""Waiting pod to what it asks of its component's pool by claims."""

NO_CLAIMS: Claims = {}


def waits_for_gpus(row: PodRow) -> bool:
    """Whether a pod waits for the pool that its GPUs would come from; see the top of this file."""
    why = row.pending
    if not row.waiting or not row.gpus or why is None:
        return False
    if why.cause == "preempting":
        # Victims are leaving; of what they leave, GPUs have to be a part.
        return any(slug == f"{_INSUFFICIENT}{row.resource}" for slug, _ in why.excluded)
    return why.cause in WAITS


def claims_on(state: State, rows: Iterable[PodRow], pool: str) -> Claims:
    """What waiting pods ask of a pool by claims; what several of them share is asked once, by the first."""
    found: dict[Key, Asked] = {}
    counted: set[Key] = set()
    for row in sorted(rows, key=lambda row: row.key):
        asked = asked_by_claims(state, row, ()).get(pool) if may_wait_by_claim(row) else None
        if asked is None:
            continue
        own = claims_of(state, row)
        if own & counted:
            asked = asked_by_claims(state, row, own & counted).get(pool, Asked((0,), asked.on_repair))
        found[row.key] = asked
        counted |= own
    return found


def may_wait_by_claim(row: PodRow) -> bool:
    """Whether devices by claims may be what keeps it; `asked_by_claims` tells."""
    if not row.waiting or row.pending is None:
        return False
    return row.pending.cause in BY_CLAIM or (not row.resource and row.pending.cause in WAITS)


def place_in_queue(
    slot: Slot, tier: Tier, rows: Sequence[PodRow], since: datetime | None, claims: Claims = NO_CLAIMS
) -> Waiting | None:
    """
    A component's place among those that wait for its pool; None if none of its pods does.

    Args:
        rows: Its pods.
        since: When it began to wait, for whatever.
        claims: As `claims_on` says.
    """
    waiting = [row for row in rows if row.key in claims or waits_for_gpus(row)]
    if not waiting:
        return None
    reason = waiting_reason(waiting, ())
    unclear = next((asked.unclear for _, asked in sorted(claims.items()) if asked.unclear), "")
    return Waiting(
        workload=slot[0],
        component=slot[1],
        tier=tier.value,
        pods=len(waiting),
        gpus=sum(_gpus(row, claims) for row in waiting),
        since=since,
        cause="" if isinstance(reason, Unknown) else reason[1],
        on_repair=sum(_gpus(row, claims) for row in waiting if _is_on_repair(row, claims)),
        helped_by_others=any(_is_helped(row, claims) for row in waiting),
        unclear=unclear,
    )


def _gpus(row: PodRow, claims: Claims) -> int:
    asked = claims.get(row.key)
    return row.gpus if asked is None else asked.gpus


def _is_on_repair(row: PodRow, claims: Claims) -> bool:
    asked = claims.get(row.key)
    return asked.on_repair if asked is not None else row.pending is not None and row.pending.cause in ON_REPAIR


def _is_helped(row: PodRow, claims: Claims) -> bool:
    asked = claims.get(row.key)
    if asked is not None:
        return not asked.on_repair
    return row.pending is not None and row.pending.cause in GIVEN_UP_HELPS
