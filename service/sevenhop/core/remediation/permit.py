"""
What the guards say: a permit, or a refusal with its reason.

A permit cannot be made by hand: only `guards.judge` can give one.  The executor asks for it, for each step, at the
moment of the step; it is never stored and never sent.  It checks with `covers`, which no imitation passes.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final, NoReturn, Protocol
from weakref import WeakKeyDictionary

import msgspec


class Purpose(StrEnum):
    """What a step is for.  `UNDO` and `RESTORE` give back: the switch and the breaker never stand in their way."""

    DRY_RUN = "dry-run"
    APPLY = "apply"
    UNDO = "undo"
    RESTORE = "restore"
    EXTEND = "extend"  # the date on the marks of what is lent, and nothing else
    READ_BACK = "read-back"  # only looks

    @property
    def gives_back(self) -> bool:
        return self in (Purpose.UNDO, Purpose.RESTORE)


class GuardName(StrEnum):
    KILL_SWITCH = "kill-switch"
    MODE = "mode"
    APPROVED = "approved"  # by as many allowed people as needed, for exactly this hash, not expired
    SAME_CLUSTER = "same-cluster"
    STILL_NEEDED = "still-needed"
    UNCHANGED = "unchanged"  # targets are the same objects, with the values that were agreed to
    NOT_WIDER = "not-wider"  # live re-planning asks for no more than was agreed to
    OPT_OUT = "opt-out"
    FLOOR = "floor"
    BUDGET_OF_PODS = "pod-disruption-budget"
    COOLDOWN = "cooldown"
    CONCURRENT = "concurrent"
    DAILY_BUDGET = "daily-budget"
    LIMITS = "limits"  # most replicas and GPUs of one plan
    BREAKER = "breaker"  # too many runs failed; reset by a person
    FREEZE = "freeze"  # a freeze window
    TWO_FACTS = "two-facts"  # what disrupts needs two independent facts
    FRESH = "fresh"  # what the decision rests on is seen now
    POOL_TURNED_BAD = "pool-turned-bad"


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """`text` is one line for people: what stands against it, and what would have to change."""

    guard: GuardName
    text: str


class Permit:
    """
    Leave for one step of one plan.

    It carries nothing itself: what it allows is looked up by its identity, so that a copy, an imitation or a changed
    attribute allows nothing.

    Attributes:
        effect_id: The step.
        plan_hash: What was agreed to.
        purpose: See `Purpose`.
        given_at, expires_at: It is for now; not for later, and not for a clock that was turned back.
    """

    __slots__ = ("__weakref__",)

    def __new__(cls, *_args: object, **_more: object) -> Permit:
        raise TypeError("a permit is given by the guards, and by nobody else")

    def __init_subclass__(cls, **_more: object) -> None:
        raise TypeError("there is one kind of permit")

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("a permit is neither copied, stored nor sent")

    @property
    def effect_id(self) -> str:
        return _leave(self).effect_id

    @property
    def plan_hash(self) -> str:
        return _leave(self).plan_hash

    @property
    def purpose(self) -> Purpose:
        return _leave(self).purpose

    @property
    def given_at(self) -> datetime:
        return _leave(self).given_at

    @property
    def expires_at(self) -> datetime:
        return _leave(self).expires_at

    def covers(self, effect_id: str, plan_hash: str, purpose: Purpose, now: datetime) -> bool:
        """Whether it is for exactly this step, now."""
        return covers(self, effect_id, plan_hash, purpose, now)


def covers(permit: object, effect_id: str, plan_hash: str, purpose: Purpose, now: datetime) -> bool:
    """Whether this is a permit that the guards gave, and for exactly this step, now.  What imitates one is none."""
    if type(permit) is not Permit:
        return False
    leave = _GIVEN.get(permit)
    if leave is None:
        return False
    asked = (effect_id, plan_hash, purpose)
    return (leave.effect_id, leave.plan_hash, leave.purpose) == asked and leave.given_at <= now <= leave.expires_at


class Give(Protocol):
    """What the guards hold, and nobody else."""

    def __call__(
        self, *, effect_id: str, plan_hash: str, purpose: Purpose, given_at: datetime, expires_at: datetime
    ) -> Permit: ...


def claim() -> Give:
    """
    Hand out what makes permits, once: to the guards, when they are imported.

    Raises:
        RuntimeError: It is taken.
    """
    if _claimed:
        raise RuntimeError("permits are given by the guards, and by nobody else")
    _claimed.append(_give)
    return _give


class _Leave(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    effect_id: str
    plan_hash: str
    purpose: Purpose
    given_at: datetime
    expires_at: datetime


_GIVEN: Final[WeakKeyDictionary[Permit, _Leave]] = WeakKeyDictionary()
_claimed: Final[list[Give]] = []


def _give(*, effect_id: str, plan_hash: str, purpose: Purpose, given_at: datetime, expires_at: datetime) -> Permit:
    permit = object.__new__(Permit)
    _GIVEN[permit] = _Leave(
        effect_id=effect_id, plan_hash=plan_hash, purpose=purpose, given_at=given_at, expires_at=expires_at
    )
    return permit


def _leave(permit: Permit) -> _Leave:
    leave = _GIVEN.get(permit)
    if leave is None:
        raise TypeError("this permit was not given by the guards")
    return leave
