"""
A small cluster in which plans are made, decided, carried out and given back, in virtual time.

Two nodes of four H100s: two decode workers of `llama-70b` (critical) and two pods of `summarizer` (batch) hold all of
them, and a third decode worker waits.  Engine, planner, guards and table of scaling are the real ones; the cluster and
who acts on it are played here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.effects import Act, Notify, Reply, Row
from sevenhop.core.engine import Engine, Step
from sevenhop.core.events import BreakerReset, Decided, Event, StepDone, StepResult, SwitchSet, Verb
from sevenhop.core.facts.table import FACTS
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects import pod as p
from sevenhop.core.objects.base import Object
from sevenhop.core.remediation.audit import AuditRecord, verify
from sevenhop.core.remediation.borrowed import BORROWED, encode_borrow
from sevenhop.core.remediation.case import Case
from sevenhop.core.remediation.permit import Permit, Purpose, Refusal
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.playbook import Goal, Mode, Playbook
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.core.remediation.states import PlanState
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.frameworks.scaling import SCALING
from sevenhop.rulebook.load import load_rulebook
from tests.builders import Feed, at, deployment, dynamo, dynamo_pod, node, pod_of, replicaset
from tests.shared import ROOT

SHORT = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
FIRES_AT = 130.0
"""The decode worker waits from second 10 on, and the rule holds for two minutes."""


@cache
def shortage_rules() -> tuple[Rule, ...]:
    rules = load_rulebook([ROOT / "rules" / "scheduling", ROOT / "rules" / "pod"], FACTS).rules
    return tuple(rule for rule in rules)


FREE = Playbook(
    id="free-gpu-capacity",
    steps=("steer", "scale"),
    mode=Mode.APPROVE,
    approvers=("slack:U-ann", "slack:U-bob", "slack-group:S-oncall"),
    goal=Goal.BENEFICIARY_READY,
    cooldown=timedelta(minutes=30),
)


def settings_of(*playbooks: Playbook, **more: Any) -> RemediationSettings:
    return RemediationSettings(playbooks={each.id: each for each in playbooks or (FREE,)}, **more)


def person(name: str = "ann", seconds: float = 0, **more: Any) -> Person:
    return Person(id=f"slack:U-{name}", name=name, verified_at=at(seconds), **more)


class Scene:
    """
    Attributes:
        acts: Every step that was asked for, by effect id, in order; the outbox knows an id only once.
        asked_again: Ids that were asked for more than once.
        applied: Ids of patches that changed the cluster.
    """

    def __init__(self, settings: RemediationSettings | None = None, *, group_wait: float = 0) -> None:
        self.settings = settings or settings_of()
        self.group_wait = timedelta(seconds=group_wait)
        self.engine = self._engine()
        self.feed = Feed()
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.store: dict[tuple[str, str], bytes] = {}
        self.records: list[AuditRecord] = []
        self.acts: dict[str, Act] = {}
        self.undelivered: list[Act] = []
        self.asked_again: list[str] = []
        self.applied: list[str] = []
        self.sent: list[Notify] = []
        self.replies: list[Reply] = []
        self.steps: list[Step] = []
        self.seconds = 0.0
        self._requests = 0
        self.llama = dynamo("llama-70b", decode=3, annotations={"sevenhop.dev/tier": "critical"})
        self.donor = deployment("summarizer", replicas=2, gpus=2, annotations={"sevenhop.dev/tier": "batch"})
        self.replicas = replicaset(self.donor)
        self.waiting: p.Pod = dynamo_pod(self.llama, "decode", "2", unschedulable=SHORT, since=at(10))

    # The cluster

    def begin(self) -> Scene:
        """Everything is listed, one worker waits, the alert fires, and a plan is proposed."""
        self.tell(self.feed.synced(), 0)
        placed = [dynamo_pod(self.llama, "decode", str(n), node=f"gpu-{n}") for n in (0, 1)]
        others = [pod_of(self.replicas, str(n), node=f"gpu-{n}") for n in (0, 1)]
        nodes = [node("gpu-0", gpus=4), node("gpu-1", gpus=4)]
        self.put(*nodes, self.llama, self.donor, self.replicas, *placed, *others, seconds=1)
        self.put(self.waiting, seconds=10)
        self.until(FIRES_AT)
        return self

    def put(self, *objects: Object, seconds: float | None = None) -> Step:
        self.seconds = self.seconds if seconds is None else seconds
        for obj in objects:
            self.objects[(type(obj).__name__, *obj.metadata.key)] = obj
        return self.tell(self.feed.applied(*objects, seconds=self.seconds), self.seconds)

    def delete(self, *objects: Object, seconds: float | None = None) -> Step:
        self.seconds = self.seconds if seconds is None else seconds
        for obj in objects:
            self.objects.pop((type(obj).__name__, *obj.metadata.key), None)
        return self.tell(self.feed.deleted(*objects, seconds=self.seconds), self.seconds)

    def scale(self, replicas: int, mark: str | None = None) -> None:
        """The donor asks for so many replicas from now on, with our mark or, with an empty one, without it."""
        notes = dict(self.donor.metadata.annotations)
        if mark is not None:
            notes[BORROWED] = mark
            if not mark:
                del notes[BORROWED]
        self.donor = deployment("summarizer", replicas=replicas, gpus=2, annotations=notes)
        self.replicas = replicaset(self.donor)
        self.put(self.donor, self.replicas)

    def pods(self, workload: str) -> list[p.Pod]:
        found = [obj for obj in self.objects.values() if isinstance(obj, p.Pod)]
        return [pod for pod in found if pod.metadata.name.startswith(workload)]

    def place(self, on: str, **state: Any) -> None:
        """The waiting decode worker gets its node; `state` as in `builders.pod`."""
        self.waiting = dynamo_pod(self.llama, "decode", "2", node=on, **state)
        self.put(self.waiting)

    def becomes_ready(self, on: str = "gpu-0") -> None:
        self.place(on)

    # People

    def decides(self, verb: Verb, name: str = "ann", *, plan: str = "", hash_: str | None = None, **more: Any) -> Reply:
        """Someone decides about the current plan; returns what they are told."""
        case = self.case(plan)
        self._requests += 1
        event = Decided(
            at=at(self.seconds),
            request_id=more.pop("request_id", f"r{self._requests}"),
            person=more.pop("person", person(name, self.seconds)),
            verb=verb,
            plan_id=plan or case.id,
            plan_hash=case.plan.hash if hash_ is None else hash_,
            via="slack",
            **more,
        )
        return self.asks(event)

    def asks(self, event: Decided | SwitchSet | BreakerReset) -> Reply:
        self.tell([event], self.seconds)
        found = [reply for reply in self.steps[-1].replies if reply.request_id == event.request_id]
        assert len(found) == 1, found
        return found[0]

    def switches(self, *, on: bool, name: str = "ann") -> Reply:
        self._requests += 1
        who = person(name, self.seconds)
        return self.asks(SwitchSet(at=at(self.seconds), request_id=f"s{self._requests}", person=who, is_on=on))

    # Whoever acts

    def next_act(self) -> Act:
        """The oldest step that nobody has done yet."""
        return self.undelivered.pop(0)

    def does(self, purpose: Purpose) -> StepDone:
        """The next step is done as it would be in a cluster, if the guards let it pass."""
        act = self.next_act()
        assert act.purpose is purpose, (act.purpose, purpose)
        permit = self.engine.permit(act, at(self.seconds))
        if isinstance(permit, Refusal):
            return self.answers(act, StepResult.REFUSED, f"{permit.guard}: {permit.text}")
        assert isinstance(permit, Permit)
        assert permit.covers(act.id, act.plan.hash, act.purpose, at(self.seconds))
        if purpose is Purpose.APPLY:
            self._apply(act)
        elif purpose.gives_back:
            self._give_back(act)
        elif purpose is Purpose.EXTEND:
            assert act.borrow is not None
            self.scale(self.donor.spec.replicas or 0, encode_borrow(act.borrow))
        return self.answers(act, StepResult.DONE, "done")

    def answers(self, act: Act, result: StepResult, detail: str = "") -> StepDone:
        done = StepDone(at=at(self.seconds), effect_id=act.id, result=result, detail=detail)
        self.tell([done], self.seconds)
        return done

    def _apply(self, act: Act) -> None:
        assert act.id not in self.applied
        self.applied.append(act.id)
        (scale,) = act.plan.scales
        assert self.donor.spec.replicas == scale.before
        victims = [pod for pod in self.pods("summarizer") if pod.metadata.key in act.plan.victims]
        self.scale(scale.after, encode_borrow(act.borrow) if act.borrow is not None else None)
        self.delete(*victims)

    def _give_back(self, act: Act) -> None:
        (scale,) = act.plan.scales
        if self.donor.spec.replicas == scale.after:
            self.scale(scale.before, "")
            self.put(pod_of(self.replicas, "9", unschedulable=SHORT, since=at(self.seconds)))
        else:
            self.scale(self.donor.spec.replicas or 0, "")

    # Time and restarts

    def tell(self, events: Sequence[Event], seconds: float | None = None) -> Step:
        self.seconds = self.seconds if seconds is None else seconds
        return self._take(self.engine.handle(events, at(self.seconds)))

    def until(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, calling the engine when it wants to be called."""
        calls = 0
        while (wake := self.steps[-1].next_wake) is not None and wake <= at(seconds) and not stop():
            calls += 1
            assert calls < 50_000, "it never sleeps"
            self.tell((), max(self.seconds, (wake - at(0)).total_seconds()))
        if not stop():
            self.tell((), max(seconds, self.seconds))

    def passes(self, seconds: float) -> None:
        self.until(self.seconds + seconds)

    def restart(self, *, keep: bool = True) -> None:
        """Another process takes over; without `keep`, from an empty store.  The cluster is listed again."""
        rows = [Row(table, key, value) for (table, key), value in sorted(self.store.items())] if keep else []
        if not keep:
            self.store.clear()
        self.engine = self._engine()
        last = self.records[-1] if self.records else None
        self._take(self.engine.load(rows, at(self.seconds), last))
        assert self.engine.problems == []
        self.feed = Feed(self.feed.epoch + 1)
        self.put(*list(self.objects.values()))
        self.tell(self.feed.synced(seconds=self.seconds), self.seconds)
        self.passes(1)

    # What is known

    @property
    def cases(self) -> list[Case]:
        return list(self.engine.remediation.cases)

    def case(self, plan: str = "") -> Case:
        """The plan of that id, else the newest."""
        if plan:
            found = self.engine.remediation.cases.get(plan)
            return found if found is not None else self.cases[-1]
        return self.cases[-1]

    def states(self) -> list[PlanState]:
        return [case.state for case in self.cases]

    def purposes(self) -> list[Purpose]:
        return [act.purpose for act in self.acts.values()]

    def audited(self) -> list[str]:
        return [f"{record.what}: {record.text}" for record in self.records]

    def _engine(self) -> Engine:
        desk = DeskSettings(receivers=("console",), group_wait=self.group_wait)
        return Engine("test", FRAMEWORKS, shortage_rules(), Policy(), desk, self.settings, SCALING)

    def _take(self, step: Step) -> Step:
        self.steps.append(step)
        self.replies += step.replies
        self.records += step.records
        assert verify(self.records) == []
        for effect in step.effects:
            if isinstance(effect, Notify):
                self.sent.append(effect)
            elif isinstance(effect, Act):
                if effect.id in self.acts:
                    self.asked_again.append(effect.id)
                else:
                    self.acts[effect.id] = effect
                    self.undelivered.append(effect)
        for row in step.saves:
            if row.value is None:
                self.store.pop((row.table, row.key), None)
            else:
                self.store[(row.table, row.key)] = row.value
        return step


def approved(scene: Scene) -> Scene:
    """A plan that was approved, tried and carried out, and whose goal is awaited."""
    scene.begin()
    assert scene.decides(Verb.APPROVE).accepted
    scene.does(Purpose.DRY_RUN)
    scene.does(Purpose.APPLY)
    assert scene.case().state is PlanState.RUNNING
    return scene


def lent(scene: Scene) -> Scene:
    """A plan that reached its goal, and whose donor waits to get its replica back."""
    approved(scene)
    scene.becomes_ready()
    scene.passes(3)
    assert scene.case().state is PlanState.SUCCEEDED
    return scene
