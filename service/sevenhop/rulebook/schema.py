"""What people write in a rule's file; the descriptions are the reference and the editor's help."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from sevenhop.core.alerts.rule import SeverityPolicy
from sevenhop.core.durations import format_duration as format_duration
from sevenhop.core.durations import parse_duration as parse_duration
from sevenhop.core.subject import SubjectKind
from sevenhop.durations import Duration as Duration
from sevenhop.rulebook.problem import did_you_mean

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$")]


class Model(BaseModel):
    """Strict: an unknown key is an error, nothing is converted by guess."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Status(StrEnum):
    EXPERIMENTAL = "experimental"
    STABLE = "stable"
    DEPRECATED = "deprecated"


def word(kind: type[StrEnum]) -> BeforeValidator:
    """Reads one word of a closed set, and says the set otherwise."""

    def read(value: Any) -> Any:
        words = [str(word) for word in kind]
        if isinstance(value, str) and value in words:
            return kind(value)
        hint = did_you_mean(value, words) if isinstance(value, str) else ""
        raise ValueError(f"expected one of {', '.join(words)}, got {value!r}{hint}")

    return BeforeValidator(read)


class RuleFile(Model):
    """One rule: ``rules/<hop>/<id>.yaml``."""

    id: Slug = Field(description="Name of the rule, in kebab-case; equal to the file's name.")
    status: Annotated[Status, word(Status)] = Field(
        description="`stable` rules need a timeline test that fires, one that stays quiet, and the exact seconds."
    )
    subject: Annotated[SubjectKind, word(SubjectKind)] = Field(description="What the rule looks at.")
    expr: Text = Field(description="CEL over the subject's facts and the labels; true is bad.")
    since: str = Field(
        default="", description="Fact with a server timestamp from which `for` counts, so that a restart does not."
    )
    hold: Duration = Field(alias="for", description="How long the condition must hold before the alert fires.")
    keep_firing_for: Duration = Field(
        default=timedelta(0), description="How long the condition must be gone before the alert resolves."
    )
    severity: Annotated[SeverityPolicy, word(SeverityPolicy)] = Field(
        description="`by_tier`: critical for the critical tier, else warning; a component at its minimum only warns."
    )
    cause: Annotated[SubjectKind, word(SubjectKind)] | None = Field(
        default=None, description="Kind of object that an incident of this rule is about; the subject's if not given."
    )
    drops: list[str] | None = Field(
        default=None,
        description="Boolean facts that silence the rule while true; by default node.maintenance and "
        "component.intended_zero, where the subject sees them. `[]` for none.",
    )
    annotations: dict[Slug | Annotated[str, StringConstraints(pattern=r"^[a-z_]+$")], Text] = Field(
        description="Texts with `{{ fact or label }}`; `{{ count(fact, 'pod') }}` is a number with its noun, 1 pod or "
        "3 pods (a third word for a plural that English does not make by rule); `summary` is required."
    )
    playbook: Slug | None = Field(default=None, description="What may be done about it.")
    description: Annotated[str, StringConstraints(strip_whitespace=True, min_length=40)] = Field(
        description="What users feel, in one or two sentences."
    )
    false_positives: Annotated[list[Text], Field(min_length=1)] = Field(
        description="When it fires though nothing is wrong."
    )
    triage: Text = Field(description="What to look at first, in order.")
    enabled: bool = Field(default=True, description="Off by default where it needs tuning or a source that most lack.")
