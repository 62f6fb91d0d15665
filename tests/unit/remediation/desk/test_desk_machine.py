"""Whatever people, the cluster, the executor and crashes do, in any order: what must never happen does not."""

from __future__ import annotations

import contextlib
from datetime import timedelta

from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from sevenhop.core.effects import Act, Row
from sevenhop.core.events import BreakerReset, Decided, StepDone, StepResult, Verb
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.borrowed import BORROWED, encode_borrow
from sevenhop.core.remediation.case import Case
from sevenhop.core.remediation.guards_people import humans
from sevenhop.core.remediation.keeping import PLANS, case_row, read_row
from sevenhop.core.remediation.permit import Purpose, Refusal
from sevenhop.core.remediation.states import NEXT, PlanState
from tests.builders import at, dynamo_pod, pod_of
from tests.unit.remediation.desk.desk_scene import FREE, SHORT, Scene, person, settings_of

PEOPLE = st.sampled_from(["ann", "bob", "guest"])


class Desk(RuleBasedStateMachine):
    """
    The scene, driven at random.

    `claims` are the answers of the executor, who is honest: what it says was done was done.
    """

    @initialize(approvals=st.sampled_from([1, 1, 2]), stage=st.sampled_from(["proposed", "running", "running", "lent"]))
    def begin(self, approvals: int, stage: str) -> None:
        playbook = replace(
            FREE, approvals=approvals, cooldown=timedelta(minutes=2), lease=timedelta(minutes=40), most_runs_per_day=99
        )
        self.approvals = approvals
        self.scene = Scene(settings_of(playbook)).begin()
        if stage != "proposed":
            self.scene.decides(Verb.APPROVE, "ann", request_id="first")
            if approvals == 2:
                self.scene.decides(Verb.APPROVE, "bob", request_id="second")
            self.scene.does(Purpose.DRY_RUN)
            self.scene.does(Purpose.APPLY)
        if stage == "lent":
            self.scene.becomes_ready()
            self.scene.passes(3)
        self.states: dict[str, PlanState] = {}
        self.decisions: list[Decided] = []
        self.answers: list[StepDone] = []
        self.count = 0
        self.others = False

    # People

    @rule(verb=st.sampled_from(list(Verb)), name=PEOPLE, old=st.booleans())
    def decide(self, verb: Verb, name: str, old: bool) -> None:
        case = self.scene.cases[0] if old else self._current()
        self.count += 1
        event = Decided(
            at=at(self.scene.seconds),
            request_id=f"m{self.count}",
            person=person(name, self.scene.seconds),
            verb=verb,
            plan_id=case.id,
            plan_hash=case.plan.hash,
            via="slack",
        )
        self.decisions.append(event)
        reply = self.scene.asks(event)
        assert not (reply.accepted and name == "guest")

    @precondition(lambda self: self.decisions)
    @rule(index=st.integers(0, 50))
    def decide_again(self, index: int) -> None:
        event = self.decisions[index % len(self.decisions)]
        before = list(self.scene.acts)
        first = next(reply for reply in self.scene.replies if reply.request_id == event.request_id)
        again = self.scene.asks(event)
        assert again.accepted == first.accepted
        assert list(self.scene.acts) == before

    @rule(on=st.booleans())
    def switch(self, on: bool) -> None:
        self.scene.switches(on=on)

    @rule()
    def look_at_breaker(self) -> None:
        self.count += 1
        who = person("ann", self.scene.seconds)
        self.scene.asks(BreakerReset(at=at(self.scene.seconds), request_id=f"b{self.count}", person=who))

    # Whoever acts

    @precondition(lambda self: self.scene.undelivered)
    @rule(fails=st.sampled_from(["", "", "", "refused", "lost before", "lost after"]))
    def act(self, fails: str) -> None:
        act = self.scene.next_act()
        permit = self.scene.engine.permit(act, at(self.scene.seconds))
        if isinstance(permit, Refusal):
            self._answer(act, StepResult.REFUSED, permit.text)
        elif fails == "refused" and act.purpose is not Purpose.READ_BACK:
            self._answer(act, StepResult.REFUSED, "denied")
        elif fails == "lost before":
            self._answer(act, StepResult.UNKNOWN, "timed out")
        else:
            result = self._do(act)
            self._answer(act, StepResult.UNKNOWN if fails == "lost after" else result, fails)

    @precondition(lambda self: self.answers)
    @rule(index=st.integers(0, 50))
    def answer_again(self, index: int) -> None:
        before = list(self.scene.acts)
        self.scene.tell([self.answers[index % len(self.answers)]], self.scene.seconds)
        assert list(self.scene.acts) == before

    # The cluster, time, crashes

    @rule(how=st.sampled_from(["ready", "loading", "gone"]))
    def beneficiary(self, how: str) -> None:
        has_room = len(self.scene.pods("summarizer")) < 2
        if how == "gone":
            self.scene.waiting = replace_waiting(self.scene)
            self.scene.put(self.scene.waiting)
        elif has_room:
            self.scene.place("gpu-0", ready=how == "ready")

    @rule(replicas=st.integers(0, 3))
    def owner_scales(self, replicas: int) -> None:
        self.others = True
        self.scene.scale(replicas)

    @rule(seconds=st.sampled_from([1.0, 5.0, 40.0, 300.0, 1000.0, 3000.0]))
    def time_passes(self, seconds: float) -> None:
        self.scene.passes(seconds)

    @rule()
    def crash(self) -> None:
        before = {case.id: case.state for case in self.scene.cases}
        self.scene.restart()
        assert {case.id for case in self.scene.cases} >= set(before)

    # What must hold

    @invariant()
    def one_patch_per_plan(self) -> None:
        applies = [act.plan.id for act in self.scene.acts.values() if act.purpose is Purpose.APPLY]
        assert len(applies) == len(set(applies))
        assert len(self.scene.applied) == len({effect_id.partition("/")[0] for effect_id in self.scene.applied})

    @invariant()
    def nothing_is_changed_without_enough_people(self) -> None:
        for act in self.scene.acts.values():
            case = self.scene.engine.remediation.cases.get(act.plan.id)
            assert case is not None
            assert humans(a.person for a in case.approvals) >= self.approvals
            assert all(a.person.name != "guest" and a.plan_hash == case.plan.hash for a in case.approvals)

    @invariant()
    def states_follow_the_table(self) -> None:
        for case in self.scene.cases:
            was = self.states.get(case.id)
            assert was is None or case.state is was or _reachable(was, case.state), (was, case.state)
            self.states[case.id] = case.state

    @invariant()
    def whatever_is_open_waits_for_something_with_a_time(self) -> None:
        for case in self.scene.cases:
            if not case.is_over:
                assert self.scene.engine.remediation.next_wake is not None, case.stage
            else:
                assert case.asked is None

    @invariant()
    def every_case_survives_its_row(self) -> None:
        for case in self.scene.cases:
            assert read_row(case_row(case.id, case)) == case
            stored = read_row(Row(PLANS, case.id, self.scene.store[(PLANS, case.id)]))
            assert isinstance(stored, Case)
            looked = case.watch if case.watch is None or stored.watch is None else stored.watch
            assert replace(stored, watch=looked) == replace(case, watch=looked)

    def teardown(self) -> None:
        """With the switch on and the breaker as it is, everything that was lent comes back when it is due."""
        if not hasattr(self, "scene"):
            return
        self.scene.switches(on=True)
        for _ in range(60):
            while self.scene.undelivered:
                self.act("")
            self.scene.passes(300)
            if all(case.is_over for case in self.scene.cases) and not self.scene.undelivered:
                break
        for state in sorted({case.state for case in self.scene.cases}):
            event(f"some plan ended {state}")
        waits = [(case.id, case.state, case.stage) for case in self.scene.cases if not case.is_over]
        assert waits == []
        assert BORROWED not in self.scene.donor.metadata.annotations
        if not self.others:
            assert self.scene.donor.spec.replicas == 2

    def _current(self) -> Case:
        return self.scene.cases[-1]

    def _answer(self, act: Act, result: StepResult, detail: str) -> None:
        self.answers.append(self.scene.answers(act, result, detail))

    def _do(self, act: Act) -> StepResult:
        scene = self.scene
        (scale,) = act.plan.scales
        mark = scene.donor.metadata.annotations.get(BORROWED, "")
        ours = f'"{act.plan.id}"' in mark
        if act.purpose is Purpose.APPLY:
            if scene.donor.spec.replicas != scale.before or mark:
                return StepResult.REFUSED
            assert act.borrow is not None
            scene.applied.append(act.id)
            scene.scale(scale.after, encode_borrow(act.borrow))
            scene.delete(*[pod for pod in scene.pods("summarizer") if pod.metadata.key in act.plan.victims])
        elif act.purpose is Purpose.READ_BACK:
            return StepResult.DONE if ours else StepResult.REFUSED
        elif act.purpose.gives_back and ours:
            if scene.donor.spec.replicas == scale.after:
                scene.scale(scale.before, "")
                with contextlib.suppress(AssertionError):
                    scene.put(pod_of(scene.replicas, "9", unschedulable=SHORT, since=at(scene.seconds)))
            else:
                scene.scale(scene.donor.spec.replicas or 0, "")
        return StepResult.DONE


def replace_waiting(scene: Scene) -> Pod:
    return dynamo_pod(scene.llama, "decode", "2", unschedulable=SHORT, since=at(scene.seconds))


def _reachable(was: PlanState, now: PlanState) -> bool:
    """Several steps may have passed since the last look."""
    seen, queue = set(), [was]
    while queue:
        state = queue.pop()
        if state not in seen:
            seen.add(state)
            queue += NEXT[state]
    return now in seen


TestDesk = Desk.TestCase
TestDesk.settings = settings(
    max_examples=15, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
