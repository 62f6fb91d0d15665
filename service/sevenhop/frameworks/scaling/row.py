"""One row of the table: a framework's own way, with the conflicts that all share."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sevenhop.core.inventory.workloads import Component, Framework, Workload
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Action, Scale, Steer
from sevenhop.core.remediation.reduction import Chooser, Conflict, ConflictReason, Ruler, ScalingSpec, Taker, View
from sevenhop.frameworks.scaling.budgets import no_room
from sevenhop.frameworks.scaling.conflicts import READS, conflict_of
from sevenhop.frameworks.scaling.quota import Quota
from sevenhop.frameworks.scaling.way import Find, called, ref_of


def row(
    framework: Framework, docs: str, patches: tuple[tuple[str, str], ...], find: Find, reads: tuple[str, ...] = ()
) -> ScalingSpec:
    """
    Args:
        patches: As in `ScalingSpec`; the kinds of `Way.marked` are among them.
        reads: Beside `READS`; until all of them are seen, nothing of this framework is reduced.
    """
    kinds = tuple(dict.fromkeys((*reads, *READS)))

    def rule(view: View, workload: Workload, component: Component, pods: Sequence[Pod]) -> Ruler | Conflict:
        unknown = view.gate(*kinds)
        if unknown is not None:
            return Conflict(ConflictReason.UNKNOWN, f"what else rules {component.name} is {unknown}")
        way = find(view, workload, component, pods)
        if isinstance(way, Conflict):
            return way
        found = conflict_of(view, workload, component, way, pods)
        if isinstance(found, Conflict):
            return found
        return msgspec.structs.replace(way.ruler, notes=(*way.ruler.notes, *found))

    def actions(
        view: View, workload: Workload, component: Component, ruler: Ruler, after: int, victims: Sequence[Pod]
    ) -> tuple[Action, ...] | Conflict:
        way = find(view, workload, component, victims)
        if isinstance(way, Conflict):
            return way
        live = way.ruler
        if (live.target, live.replicas) != (ruler.target, ruler.replicas):
            return Conflict(
                ConflictReason.ROLLOUT,
                f"{called(live.target)} has {live.replicas} replicas of {component.name} now, not {ruler.replicas}",
            )
        if after < ruler.floor:
            return Conflict(ConflictReason.FLOOR, f"{called(ruler.target)} keeps at least {ruler.floor}")
        crowded = no_room(view, victims, len(victims))
        if crowded is not None:
            return crowded
        change = way.change(after, victims)
        if isinstance(change, Conflict):
            return change
        if not change.edits:
            return Conflict(ConflictReason.NO_TARGET, f"{called(live.target)} asks for {after} already")
        scale = Scale(
            target=live.target,
            subresource=way.subresource,
            version=way.version,
            edits=change.edits,
            tests=change.tests,
            also=change.also,
            marked=way.marked,
            workload=workload.key,
            component=component.name,
            before=ruler.replicas,
            after=after,
            unit_pods=ruler.unit_pods,
            unit_gpus=component.gpus_per_replica,
        )
        if ruler.chooser is Chooser.REPLICA_SET and victims and after < ruler.replicas:
            return (Steer(pods=tuple(ref_of("Pod", pod) for pod in victims)), scale)
        return (scale,)

    return ScalingSpec(
        framework=framework,
        docs=docs,
        patches=patches,
        reads=kinds,
        rule=rule,
        actions=actions,
        taker=_taker,
    )


def _taker(view: View) -> Taker:
    return Quota(view).taker
