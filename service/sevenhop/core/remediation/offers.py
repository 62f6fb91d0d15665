"""Planning as the desk asks for it: a pool in, a plan or the reason for none out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sevenhop.core.inventory.state import State
from sevenhop.core.remediation.plan import Answer, Plan
from sevenhop.core.remediation.planning.need import need_of
from sevenhop.core.remediation.planning.planning import plan_for
from sevenhop.core.remediation.planning.reservations import Reservations, reservation, reserve
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.reduction import ScalingTable


def offer(
    state: State,
    pool: str,
    *,
    playbook: Playbook,
    incident: str,
    scaling: ScalingTable,
    reserved: Sequence[Plan],
    now: datetime,
    standing: Plan | None = None,
) -> Answer:
    """
    The planner of `planning`, for the top of a pool's waiting list.

    Args:
        standing: What people were asked about, or what is being done: it stays while it holds.
    """
    need = need_of(state, pool, now)
    if isinstance(need, Answer):
        return need
    held = promised(state, reserved)
    return plan_for(
        state,
        need,
        playbook=playbook,
        incident=incident,
        scaling=scaling,
        reserved=held,
        now=now,
        standing=standing,
    )


def promised(state: State, plans: Sequence[Plan]) -> Reservations:
    """What plans that are approved or running hold for somebody."""
    found = (reservation(state, plan) for plan in plans)
    return Reservations(tuple(each for each in found if each is not None))


def tell_ledger(state: State, plans: Sequence[Plan]) -> None:
    """Count what they hold in the capacities of their pools."""
    reserve(state, promised(state, plans))
