"""
What becomes of a plan: the states, and which may follow which.

    proposed ─► approved ─► running ─► succeeded ─► restored
        │           │          ├─► failed      (nothing was changed, or nothing could be undone: said which)
        │           │          ├─► undone      (goal not reached, everything as before)
        │           │          └─► unknown     (a person must look; what is known is said)
        ├─► rejected, expired, superseded, shadowed
"""

from __future__ import annotations

from enum import StrEnum


class PlanState(StrEnum):
    PROPOSED = "proposed"
    SHADOWED = "shadowed"  # made and recorded, nobody was asked
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"  # the world changed, or a newer plan took its place
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNDONE = "undone"
    UNKNOWN = "unknown"
    RESTORED = "restored"

    @property
    def is_open(self) -> bool:
        """Whether something may still come of it by itself."""
        return self in (PlanState.PROPOSED, PlanState.APPROVED, PlanState.RUNNING, PlanState.SUCCEEDED)


NEXT: dict[PlanState, frozenset[PlanState]] = {
    PlanState.PROPOSED: frozenset({PlanState.APPROVED, PlanState.REJECTED, PlanState.EXPIRED, PlanState.SUPERSEDED}),
    PlanState.SHADOWED: frozenset(),
    PlanState.APPROVED: frozenset({PlanState.RUNNING, PlanState.SUPERSEDED, PlanState.FAILED}),
    PlanState.REJECTED: frozenset(),
    PlanState.EXPIRED: frozenset(),
    PlanState.SUPERSEDED: frozenset(),
    PlanState.RUNNING: frozenset({PlanState.SUCCEEDED, PlanState.FAILED, PlanState.UNDONE, PlanState.UNKNOWN}),
    # A success without a lease, or whose donor somebody else changed, stays what it is.
    PlanState.SUCCEEDED: frozenset({PlanState.RESTORED, PlanState.UNKNOWN}),
    PlanState.FAILED: frozenset(),
    PlanState.UNDONE: frozenset(),
    # A person undoes by hand what we could not.
    PlanState.UNKNOWN: frozenset({PlanState.UNDONE, PlanState.RESTORED, PlanState.SUCCEEDED}),
    PlanState.RESTORED: frozenset(),
}
"""State to those that may follow."""
