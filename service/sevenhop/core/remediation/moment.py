"""What is true at one moment, for the functions that let a plan go on."""

from __future__ import annotations

from datetime import datetime

import msgspec

from sevenhop.core.inventory.state import State
from sevenhop.core.remediation.permit import Refusal
from sevenhop.core.remediation.playbook import Goal, Playbook
from sevenhop.core.remediation.settings import RemediationSettings


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        playbook: The plan's, as it is now; None if it is off or no more.
        goal: Of the playbook that the plan was made by.
        against: What the guards have against the step that was refused, asked when its answer came; empty where the
            refusal is not theirs.
    """

    now: datetime
    state: State
    settings: RemediationSettings
    playbook: Playbook | None
    goal: Goal
    against: tuple[Refusal, ...] = ()
