"""What the desk of incidents asks the desk of plans, and what a message says of plans."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec

from sevenhop.core.effects import Line, PlanCard


class PlanWords(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What the message of one incident says of plans.

    Attributes:
        lines: With `Role.PLAN`; empty where there is nothing to say.
        history: What happened to its plans, a line each.
        asks: Names what a person is asked beyond the first message (a reminder, extend or restore): each is posted
            aloud once.  Empty for nothing.
    """

    card: PlanCard | None = None
    lines: tuple[Line, ...] = ()
    history: tuple[str, ...] = ()
    asks: str = ""


NO_WORDS = PlanWords()


class Plans(Protocol):
    """The desk of plans, as far as incidents ask it."""

    def words(self, incident: str, /) -> PlanWords:
        """Of an incident's key."""
        ...

    def holds(self, incident: str, /) -> bool:
        """Whether something may still come of its plans: then it is not forgotten."""
        ...

    def own_change_until(self, namespace: str, workload: str, component: str, /) -> datetime | None:
        """Until when alerts about a component are explained by what we changed there; None if they are not."""
        ...


class NoPlans:
    """Where nothing is ever offered."""

    def words(self, _incident: str, /) -> PlanWords:
        return NO_WORDS

    def holds(self, _incident: str, /) -> bool:
        return False

    def own_change_until(self, _namespace: str, _workload: str, _component: str, /) -> datetime | None:
        return None
