"""One plan for one need, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.plan import Answer, Need, NoPlanReason, Plan
from sevenhop.core.remediation.planning import refusals
from sevenhop.core.remediation.planning.binding import Asked, Binding
from sevenhop.core.remediation.planning.candidates import Field, candidates
from sevenhop.core.remediation.planning.kinds import Kinds
from sevenhop.core.remediation.planning.need import no_plan, not_helped, ready_goal
from sevenhop.core.remediation.planning.queue import queue_of, turn
from sevenhop.core.remediation.planning.reservations import Reservations
from sevenhop.core.remediation.planning.simulate import Simulation
from sevenhop.core.remediation.planning.words import slot_name
from sevenhop.core.remediation.playbook import Mode, Playbook
from sevenhop.core.remediation.reduction import ScalingTable

MOST_ENDING = 16
"""Nodes on which pods that are ending are taken to be about to leave."""

MOST_PARTS = 8
"""Where not all replicas that wait can be helped, at most so many are tried together."""


def plan_for(
    state: State,
    need: Need,
    *,
    playbook: Playbook,
    incident: str,
    scaling: ScalingTable,
    reserved: Reservations,
    now: datetime,
    standing: Plan | None = None,
) -> Answer:
    """
    The smallest change that certainly helps, as the cluster is now.

    It helps all pods of the need, or as many whole replicas of it as can be helped: the plan's own `need` says which.

    Args:
        need: From `need_of`; its pods are looked up anew.
        reserved: What other plans have promised; those of the same need are passed over.
        standing: What people were asked about before.  While it still holds and nothing with fewer replicas does, it
            comes out again, though another choice would be as good by now.
    """
    if playbook.mode is Mode.OFF:
        return no_plan(NoPlanReason.OFF, f"playbook {playbook.id} is off")
    slot = (need.workload, need.component)
    rows, answer = _rows(state, need, now)
    if answer is not None:
        return answer
    pods = sorted((state.placement.pending[row.key] for row in rows), key=turn)
    answer = refusals.fits_by_now(state, pods)
    if answer is not None:
        return answer
    why_not = refusals.preemption(state, pods)
    if isinstance(why_not, Answer):
        return why_not
    own = standing.id if standing is not None else ""
    field = candidates(state, need, pods, scaling, reserved.without(slot), playbook, now, own)
    if isinstance(field, Answer):
        return field
    asked = Asked(
        need=need,
        waiting=len(rows),
        playbook=playbook,
        incident=incident,
        not_preempted=why_not,
        now=now,
        standing=standing,
    )
    maker = _Maker(state, need, rows, field, reserved.without(slot), asked)
    return maker.best(maker.units(pods))


class _Maker:
    """Plans for all that waits, or for a part of it."""

    def __init__(
        self,
        state: State,
        need: Need,
        rows: Sequence[PodRow],
        field: Field,
        reserved: Reservations,
        asked: Asked,
    ) -> None:
        self._state, self._need, self._field, self._reserved, self._asked = state, need, field, reserved, asked
        self._rows = {row.key: row for row in rows}
        self._kinds = Kinds(state.placement)

    def units(self, pods: Sequence[Pod]) -> list[list[Pod]]:
        """Pods by whole replica or gang, in the order in which the scheduler tries them."""
        part = self._state.part((self._need.workload, self._need.component))
        is_grouped = part is not None and part.pods_per_replica > 1
        units: dict[str, list[Pod]] = {}
        for pod in pods:
            row = self._rows[pod.metadata.key]
            units.setdefault(row.gang or (row.group if is_grouped else "") or row.key[1], []).append(pod)
        return list(units.values())

    def best(self, units: Sequence[Sequence[Pod]]) -> Answer:
        """For all of them, else for as many as can be helped: what can be done for two can be done for one."""
        best = whole = self.answer(units)
        if whole.plan is not None or whole.reason is NoPlanReason.NOT_A_SHORTAGE:
            return whole
        for size in range(1, min(len(units), MOST_PARTS + 1)):
            part = self.answer(units[:size])
            if part.plan is None:
                break
            best = part
        return best

    def answer(self, units: Sequence[Sequence[Pod]]) -> Answer:
        """For these replicas."""
        pods = [pod for unit in units for pod in unit]
        helped = [self._rows[pod.metadata.key] for pod in pods]
        slot = (self._need.workload, self._need.component)
        need = msgspec.structs.replace(
            self._need,
            pods=tuple(row.key for row in helped),
            gpus=sum(row.gpus for row in helped),
            ready_goal=ready_goal(self._state, slot, helped),
        )
        asked = msgspec.structs.replace(self._asked, need=need)
        cluster, reserved, field = self._state.placement, self._reserved, self._field
        queue = queue_of(cluster, pods, field.others)
        simulation = Simulation(
            cluster,
            pods,
            queue,
            leaving=[key for key in reserved.victims if cluster.where(key) is not None],
            first=[cluster.pending[key] for key in reserved.pods if key in cluster.pending],
            kinds=self._kinds,
        )
        ending = refusals.releasing(self._state, simulation, list(field.useful)[:MOST_ENDING], asked.now)
        return ending or Binding(self._state, asked, field, simulation, queue).answer()


def _rows(state: State, need: Need, now: datetime) -> tuple[list[PodRow], Answer | None]:
    unknown = state.gate("Pod", "Node") or state.belonging_gate()
    if unknown is not None:
        return [], no_plan(NoPlanReason.UNKNOWN, f"who waits is {unknown}")
    rows = [
        row
        for key in need.pods
        if (row := state.rows.get(key)) is not None and row.waiting and key in state.placement.pending
    ]
    if not rows:
        name = slot_name((need.workload, need.component))
        return [], no_plan(NoPlanReason.NOBODY_WAITS, f"no pod of {name} waits any more")
    refused = not_helped(rows)
    pool = state.pool_of.get((need.workload, need.component), need.product)
    refused = refused or refusals.pool_turned_bad(state, pool, now) or refusals.autoscaler_adds(state, pool)
    return rows, refused
