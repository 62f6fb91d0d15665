"""What people write in a playbook's test: a plan, what happens when, and what the guards say at which second."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from sevenhop.core.facts.schema import UnknownReason
from sevenhop.core.remediation.permit import GuardName
from sevenhop.core.remediation.playbook import Mode
from sevenhop.core.remediation.states import PlanState
from sevenhop.rulebook.playbook_scene import MODELS as SCENE_MODELS
from sevenhop.rulebook.playbook_scene import PlaybookScene
from sevenhop.rulebook.playbook_schema import Approver, ModeWord
from sevenhop.rulebook.schema import Duration, Model, Slug, Text, word

PASSES = "passes"
Verdict = StrEnum("Verdict", {"PASSES": PASSES, **{name.name: name.value for name in GuardName}})  # type: ignore[misc]
"""`passes`, or the guard that refuses first."""


class PlanText(Model):
    """The plan that the story is about; it is proposed at 0s."""

    replicas: Annotated[list[int], Field(min_length=2, max_length=2)] = Field(
        default=[4, 3], description="Of a donor: from, to; only for a playbook that scales."
    )
    gpus_per_replica: Annotated[int, Field(ge=0)] = Field(default=2, description="GPUs of one replica of the donor.")
    pods: Annotated[int, Field(ge=1)] = Field(default=1, description="Pods to evict; only for a playbook that evicts.")
    lease: Duration | None = Field(default=None, description="The playbook's if not given.")


class Earlier(Model):
    """Runs of the same playbook before this one."""

    state: Annotated[PlanState, word(PlanState)] = Field(description="What they came to.")
    ended_ago: Duration = Field(
        default=timedelta(0), description="How long before this second; a running one began then."
    )
    times: Annotated[int, Field(ge=1)] = Field(default=1, description="How many runs.")
    elsewhere: bool = Field(default=False, description="On other objects, for other incidents.")


class Change(Model):
    """What is so from here on.  Each key stands for one thing that a guard reads."""

    approved_by: list[Approver] | None = Field(default=None, description="These people approve now, verified now.")
    mode: ModeWord | None = Field(default=None, description="An operator sets the playbook's mode.")
    kill_switch: bool | None = None
    breaker_open: bool | None = Field(default=None, description="Too many runs failed.")
    frozen: bool | None = Field(default=None, description="A freeze window is open.")
    needed: bool | None = Field(default=None, description="What the plan is for still waits.")
    fits_plan: bool | None = Field(default=None, description="Planning now comes to the same plan.")
    replicas_now: int | None = Field(default=None, description="Replicas that the donor asks for.")
    made_anew: bool | None = Field(default=None, description="The targets were deleted and made again.")
    floor: int | None = Field(default=None, description="Fewest replicas of the donor.")
    opted_out: bool | None = Field(default=None, description="The owner says no.")
    budget_allows: int | None = Field(default=None, description="A PodDisruptionBudget lets so many victims go.")
    pool_turned_bad: bool | None = Field(default=None, description="Much of the pool went bad at once.")
    sources: list[str] | None = Field(default=None, description="Who says that it is needed: scheduler, ledger, …")
    earlier_run: Earlier | None = None


UnknownKey = Literal["needed", "floor", "budget_allows", "pool_turned_bad", "pods", "target"]


class PlaybookMoment(Model):
    """Something changes, or can no longer be seen."""

    at: Duration = Field(description="Since the plan was proposed.")
    set: Change = Field(default_factory=Change, description="What is so from here on.")
    unknown: dict[UnknownKey, Annotated[UnknownReason, word(UnknownReason)]] = Field(
        default_factory=dict, description="What cannot be observed from here on, with the reason."
    )


class Verdicts(Model):
    """What must be so at one exact second, after everything of that second."""

    at: Duration
    step: Annotated[Verdict, word(Verdict)] = Field(description="`passes`, or the guard that refuses first.")
    give_back: Annotated[Verdict, word(Verdict)] | None = Field(
        default=None, description="The same for undoing or restoring what was done."
    )


class PlaybookTimeline(Model):
    """
    One story of one plan.

    Attributes:
        mode, approvers, approvals: As an operator sets them for this story; shipped playbooks ask nobody.
    """

    name: Text
    mode: ModeWord = Mode.APPROVE
    approvers: list[Approver] = Field(default_factory=lambda: ["slack:U1", "slack:U2"])
    approvals: Literal[1, 2] | None = None
    plan: PlanText = Field(default_factory=PlanText)
    story: Annotated[list[PlaybookMoment], Field(min_length=1)]
    expect: Annotated[list[Verdicts], Field(min_length=1)]

    @model_validator(mode="after")
    def _in_order(self) -> PlaybookTimeline:
        for times in ([m.at for m in self.story], [e.at for e in self.expect]):
            if times != sorted(times):
                raise ValueError("times should go forward")
        return self

    @property
    def end(self) -> timedelta:
        return max(self.story[-1].at, self.expect[-1].at)


class PlaybookTestFile(Model):
    """Tests of one playbook: ``playbooks/<id>.test.yaml``."""

    playbook: Slug
    tests: Annotated[list[PlaybookTimeline], Field(min_length=1)]
    scenes: list[PlaybookScene] = Field(default_factory=list)


_MODELS = (PlaybookTestFile, PlaybookTimeline, PlanText, PlaybookMoment, Change, Earlier, Verdicts)
KEYS = tuple(dict.fromkeys(key for model in (*_MODELS, *SCENE_MODELS) for key in model.model_fields))
"""Every key that a test file may have, at any level."""
