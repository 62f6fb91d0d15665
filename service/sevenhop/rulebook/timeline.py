"""What people write in a rule's test: facts at times, and what is expected at which second."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, model_validator

from sevenhop.core.alerts.alert import AlertState
from sevenhop.core.alerts.rule import Severity
from sevenhop.core.facts.schema import UnknownReason
from sevenhop.rulebook.gpu_timeline import GpuMoment, GpuWorld
from sevenhop.rulebook.schema import Duration, Model, Slug, Text, word


class News(StrEnum):
    """What is told at one second."""

    FIRES = "fires"
    RESOLVES = "resolves"
    NOTHING = "nothing"


class Moment(Model):
    """The subject's facts change, or the subject goes away."""

    at: Duration = Field(description="Since the start of the test.")
    set: dict[str, Any] = Field(default_factory=dict, description="Facts; a timestamp is a time since the start.")
    unknown: dict[str, Annotated[UnknownReason, word(UnknownReason)]] = Field(
        default_factory=dict, description="Facts that cannot be observed from here on, with the reason."
    )
    gone: bool = Field(default=False, description="The subject is no more.")


class Expectation(Model):
    """What must be so at one exact second, after everything of that second."""

    at: Duration
    state: Annotated[AlertState, word(AlertState)]
    notify: Annotated[News, word(News)] | None = Field(default=None, description="What is told at exactly this second.")
    unknown: list[str] | None = Field(default=None, description="Facts that the alert is blind for.")
    severity: Annotated[Severity, word(Severity)] | None = None
    summary: str | None = Field(default=None, description="The rendered summary of an alert that is not inactive.")


class Timeline(Model):
    """One story of one subject: told as its facts, or as what GPU agents say."""

    name: Text
    labels: dict[str, str] = Field(default_factory=dict)
    facts: list[Moment] = Field(default_factory=list)
    gpus: GpuWorld | None = Field(default=None, description="Nodes with GPU agents; in the place of `facts`.")
    samples: list[GpuMoment] = Field(default_factory=list, description="What the agents say from when on.")
    expect: Annotated[list[Expectation], Field(min_length=1)]

    @model_validator(mode="after")
    def _in_order(self) -> Timeline:
        if bool(self.facts) is (self.gpus is not None):
            raise ValueError("a test tells either `facts` or `gpus`")
        if self.samples and self.gpus is None:
            raise ValueError("`samples` need `gpus`")
        for times in ([m.at for m in self.facts], [m.at for m in self.samples], [e.at for e in self.expect]):
            if times != sorted(times):
                raise ValueError("times should go forward")
        return self

    @property
    def end(self) -> timedelta:
        return max([self.expect[-1].at, *(m.at for m in self.facts), *(m.at for m in self.samples)])


class TestFile(Model):
    """Tests of one rule: ``rules/<hop>/<id>.test.yaml``."""

    __test__ = False  # not a test of ours

    rule: Slug
    tests: Annotated[list[Timeline], Field(min_length=1)]


_MODELS = (TestFile, Timeline, Moment, GpuWorld, GpuMoment, Expectation)
KEYS = tuple(dict.fromkeys(key for model in _MODELS for key in model.model_fields))
"""Every key that a test file may have, at any level."""
