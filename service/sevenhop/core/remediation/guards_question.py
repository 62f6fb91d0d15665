"""
What the guards read: one question, asked anew before each step.

Whoever asks fills in what is true *now*.  What cannot be seen is `Unknown`, with its reason; nothing has a default that
would let a step pass because somebody forgot it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from sevenhop.core.facts.schema import Unknown
from sevenhop.core.remediation.action import Action, EvictPod, ObjectRef, Scale, Steer, Value
from sevenhop.core.remediation.guards_breaker import Breaker
from sevenhop.core.remediation.guards_freeze import Freeze
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.plan import Answer, Plan
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.reduction import Conflict
from sevenhop.core.remediation.states import PlanState


class GuardLimits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        verified_within: The approver's identity and groups were looked up at most so long before the decision.
        approval_good_for: A step of doing begins at most so long after the last approval that it needs.
        seen_within: What the decision rests on is at most so old.
        clock_skew: Times may lie so far in the future, for clocks differ.
        day: Over how long runs are counted for the daily budget.
    """

    verified_within: timedelta = timedelta(seconds=60)
    approval_good_for: timedelta = timedelta(minutes=15)
    seen_within: timedelta = timedelta(minutes=2)
    clock_skew: timedelta = timedelta(seconds=5)
    day: timedelta = timedelta(hours=24)


class Switch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    The kill switch as it stands.

    Attributes:
        by, at, comment: Of who set it last, by Slack or terminal.
        by_settings: The setting `remediation.kill_switch` is on; only a change of the settings takes that back.
        requests: The last that were followed, of the switch and of the breaker: one that comes again is late, and
            must not undo what was said since.
    """

    is_on: bool = False
    by: str = ""
    at: datetime | None = None
    comment: str = ""
    by_settings: bool = False
    requests: tuple[str, ...] = ()


class Approval(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One person's yes to one plan; `at` is when it arrived."""

    person: Person
    plan_id: str
    plan_hash: str
    at: datetime
    via: str = ""


class PastRun(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    A run that was started; the one in question may be among them.

    Attributes:
        touches: `Plan.touches`.
        started_at: First step of it.
        ended_at: When its state last changed; None while it is running.
        lends: What it took is still to be given back.
    """

    plan_id: str
    playbook: str
    incident: str
    touches: tuple[ObjectRef, ...]
    state: PlanState
    started_at: datetime
    ended_at: datetime | None = None
    lends: bool = False


class Target(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One object that the step touches, as it is now.

    Attributes:
        ref: With the uid of the live incarnation.
        sight: None if it is seen now; else why not.
        is_gone: Seen to be gone.
        replicas: What the object asks for now, in its own unit (`Ruler.replicas`); None for what has none.
        values: Live values of places that the action names (`Edit.pointer`, `Test.pointer`), as far as they can be
            seen in the inventory; each that is given must be as agreed.
        floor: Fewest replicas: the object's own, and the policy's minimum; None for what has none.
        conflict: What rules the object now and stands against it (`frameworks.scaling`).
        opted_out: Where its owner says no, in words; empty if nowhere.
    """

    ref: ObjectRef
    sight: Unknown | None = None
    is_gone: bool = False
    replicas: int | None = None
    values: tuple[tuple[str, Value], ...] = ()
    floor: int | Unknown | None = None
    conflict: Conflict | None = None
    opted_out: str = ""


class PodBudget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    A PodDisruptionBudget over victims of the plan.

    Attributes:
        name: namespace/name.
        allowed: `status.disruptionsAllowed`.
        victims: Pods of the plan that are still to go and that it selects; the most, where the controller chooses.
    """

    name: str
    allowed: int | Unknown
    victims: int


class Evidence(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One fact that asks for the step.

    Attributes:
        source: Who says it: ``scheduler``, ``kubelet``, ``ledger``, ``gpu-agent``, ``endpoints``, …; two facts are
            independent if these differ.
        seen_at: When it was last seen to be so.
    """

    fact: str
    source: str
    seen_at: datetime


class Question(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    May this step be done now?

    Attributes:
        cluster: Of this process.
        plan, purpose, effect_id: The step; `effect_id` is `effects.Act.id`.
        actions: What the step does: one or more of the plan's actions.
        done: How many of the plan's actions were applied before by this run.
        now: UTC, of the moment of the step.
        state: Of the plan.
        playbook: The plan's, as it is now (mode and approvers may have changed); None if it is no more.
        switch, breaker, freezes: As they stand.
        approvals: Of this plan.
        extensions: Of lending it for longer; an approval of the plan is none.
        history: Runs of all playbooks, at least of the last day and of the longest cooldown.
        targets: One for each object that `actions` touch (`touched`).
        budgets: Budgets over the plan's victims; empty if there are none.
        is_needed: What the plan is for still holds: its pods wait, its incident is open.
        live: What planning says now, for the same incident; read before the first action is applied (`done` is 0).
        evidence: Facts that ask for it.
        blind: Kinds and facts that the decision rests on and that cannot be seen now.
        as_of: Time of the newest event that the state behind this question has heard.
        pool_turned_bad: More than a fifth of the pool, or of the cluster's GPU nodes, went bad within ten minutes.
    """

    cluster: str
    plan: Plan
    purpose: Purpose
    effect_id: str
    actions: tuple[Action, ...]
    done: int
    now: datetime
    state: PlanState
    playbook: Playbook | None
    switch: Switch
    breaker: Breaker
    freezes: tuple[Freeze, ...]
    approvals: tuple[Approval, ...]
    history: tuple[PastRun, ...]
    targets: tuple[Target, ...]
    budgets: tuple[PodBudget, ...] | Unknown
    is_needed: bool | Unknown
    live: Answer | None
    evidence: tuple[Evidence, ...]
    blind: tuple[tuple[str, Unknown], ...]
    as_of: datetime
    pool_turned_bad: bool | Unknown
    limits: GuardLimits = GuardLimits()
    extensions: tuple[Approval, ...] = ()

    def target(self, ref: ObjectRef) -> Target | None:
        """The live object at this place, whatever its incarnation."""
        return next((t for t in self.targets if place(t.ref) == place(ref)), None)


def place(ref: ObjectRef) -> tuple[str, str, str]:
    """What names an object, without its incarnation."""
    return ref.kind, ref.namespace, ref.name


def touched(actions: tuple[Action, ...]) -> tuple[ObjectRef, ...]:
    """Every object that these actions change, in order; for each of them a question needs its `Target`."""
    refs: list[ObjectRef] = []
    for action in actions:
        if isinstance(action, Scale):
            refs += [action.target, *(ref for ref, _, _ in action.also)]
        elif isinstance(action, Steer):
            refs += action.pods
        elif isinstance(action, EvictPod):
            refs.append(action.pod)
        else:
            refs.append(action.node)
    return tuple(dict.fromkeys(refs))
