"""A small cluster to plan in, and a table of scaling that takes its word from annotations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.state import State
from sevenhop.core.inventory.workloads import Component, Framework, Workload
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.cluster import Controller
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Action, Edit, ObjectRef, Scale, Steer
from sevenhop.core.remediation.plan import Answer, Need, NoPlanReason, Plan
from sevenhop.core.remediation.planning import Reservations, need_of, plan_for
from sevenhop.core.remediation.playbook import Goal, Mode, Playbook
from sevenhop.core.remediation.reduction import Chooser, Conflict, ConflictReason, Ruler, ScalingSpec, View
from tests import builders as b
from tests.unit.inventory.scenes import SHORT, Scene

CHOOSER, FLOOR, CONFLICT, UNSTEERED = "test/chooser", "test/floor", "test/conflict", "test/unsteered"
TIER = "sevenhop.dev/tier"


def _rule(view: View, workload: Workload, part: Component, pods: Sequence[Pod]) -> Ruler | Conflict:
    """`part` and `pods` are not looked at: the Deployment says everything."""
    found = view.get("Deployment.apps", workload.namespace, workload.name)
    assert isinstance(found, Controller), f"{part.name} of {len(pods)} pods has no Deployment"
    notes = found.metadata.annotations
    if CONFLICT in notes:
        return Conflict(ConflictReason(notes[CONFLICT]), f"{notes[CONFLICT]} stands against it")
    return Ruler(
        target=ObjectRef("Deployment.apps", workload.namespace, workload.name, found.metadata.uid),
        replicas=found.spec.replicas or 0,
        floor=int(notes.get(FLOOR, "0")),
        chooser=Chooser(notes.get(CHOOSER, "replica-set")),
        notes=("the next deployment sets it back",),
    )


def _actions(
    view: View, workload: Workload, part: Component, ruler: Ruler, after: int, victims: Sequence[Pod]
) -> tuple[Action, ...] | Conflict:
    found = view.get("Deployment.apps", workload.namespace, workload.name)
    scale = Scale(
        target=ruler.target,
        edits=(Edit("/spec/replicas", ruler.replicas, after),),
        marked=ruler.target,
        workload=workload.key,
        component=part.name,
        before=ruler.replicas,
        after=after,
        unit_gpus=part.gpus_per_replica,
    )
    if ruler.chooser is not Chooser.REPLICA_SET or (found is not None and UNSTEERED in found.metadata.annotations):
        return (scale,)
    return (Steer(pods=tuple(ObjectRef("Pod", *pod.key, pod.metadata.uid) for pod in victims)), scale)


SCALING = {
    Framework.PLAIN: ScalingSpec(
        framework=Framework.PLAIN,
        docs="Patches the Deployment that the test made.",
        patches=(("Deployment.apps", ""),),
        rule=_rule,
        actions=_actions,
    )
}


def playbook(most_replicas: int = 2, most_gpus: int = 16, mode: Mode = Mode.APPROVE) -> Playbook:
    return Playbook(
        id="free-gpu-capacity",
        steps=("scale",),
        mode=mode,
        goal=Goal.BENEFICIARY_READY,
        most_replicas=most_replicas,
        most_gpus=most_gpus,
    )


class World:
    """
    Objects are collected, then told all at once.

    Nodes of eight GPUs unless said otherwise; every workload is a Deployment with its own ReplicaSet.
    """

    def __init__(self, *, policy: Policy | None = None) -> None:
        self.objects: list[Object] = []
        self.policy = policy
        self.scene: Scene | None = None

    def nodes(self, **gpus: int) -> None:
        self.objects += [b.node(name.replace("_", "-"), gpus=count) for name, count in gpus.items()]

    def donor(
        self,
        name: str,
        on: Sequence[str],
        *,
        gpus: int = 2,
        tier: str = "batch",
        chooser: str = "replica-set",
        unready: Sequence[int] = (),
        annotations: dict[str, str] | None = None,
        replicas: int | None = None,
        priority: int | None = None,
        waiting: int = 0,
        costs: dict[int, str] | None = None,
    ) -> Controller:
        """One pod on each of these nodes in turn; `unready` by place; `waiting` more that have no node."""
        notes = {CHOOSER: chooser, **({TIER: tier} if tier else {}), **(annotations or {})}
        count = len(on) + waiting if replicas is None else replicas
        owner = b.deployment(name, replicas=count, gpus=gpus, annotations=notes)
        replicaset = b.replicaset(owner)
        self.objects += [owner, replicaset]
        for place, node in enumerate((*on, *("",) * waiting)):
            made = b.pod_of(
                replicaset,
                str(place),
                node=node,
                ready=None if place not in unready else False,
                priority=priority,
                unschedulable=None if node else SHORT,
            )
            if costs and place in costs:
                made.metadata.annotations["controller.kubernetes.io/pod-deletion-cost"] = costs[place]
            self.objects.append(made)
        return owner

    def waits(
        self,
        name: str,
        *,
        gpus: int = 2,
        pods: int = 1,
        tier: str = "critical",
        since: float = 60,
        priority: int | None = None,
        running: Sequence[str] = (),
        selector: dict[str, str] | None = None,
        words: str = SHORT,
    ) -> tuple[tuple[str, str], str]:
        """A workload whose pods wait; returns its slot."""
        notes = {TIER: tier} if tier else {}
        owner = b.deployment(name, replicas=pods + len(running), gpus=gpus, annotations=notes, selector=selector)
        replicaset = b.replicaset(owner)
        self.objects += [owner, replicaset]
        made = b.at(since)
        for place, node in enumerate((*running, *("",) * pods)):
            self.objects.append(
                b.pod_of(
                    replicaset,
                    str(place),
                    node=node,
                    unschedulable=None if node else words,
                    created=made,
                    since=made,
                    priority=priority,
                )
            )
        return (("prod", name), "engine")

    @property
    def live(self) -> Scene:
        """Told everything so far, ten minutes after noon."""
        if self.scene is None:
            self.scene = Scene(*self.objects, policy=self.policy)
            self.scene.wait(600)
        return self.scene

    @property
    def state(self) -> State:
        return self.live.inventory.state

    def need(self, where: tuple[tuple[str, str], str] | str) -> Need | Answer:
        return need_of(self.state, where, b.at(600))

    def answer(
        self,
        where: tuple[tuple[str, str], str] | str,
        *,
        using: Playbook | None = None,
        reserved: Reservations | None = None,
        seconds: float = 600,
        standing: Plan | None = None,
    ) -> Answer:
        need = self.need(where)
        if isinstance(need, Answer):
            return need
        return plan_for(
            self.state,
            need,
            playbook=using or playbook(),
            incident="incident-1",
            scaling=SCALING,
            reserved=reserved or Reservations(),
            now=b.at(seconds),
            standing=standing,
        )

    def plan(self, where: tuple[tuple[str, str], str] | str, **more: object) -> Plan:
        answer = self.answer(where, **more)  # type: ignore[arg-type]
        assert answer.plan is not None, f"no plan: {answer.reason}: {answer.text}"
        return answer.plan

    def refused(self, where: tuple[tuple[str, str], str] | str, **more: object) -> NoPlanReason:
        answer = self.answer(where, **more)  # type: ignore[arg-type]
        assert answer.plan is None, f"a plan: {answer.plan.title if answer.plan else ''}"
        assert answer.reason is not None
        assert answer.text, "a refusal says why"
        return answer.reason


def names(plan: Plan) -> list[str]:
    return sorted(name for _, name in plan.victims)


HOUR = timedelta(hours=1)
