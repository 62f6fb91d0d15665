"""
A playbook bound to concrete objects and numbers.

Immutable.  Its hash covers what a person agrees to, not the evidence: an equal commitment is the same plan, anything
wider asks again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.remediation.action import Action, Cordon, EvictPod, ObjectRef, Scale


class NoPlanReason(StrEnum):
    """Why nothing is offered."""

    OFF = "off"  # the playbook, or all of remediation, is off
    NO_PLAYBOOK = "no-playbook"  # the rule names none, or an unknown one
    NOBODY_WAITS = "nobody-waits"
    NOT_A_SHORTAGE = "not-a-shortage"  # freeing GPUs would not help: surge, policy, never fits, …
    AUTOSCALER_ADDING = "autoscaler-adding"
    PREEMPTION_HELPS = "preemption-helps"  # the scheduler helps itself in seconds
    DISAGREE = "disagree"  # our verdict and the scheduler's differ
    UNKNOWN = "unknown"  # a needed fact is unknown or stale
    POOL_TURNED_BAD = "pool-turned-bad"  # much of the pool went at once: suspect the source
    NO_TIERS = "no-tiers"  # nothing says what is worth more
    NO_DONOR = "no-donor"  # nobody ranks lower, or can give
    NOT_ENOUGH = "not-enough"  # all donors together do not make it fit
    NOT_SAFE = "not-safe"  # it would help only for some choices of victims, or others queue ahead
    TOO_MUCH = "too-much"  # more than the playbook's limits allow
    NOT_FIRST = "not-first"  # one plan for the top of a pool's waiting list
    COOLDOWN = "cooldown"


class Considered(msgspec.Struct, frozen=True, gc=False):
    """A candidate that was not chosen, and why, in words."""

    who: str
    reason: str
    text: str


class Need(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Whom it is for: all pods of one component that wait.

    Attributes:
        pods: (namespace, name) when the plan was made.
        gpus: Of all of them together.
        ready_goal: Ready replicas of the component that mean success.
    """

    workload: Key
    component: str
    tier: str
    pods: tuple[Key, ...]
    gpus: int
    product: str
    ready_goal: int


class Plan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        incident: Key of the incident that it answers.
        need: Whom it is for; None for playbooks that mend an object in place.
        actions: In order.
        victims: Pods that go, as steered or as known; with `helps_in` fewer than all, one of the choices.
        nodes: Where the pods that wait then fit.
        gpus: GPUs that become free.
        lease: Zero for what is not given back.
        helps_in: (in how many of how many choices of victims it helps); equal numbers hold for every choice.
        helps_first: (in how many of how many cases it helps) of whom the scheduler tries first: as its queue stands, or
            somebody who waits behind, for who was tried a moment ago is in back-off; equal numbers hold whoever it is.
        considered: What was not chosen.
        not_preempted: Why the scheduler did not make room by itself.
        notes: What a person should know: what is not modelled, who sets it back, requests that drain.
        proposed_at, expires_at: UTC.
    """

    cluster: str
    playbook: str
    incident: str
    need: Need | None = None
    actions: tuple[Action, ...]
    victims: tuple[Key, ...] = ()
    nodes: tuple[str, ...] = ()
    gpus: int = 0
    lease: timedelta = timedelta(0)
    helps_in: tuple[int, int] = (1, 1)
    helps_first: tuple[int, int] = (1, 1)
    title: str
    considered: tuple[Considered, ...] = ()
    not_preempted: str = ""
    notes: tuple[str, ...] = ()
    proposed_at: datetime
    expires_at: datetime

    @property
    def hash(self) -> str:
        """Over what a person agrees to: targets by uid, fields, from → to, most pods and GPUs, beneficiary, lease."""
        need = self.need
        agreed = [
            self.cluster,
            self.playbook,
            [need.workload, need.component] if need is not None else None,
            [_agreed(action) for action in self.actions],
            len(self.victims),
            self.gpus,
            self.lease.total_seconds(),
        ]
        return sha256(msgspec.json.encode(agreed)).hexdigest()

    @property
    def id(self) -> str:
        """Short name for people; the same commitment for the same incident, proposed anew, is another plan."""
        asked = f"{self.hash}\0{self.incident}\0{self.proposed_at.isoformat()}"
        return sha256(asked.encode()).hexdigest()[:8]

    @property
    def scales(self) -> tuple[Scale, ...]:
        return tuple(action for action in self.actions if isinstance(action, Scale))

    @property
    def touches(self) -> tuple[ObjectRef, ...]:
        """The objects that a cooldown, or another plan, leaves alone."""
        refs = [s.target for s in self.scales] + [a.pod for a in self.actions if isinstance(a, EvictPod)]
        return (*refs, *(a.node for a in self.actions if isinstance(a, Cordon)))


def changed(plan: Plan) -> tuple[ObjectRef, ...]:
    """Every object that is written to, but for the annotation that steers: what is ruled, what makes it last, marks."""
    refs: list[ObjectRef] = []
    for scale in plan.scales:
        refs += [scale.target, *(ref for ref, _, _ in scale.also), scale.marked]
    return tuple(dict.fromkeys((*refs, *plan.touches)))


class Answer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What planning came to: a plan, or why there is none; `text` is a sentence that says what to set or do."""

    plan: Plan | None = None
    reason: NoPlanReason | None = None
    text: str = ""
    considered: tuple[Considered, ...] = ()


def _agreed(action: Action) -> object:
    if isinstance(action, Scale):
        # Not the values that only make the change last, and not the index in a list: these move without being wider.
        uid = action.target.uid or str(action.target)
        return ["scale", uid, action.component, action.before, action.after, action.unit_pods, action.unit_gpus]
    return msgspec.to_builtins(action)
