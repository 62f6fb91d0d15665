"""From the question to the end of the run: what people try, what the guards say, what the cluster shows afterwards."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sevenhop.core.effects import Reply
from sevenhop.core.events import Decided, Verb
from sevenhop.core.remediation.borrowed import BORROWED
from sevenhop.core.remediation.case import Case
from sevenhop.core.remediation.permit import GuardName
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.planning.words import minutes
from sevenhop.core.remediation.states import PlanState
from sevenhop.demo import cast
from sevenhop.demo.choices import Choice, Choose
from sevenhop.demo.narrator import Narrator
from sevenhop.demo.page import INDENT, Page
from sevenhop.demo.stage import Stage, StageError
from sevenhop.demo.story import Decision
from sevenhop.demo.telling import Teller

_RUN_WITHIN = timedelta(minutes=10)
_GREEN_WITHIN = timedelta(minutes=8)
_GIVEN_BACK_WITHIN = timedelta(minutes=5)
_THINKS = timedelta(seconds=40)
"""Virtual time between two clicks of the reader."""


_MORALS = {
    Choice.APPROVE: "One small change, agreed to by a person who may, proved to help, and given back.",
    Choice.REJECT: "A no is a no: nothing was changed, and nobody is asked for the same again at once.",
    Choice.NEITHER: "Nobody said yes, so nothing was changed: silence is never a yes.",
}


class Deciding:
    """One plan from the question to its end."""

    def __init__(self, decision: Decision, stage: Stage, narrator: Narrator, teller: Teller) -> None:
        self._decision = decision
        self._stage = stage
        self._narrator = narrator
        self._teller = teller
        self._page: Page = teller.page
        self._asked = 0

    async def play(self, choose: Choose) -> str:
        """
        Ask until something final is chosen, and play that to its end; gives what is to be learned from it.

        Raises:
            StageError: It ends otherwise than it should.
        """
        case = self._case()
        if case.state is not PlanState.PROPOSED:
            raise StageError(f"the plan is {case.state} where it should wait for a decision: {case.why}")
        chosen = await self._try_things(choose)
        before = self._replicas()
        if chosen is Choice.APPROVE:
            await self._approve()
        elif chosen is Choice.REJECT:
            await self._reject(before)
        else:
            await self._wait_for_nobody(before)
        return _MORALS[chosen]

    # What people try

    async def _try_things(self, choose: Choose) -> Choice:
        open_now = [Choice.WRONG_PERSON, Choice.STALE, Choice.EXPLAIN, Choice.APPROVE, Choice.REJECT]
        while True:
            chosen = await choose(open_now)
            self._teller.rest()
            if chosen.is_final:
                return chosen
            await self._teller.wait(_THINKS)
            if chosen is Choice.WRONG_PERSON:
                await self._play_the_guest()
            elif chosen is Choice.STALE:
                await self._be_overtaken()
            else:
                self._explain()
            if chosen is not Choice.EXPLAIN:
                open_now.remove(chosen)

    async def _play_the_guest(self) -> None:
        self._say(f"guest, who is not in the group {cast.ONCALL}, clicks Approve.")
        reply = await self._decide(Verb.APPROVE, cast.guest, self._case())
        self._answer("guest", reply)
        self._expect(not reply.accepted, "somebody who may not was not refused")

    async def _be_overtaken(self) -> None:
        step, seen = self._decision.overtaken, self._case()
        self._say(step.says)
        for action in step.actions:
            self._stage.act(action)
        await self._teller.wait(timedelta(seconds=2))
        self._say(f"You click Approve on plan {seen.id}, as you saw it.")
        reply = await self._decide(Verb.APPROVE, cast.you, seen)
        self._answer("you", reply)
        self._expect(not reply.accepted, "a plan of yesterday's cluster was not refused")
        new = self._case()
        if new.id != seen.id and new.state is PlanState.PROPOSED:
            self._say(f"The new plan {new.id}: {'; '.join(self._narrator.plan_lines(new.plan)[:3])}.")

    def _explain(self) -> None:
        plan = self._case().plan
        scale = plan.scales[0]
        agreed = (
            f"What you agree to is the hash {plan.hash[:8]}… over objects, from → to, pods, GPUs, whom it is for, lease"
        )
        patch = f"one patch that tests {scale.before} before it writes {scale.after}"
        texts = [
            f"Why the scheduler did not make room by itself: {plan.not_preempted}.",
            *(f"Why not {each.who}: {each.text}." for each in plan.considered),
            f"{agreed}. Whatever is wider when you click asks again.",
            f"Then: a dry run on the API server; {patch}; a mark on the donor that alone is enough to give back.",
            f"Without progress towards Ready it is undone. The lease is {minutes(plan.lease)}; with room again, less.",
        ]
        for text in texts:
            self._page.line(f"{INDENT}{text}")

    # How it ends

    async def _approve(self) -> None:
        case = self._case()
        self._say(
            f"You, on call and in the group {cast.ONCALL}, click Approve on plan {case.id}. "
            f"{len(GuardName)} guards are asked before each step, on what the cluster shows then."
        )
        reply = await self._decide(Verb.APPROVE, cast.you, case)
        self._answer("you", reply)
        self._expect(reply.accepted, f"the plan was not taken: {reply.text}")
        await self._teller.wait(timedelta(0))
        self._show_patch(case)
        await self._until(case, _RUN_WITHIN, PlanState.SUCCEEDED)
        lease = self._case_of(case).lease_until
        self._page.at(
            self._now,
            f"✔ Goal met: the pod is Ready, not only scheduled. What was lent comes back by {lease:%H:%M:%S}."
            if lease is not None
            else "✔ Goal met.",
            good=True,
        )
        await self._green()
        await self._repair()
        await self._until(case, _GIVEN_BACK_WITHIN, PlanState.RESTORED, fast=True)
        await self._teller.wait(timedelta(minutes=1, seconds=30), fast=True)
        self._expect(not self._marks(case), "the mark on the donor was left behind")
        self._page.at(
            self._now,
            f"✔ Given back before the lease ended: {self._donor(case)} serves with {self._replicas()} again, and its "
            "mark is off.",
            good=True,
        )

    async def _reject(self, before: str) -> None:
        case = self._case()
        self._say(f"You, on call and in the group {cast.ONCALL}, click Reject on plan {case.id}.")
        reply = await self._decide(Verb.REJECT, cast.you, case)
        self._answer("you", reply)
        self._expect(reply.accepted, f"the no was not taken: {reply.text}")
        await self._teller.wait(timedelta(seconds=20))
        for line in self._narrator.plan_words():
            self._say(line)
        await self._untouched(case, before)

    async def _wait_for_nobody(self, before: str) -> None:
        case = self._case()
        self._page.line(
            f"{INDENT}Here you would be asked. This is no terminal, and neither --yes nor --no was given: neither is "
            "taken. This is what comes of silence:"
        )
        reminder = case.plan.proposed_at + timedelta(minutes=6)
        await self._teller.until(reminder, fast=True)
        if self._case_of(case).reminded_at is not None:
            self._say(f"People were reminded once, at {self._case_of(case).reminded_at:%H:%M:%S}.")
        await self._until(case, case.plan.expires_at - self._now + timedelta(minutes=1), PlanState.EXPIRED, fast=True)
        self._say(f"Plan {case.id} has expired: {self._case_of(case).why}.")
        await self._untouched(case, before)

    async def _untouched(self, case: Case, before: str) -> None:
        self._expect(self._replicas() == before, "a plan that nobody approved was carried out")
        self._say(f"Nothing was changed: {self._donor(case)} serves with {before}, as before.")
        await self._repair()
        await self._green()

    async def _repair(self) -> None:
        step = self._decision.repaired
        await self._teller.wait(step.at, fast=True)
        self._say(step.says)
        for action in step.actions:
            self._stage.act(action)

    async def _green(self) -> None:
        await self._teller.wait(_GREEN_WITHIN, fast=True, enough=lambda: self._narrator.is_green)
        self._expect(self._narrator.is_green, "the message did not turn green")

    # What the cluster and the desk show

    @property
    def _now(self) -> datetime:
        return self._stage.clock()

    def _case(self) -> Case:
        case = self._narrator.case()
        if case is None:
            raise StageError("no plan was made")
        return case

    def _case_of(self, case: Case) -> Case:
        return self._stage.engine.remediation.cases.get(case.id) or case

    async def _until(self, case: Case, most: timedelta, state: PlanState, *, fast: bool = False) -> None:
        await self._teller.wait(most, fast=fast, enough=lambda: self._case_of(case).state is state)
        found = self._case_of(case)
        self._expect(found.state is state, f"the plan is {found.state} where it should be {state}: {found.why}")

    async def _decide(self, verb: Verb, who: Callable[[datetime], Person], case: Case) -> Reply:
        self._asked += 1
        return await self._stage.ask(
            Decided(
                at=self._now,
                request_id=f"demo-{self._asked}",
                person=who(self._now),
                verb=verb,
                plan_id=case.id,
                plan_hash=case.plan.hash,
                via="terminal",
            )
        )

    def _answer(self, whom: str, reply: Reply) -> None:
        mark = "✔" if reply.accepted else "✋"
        record = self._narrator.decided
        self._page.at(self._now, f"{mark} Told only to {whom}: “{reply.text}” (audit {record}).", good=reply.accepted)

    def _show_patch(self, case: Case) -> None:
        """As `kubectl` would show it: the annotation on the donor, and the Event beside it."""
        events = [e for e in self._stage.cluster.store.all("Event") if e.get("reason") == "RemediationApplied"]
        self._expect(self._marks(case) and bool(events), "the donor carries no mark, or no Event was written")
        self._page.at(
            self._now,
            f"kubectl shows the Event “{events[-1]['message']}”, and on {case.plan.scales[0].marked} the annotation "
            f"{BORROWED}: enough to give back if Sevenhop lost its state.",
        )

    def _marks(self, case: Case) -> bool:
        ref = case.plan.scales[0].marked
        live = self._stage.cluster.store.get(ref.kind, ref.namespace, ref.name)
        return BORROWED in live["metadata"].get("annotations", {})

    def _donor(self, case: Case) -> str:
        return "/".join(case.plan.scales[0].workload)

    def _replicas(self) -> str:
        scale = self._case().plan.scales[0]
        pods = self._narrator.ready_of(scale.workload, scale.component)
        return f"{pods} replicas"

    def _say(self, text: str) -> None:
        self._page.at(self._now, text)

    def _expect(self, is_so: bool, otherwise: str) -> None:
        if not is_so:
            raise StageError(otherwise)
