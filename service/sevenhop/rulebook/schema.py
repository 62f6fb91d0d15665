"""What people write in a rule's file; the descriptions are the reference and the editor's help."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from sevenhop.core.alerts.rule import SeverityPolicy
from sevenhop.core.subject import SubjectKind
from sevenhop.rulebook.problem import did_you_mean

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(text: object) -> timedelta:
    """
    Read a length of time with its unit.

    Raises:
        ValueError: No unit, negative, or something else altogether.

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    if isinstance(text, timedelta):
        return text
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        raise ValueError(f"expected a duration such as 90s, 5m or 12h, got {text!r}")
    try:
        return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))
    except OverflowError:
        raise ValueError(f"expected a duration such as 90s, 5m or 12h, got {text!r}, which is too long") from None


def format_duration(length: timedelta) -> str:
    """
    The shortest way to write a length of time.

    >>> format_duration(timedelta(minutes=90)), format_duration(timedelta(0))
    ('1h30m', '0s')
    """
    left = round(length.total_seconds() * 1000)
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return "".join(parts) or "0s"


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
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
