"""Room that approved and running plans have promised to somebody, so that no two plans promise the same GPUs."""

from __future__ import annotations

from collections import Counter

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.state import Slot, State
from sevenhop.core.remediation.plan import Plan


class Reservation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What one open plan has promised.

    Attributes:
        plan: Its id, for words.
        slot: (workload, component) that it is for.
        pods: That it is for; those that still wait are served before anybody else.
        victims: That leave for it for certain; gone already, or about to go.
        donors: (workload, component) that give; nobody else may take from them meanwhile.
        pool: Whose GPUs these are.
        gpus: Promised; 0 once every pod has its node.
    """

    plan: str
    slot: Slot
    pods: tuple[Key, ...]
    victims: tuple[Key, ...] = ()
    donors: tuple[Slot, ...] = ()
    pool: str = ""
    gpus: int = 0


class Reservations(msgspec.Struct, frozen=True, gc=False):
    """Of all plans that are approved or running; empty for none."""

    held: tuple[Reservation, ...] = ()

    def without(self, slot: Slot) -> Reservations:
        """Those for somebody else: a plan does not stand in its own way."""
        return Reservations(tuple(each for each in self.held if each.slot != slot))

    @property
    def pods(self) -> tuple[Key, ...]:
        return tuple(dict.fromkeys(pod for each in self.held for pod in each.pods))

    @property
    def victims(self) -> tuple[Key, ...]:
        return tuple(dict.fromkeys(pod for each in self.held for pod in each.victims))

    def taker(self, donor: Slot) -> str:
        """The plan that takes from this component already; empty if none does."""
        return next((each.plan for each in self.held if donor in each.donors), "")

    def by_pool(self) -> dict[str, int]:
        """GPUs promised in each pool."""
        total: Counter[str] = Counter()
        for each in self.held:
            total[each.pool] += each.gpus
        return {pool: gpus for pool, gpus in total.items() if pool and gpus}


def reservation(state: State, plan: Plan) -> Reservation | None:
    """What a plan that was approved promises as things are now; None for one that is for nobody."""
    need = plan.need
    if need is None:
        return None
    pending = state.placement.pending
    waiting = [pod for pod in need.pods if pod in pending]
    rows = [state.rows[pod] for pod in waiting if pod in state.rows]
    slot = (need.workload, need.component)
    return Reservation(
        plan=plan.id,
        slot=slot,
        pods=need.pods,
        # Where the controller chooses, nobody knows yet whose place becomes free.
        victims=plan.victims if plan.helps_in[1] == 1 else (),
        donors=tuple((scale.workload, scale.component) for scale in plan.scales),
        pool=state.pool_of.get(slot, need.product),
        gpus=sum(row.gpus for row in rows),
    )


def reserve(state: State, reservations: Reservations) -> None:
    """Tell the ledger's capacities (`PoolCapacity.reserved`); pools whose number changed are counted anew."""
    after = reservations.by_pool()
    before = state.reserved
    for pool in {*before, *after}:
        if before.get(pool, 0) != after.get(pool, 0):
            state.capacities.pop(pool, None)
    state.reserved = after
