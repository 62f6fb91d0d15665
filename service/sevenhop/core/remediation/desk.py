"""
The desk of plans: what is offered for an incident, what people decide about it, and what becomes of it.

    incidents ─► planning ─► guards ─► proposed ─► decided ─► dry run ─► patch ─► verified ─► lent ─► restored

Like the desk of incidents: deterministic, time is in the events, the same events again change nothing and ask for
nothing new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec.structs import replace

from sevenhop.core.effects import Act, Line, Reply, Row
from sevenhop.core.events import BreakerReset, Decided, Outcome, StepDone, StepResult, SwitchSet, Verb
from sevenhop.core.incidents.plans import NO_WORDS, PlanWords
from sevenhop.core.incidents.text import plain
from sevenhop.core.incidents.wakes import Wakes
from sevenhop.core.inventory.state import State
from sevenhop.core.remediation import guards
from sevenhop.core.remediation.adopting import Adopting
from sevenhop.core.remediation.advancing import advance, goal_of
from sevenhop.core.remediation.approvals import Decision, decide, name_of, who_of
from sevenhop.core.remediation.audit import AuditRecord, Head, What
from sevenhop.core.remediation.cards import (
    PlanLines,
    asks_after,
    buttons_of,
    lines_of_end,
    words_of_answer,
    words_of_case,
)
from sevenhop.core.remediation.case import Asked, Case, lines_of
from sevenhop.core.remediation.cases import Cases
from sevenhop.core.remediation.guards_breaker import Breaker
from sevenhop.core.remediation.guards_question import Question, Switch
from sevenhop.core.remediation.keeping import read_row
from sevenhop.core.remediation.moment import Moment
from sevenhop.core.remediation.offers import offer, tell_ledger
from sevenhop.core.remediation.permit import GuardName, Permit, Purpose, Refusal
from sevenhop.core.remediation.plan import Answer
from sevenhop.core.remediation.planning.words import plan_lines
from sevenhop.core.remediation.proposals import Incidents, Proposals
from sevenhop.core.remediation.proposing import Planner
from sevenhop.core.remediation.questions import Desktop, question_of
from sevenhop.core.remediation.reduction import ScalingTable
from sevenhop.core.remediation.runs import after_step, next_look
from sevenhop.core.remediation.safety import Safety
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.core.remediation.states import PlanState
from sevenhop.core.remediation.waking import Waking

PROBLEMS_KEPT = 50

TOLD_WITHIN = timedelta(minutes=2)
"""So long after its last change a plan keeps its incident from being forgotten: people are told how it ended."""

_FOREVER = datetime.max.replace(tzinfo=UTC)

_TAKES_BACK = frozenset({Verb.REJECT, Verb.UNDO, Verb.RESTORE})

Heard = Decided | SwitchSet | BreakerReset | StepDone | Outcome


class RemediationDesk:
    """
    The plans of one cluster.

    Mutable, owned by one caller.  `hear`, then `step`; then `dirty`, `replies` and `records` say what came of it.
    """

    def __init__(
        self,
        settings: RemediationSettings,
        cluster: str,
        scaling: ScalingTable,
        *,
        planner: Planner = offer,
        judge: Callable[[Question], Permit | Refusal] = guards.judge,
        refusals: Callable[[Question], tuple[Refusal, ...]] = guards.refusals,
        lines: PlanLines = plan_lines,
    ) -> None:
        self.settings = settings
        self.cluster = cluster
        self.problems: list[str] = []
        self._scaling = scaling
        self._judge = judge
        self._refusals = refusals
        self._lines = lines
        self._cases = Cases()
        self._proposals = Proposals(settings, self._cases, planner, scaling, self.against)
        self._adopting = Adopting(settings, scaling)
        self._safety = Safety(settings, self._cases)
        self._wakes = Wakes()
        self._heard: list[Heard] = []
        self._replies: list[Reply] = []
        self._loaded_asks: set[str] = set()
        self._looked: set[str] = set()
        self._waking = Waking()
        self._began_at: datetime | None = None
        self._state: State | None = None
        self._incidents: Incidents | None = None

    # What it answers

    @property
    def cases(self) -> Cases:
        """Every plan that is known, and what became of it."""
        return self._cases

    @property
    def switch(self) -> Switch:
        return self._safety.switch

    @property
    def breaker(self) -> Breaker:
        return self._safety.breaker

    @property
    def next_wake(self) -> datetime | None:
        """When `step` has something to do even if nothing happens; None if never."""
        if self._heard:
            return self._waking.now
        return self._wakes.next

    def words(self, incident: str) -> PlanWords:
        """What the message of an incident says of plans."""
        case = self._cases.current(incident)
        answer = self._proposals.answer(incident)
        history = tuple(line for each in self._cases.of_incident(incident) for line in lines_of(each))
        if case is not None and (not case.is_over or answer is None or answer.plan is not None):
            now = words_of_case(case, self._lines)
            if case.is_over and self._is_of_now(case):
                now = replace(now, asks=asks_after(case))
            return replace(now, lines=(*now.lines, *self._end_before(case)), history=history[-20:])
        words = words_of_answer(answer) if answer is not None else NO_WORDS
        is_of_now = case is not None and self._is_of_now(case)
        ended = lines_of_end(case) if case is not None and is_of_now else ()
        asks = asks_after(case) if case is not None and is_of_now else ""
        return replace(words, lines=(*ended, *words.lines), history=history[-20:], asks=asks)

    def _end_before(self, case: Case) -> tuple[Line, ...]:
        """How the plan before it ended, while people are asked about this one: they should know what was tried."""
        if case.state is not PlanState.PROPOSED:
            return ()
        before = [each for each in self._cases.of_incident(case.plan.incident) if each.id != case.id and each.is_over]
        return lines_of_end(before[-1]) if before and self._is_of_now(before[-1]) else ()

    def answer(self, incident: str) -> Answer | None:
        """What planning said last of an incident: a plan, or why there is none; None while it was not asked."""
        return self._proposals.answer(incident)

    def holds(self, incident: str) -> bool:
        """Whether something may still come of an incident's plans, or has come just now and is still to be told."""
        return any(not case.is_over or self._is_new(case) for case in self._cases.of_incident(incident))

    def own_change_until(self, namespace: str, workload: str, component: str) -> datetime | None:
        """Until when alerts about a component are explained by what we changed there; None if they are not."""
        return self._cases.held_until((namespace, workload), component, self._state)

    def permit(self, act: Act, now: datetime) -> Permit | Refusal:
        """Leave for one step, asked at the moment of the step, with what is true then."""
        case = self._cases.get(act.plan.id)
        if case is None:
            return Refusal(GuardName.APPROVED, f"plan {act.plan.id} is not known here")
        if (
            case.asked is None
            or case.asked.id != act.id
            or case.plan != act.plan
            or not _is_for(case.asked, act.purpose)
        ):
            return Refusal(GuardName.APPROVED, f"step {act.id} is not what plan {case.id} waits for now")
        state = self._state
        self._proposals.begin_step()
        if state is None:
            return Refusal(GuardName.FRESH, "nothing of the cluster is known yet")
        return self._judge(self._question(case, act.purpose, act.id, state, now))

    # What comes in

    def hear(self, event: Heard) -> None:
        """A decision, or what came of a step; the next `step` acts on it."""
        self._heard.append(event)

    def remember(self, stop: SwitchSet, now: datetime) -> None:
        """A stop that outlived the state in which it was stored; the next `step` tells the rows of it."""
        self._safety.remember(stop, now)

    def step(self, incidents: Incidents, state: State, touched: Iterable[str], now: datetime) -> list[Act]:
        """
        Take in what was heard, what became of incidents, and the passing of time up to `now`.

        Args:
            touched: Keys of incidents that may have changed.

        Returns:
            Steps to be done in the cluster.
        """
        if self._waking.told(now, self._wakes.next, self._cases.open()):
            self._looked |= {case.id for case in self._cases.open()}
        now = self._waking.now or now
        self._state, self._incidents = state, incidents
        self._begin(now)
        self._proposals.begin_step()
        heard, self._heard = self._heard, []
        for event in heard:
            self._take(event, now)
        due = self._wakes.due(_FOREVER if self._waking.is_set_back else now)
        for key in sorted({*touched, *due}):
            case = self._cases.get(key)
            if case is not None:
                self._looked.add(key)
                self._put(advance(case, self._moment(case, now), self._answer_by(case)), now)
            else:
                self._consider(key, now)
        self._adopt(state, now)
        acts = self._cases.take_acts()
        if acts or heard or due:
            tell_ledger(state, self._cases.reserved())
            self._cases.forget_old(self.settings.past_kept, now, self.settings.guard_limits.day)
        self._appoint(now)
        return acts

    def take_touched(self) -> set[str]:
        """Keys of incidents whose message has to be looked at again."""
        touched, self._cases.touched = self._cases.touched, set()
        return touched

    def replies(self) -> tuple[Reply, ...]:
        """What those who asked are told; not kept."""
        replies, self._replies = self._replies, []
        return tuple(replies)

    def records(self) -> tuple[AuditRecord, ...]:
        """New records of the audit, to be stored with the rows."""
        return self._cases.take_records()

    def dirty(self) -> list[Row]:
        """Rows that changed since the last call."""
        return [*self._cases.take_rows(), *self._safety.take_rows()]

    def load(self, rows: Iterable[Row], last: AuditRecord | Head | None = None) -> list[str]:
        """
        Take over what was kept, before the first `step`.

        Args:
            last: The last record of the audit that was stored.

        Returns:
            ``table/key: why`` of rows that could not be read.
        """
        problems = []
        self._cases.follow(last)
        for row in rows:
            try:
                found = read_row(row)
            except (msgspec.MsgspecError, ValueError) as error:
                problems.append(f"{row.table}/{row.key}: {error}")
                continue
            if isinstance(found, Case):
                self._cases.load(found)
                if found.asked is not None:
                    self._loaded_asks.add(found.asked.id)
            elif found is not None:
                self._safety.load(found)
        self.problems += problems
        return problems

    # Decisions and answers

    def _take(self, event: Heard, now: datetime) -> None:
        if isinstance(event, StepDone):
            self._take_step(event, now)
        elif isinstance(event, Decided):
            self._take_decision(event, now)
        elif isinstance(event, SwitchSet):
            self._replies.append(self._safety.turn(event, now))
        elif isinstance(event, BreakerReset):
            self._replies.append(self._safety.reset(event, now))
        elif not event.delivered:
            # The outbox lost it: whether it was done is not known.
            lost = StepDone(at=event.at, effect_id=event.effect_id, result=StepResult.UNKNOWN, detail=event.detail)
            self._take_step(lost, now)

    def _take_step(self, event: StepDone, now: datetime) -> None:
        case = self._cases.get(event.effect_id.partition("/")[0])
        if case is None or case.asked is None or case.asked.id != event.effect_id:
            return
        at = self._moment(case, now)
        purpose = case.asked.purpose
        if event.result is StepResult.REFUSED and purpose in (Purpose.DRY_RUN, Purpose.APPLY, Purpose.EXTEND):
            at = replace(at, against=self._refusals(self._question(case, purpose, event.effect_id, at.state, now)))
        self._put(after_step(case, event, at), now)

    def _take_decision(self, event: Decided, now: datetime) -> None:
        case = self._cases.get(event.plan_id)
        if case is None:
            text = f"there is no plan {plain(event.plan_id, 40)} here; see `sevenhop get plans`"
            who = who_of(event.person, event.via)
            self._cases.note(now, What.REFUSED, f"{event.verb} by {name_of(event.person)} refused: {text}", who)
            self._replies.append(Reply(request_id=event.request_id, accepted=False, text=text, is_over=True))
            return
        # Whoever turns a playbook off because it does harm must still be able to take back what it did.
        find = self.settings.playbooks.get if event.verb in _TAKES_BACK else self.settings.playbook
        playbook = find(case.plan.playbook)
        decision = decide(
            case,
            event,
            playbook,
            lambda with_it, purpose: self._against(with_it, now, purpose),
            now,
            good_for=self.settings.guard_limits.approval_good_for,
        )
        if decision.is_stranger:
            said = f"{event.verb} by {name_of(event.person)} refused: {decision.text}"
            self._cases.note(now, What.REFUSED, said, who_of(event.person, event.via), case.id)
            is_over = not buttons_of(case)
            self._replies.append(
                Reply(request_id=event.request_id, accepted=False, text=decision.text, is_over=is_over)
            )
            return
        after = self._put(decision.case, now)
        text = decision.text
        if decision.is_stale and after.state is PlanState.PROPOSED:
            text = self._instead(after, decision, now)
        elif after.state is PlanState.SUPERSEDED:
            text = self._with_newer(after, text)
        is_over = not buttons_of(self._cases.get(case.id) or after)
        self._replies.append(Reply(request_id=event.request_id, accepted=decision.accepted, text=text, is_over=is_over))

    def _instead(self, case: Case, decision: Decision, now: datetime) -> str:
        """Nothing is done; planning is asked anew, withdraws what does not fit any more, and its new plan is named."""
        self._consider(case.plan.incident, now, anew=True)
        return self._with_newer(case, f"nothing was done: {decision.text}")

    def _with_newer(self, case: Case, text: str) -> str:
        newer = self._cases.current(case.plan.incident)
        if newer is None or newer.id == case.id or newer.state is not PlanState.PROPOSED:
            return text
        return f"{text}. The plan now is {newer.id}: {newer.plan.title}"

    # The passing of time

    def _answer_by(self, case: Case) -> datetime:
        asked = case.asked
        if asked is None:
            return case.since
        by = asked.at + self.settings.answer_within
        if asked.id in self._loaded_asks and self._began_at is not None:
            by = min(by, max(asked.at, self._began_at) + self.settings.answer_after_start)
        return self._waking.answer_by(asked, by, self.settings)

    def _is_new(self, case: Case) -> bool:
        now = self._waking.now
        return now is not None and bool(case.entries) and now < case.entries[-1].at + TOLD_WITHIN

    def _is_of_now(self, case: Case) -> bool:
        """Whether it was made for the incident as it is open now, not for an earlier opening."""
        incident = self._incidents.incidents.get(case.plan.incident) if self._incidents is not None else None
        return incident is not None and case.episode == f"{incident.id}/{incident.opening}"

    def _adopt(self, state: State, now: datetime) -> None:
        cases, problems = self._adopting.look(self._cases.known(), state, now)
        for case in cases:
            self._put(case, now)
        for problem in problems:
            self.problems.append(problem)
            self._cases.note(now, What.LEASE, problem)
        del self.problems[:-PROBLEMS_KEPT]

    def _consider(self, key: str, now: datetime, *, anew: bool = False) -> None:
        if self._state is not None and self._incidents is not None:
            for case in self._proposals.consider(key, self._incidents, self._state, now, anew=anew):
                self._put(case, now)

    # Shared

    def against(self, case: Case, now: datetime) -> tuple[Refusal, ...]:
        """What stands against offering a plan to people, whoever would approve it."""
        passed = (GuardName.APPROVED, GuardName.MODE)
        return tuple(each for each in self._against(case, now) if each.guard not in passed)

    def _against(self, case: Case, now: datetime, purpose: Purpose = Purpose.DRY_RUN) -> tuple[Refusal, ...]:
        if self._state is None:
            return (Refusal(GuardName.FRESH, "nothing of the cluster is known yet"),)
        step = f"{case.id}/{case.steps + 1}-{purpose}"
        return self._refusals(self._question(case, purpose, step, self._state, now))

    def _question(self, case: Case, purpose: Purpose, effect_id: str, state: State, now: datetime) -> Question:
        incident = self._incidents.incidents.get(case.plan.incident) if self._incidents is not None else None
        asks_planning = purpose in (Purpose.DRY_RUN, Purpose.APPLY) and self._incidents is not None
        live = self._proposals.live(case, self._incidents, state, now) if asks_planning and self._incidents else None
        return question_of(
            case,
            purpose,
            effect_id,
            desk=Desktop(
                cluster=self.cluster,
                settings=self.settings,
                scaling=self._scaling,
                switch=self._safety.switch,
                breaker=self._safety.breaker,
                history=self._cases.history(),
                as_of=self._waking.as_of(now, self.settings),
            ),
            state=state,
            playbook=self.settings.playbook(case.plan.playbook),
            live=live,
            is_open=incident is not None and incident.is_open,
            now=now,
        )

    def _moment(self, case: Case, now: datetime) -> Moment:
        if self._state is None:
            raise ValueError("the desk takes nothing in before its first step")
        playbook = self.settings.playbooks.get(case.plan.playbook)
        goal = playbook.goal if playbook is not None else goal_of(case)
        return Moment(now=now, state=self._state, settings=self.settings, playbook=playbook, goal=goal)

    def _put(self, case: Case, now: datetime) -> Case:
        before = self._cases.get(case.id)
        self._cases.put(case)
        self._safety.after(case, before, now)
        self._looked.add(case.id)
        return case

    def _begin(self, now: datetime) -> None:
        """After a start every plan is looked at once, and gets its appointment."""
        if self._began_at is None:
            self._began_at = now
            self._looked |= {case.id for case in self._cases}

    def _appoint(self, now: datetime) -> None:
        for plan_id in self._looked:
            case = self._cases.get(plan_id)
            playbook = self.settings.playbook(case.plan.playbook) if case is not None else None
            at = next_look(case, playbook, self.settings, now) if case is not None else None
            if case is not None and case.asked is not None:
                at = self._answer_by(case)
            self._wakes.put(plan_id, at)
        self._looked.clear()
        for key, at in self._proposals.take_wakes():
            self._wakes.put(key, at)


def _is_for(asked: Asked, purpose: Purpose) -> bool:
    """Whether it is the step itself, or looks at, or takes back, what a crash may have left of a patch."""
    looks = asked.purpose is Purpose.APPLY and purpose in (Purpose.READ_BACK, Purpose.UNDO)
    return purpose is asked.purpose or looks
