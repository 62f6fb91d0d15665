"""The settings section `remediation`: what may be done, who may say yes, and when nothing is touched."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from sevenhop.core.remediation.guards_freeze import WEEKDAYS
from sevenhop.durations import Duration
from sevenhop.rulebook.playbook_schema import Approver, off_as_written

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def parse_time_of_day(value: Any) -> time:
    """
    Read ``22:00``; ``24:00`` is midnight.

    Raises:
        ValueError: Another form.

    >>> parse_time_of_day("22:00"), parse_time_of_day(1320)
    (datetime.time(22, 0), datetime.time(22, 0))
    """
    if isinstance(value, time):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        # YAML 1.1 reads 22:00 without quotes as a number to the base of 60.
        value = f"{value // 60:02}:{value % 60:02}"
    match = re.fullmatch(r"(\d{1,2}):(\d{2})", str(value).strip())
    if not match or (int(match[1]), int(match[2])) > (24, 0) or int(match[2]) > 59:
        raise ValueError(f"expected a time of day in UTC such as 22:00, got {value!r}")
    return time(int(match[1]) % 24, int(match[2]))


TimeOfDay = Annotated[time, BeforeValidator(parse_time_of_day)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class FreezeSettings(_Section):
    """One freeze window: either two moments, or a time of day on days of the week."""

    name: str = Field(min_length=1, description="Shown to whoever is refused: quarter end.")
    start: datetime | None = Field(None, description="RFC 3339 with a time zone, such as 2026-12-24T00:00:00Z.")
    end: datetime | None = Field(None, description="The same; from this moment on things may be done again.")
    days: list[Day] = Field(
        default_factory=list, description="Days on which a weekly window begins: mon, tue, … (UTC)."
    )
    since: TimeOfDay = Field(time(0), alias="from", description="Time of day in UTC at which it begins.")
    until: TimeOfDay = Field(
        time(0),
        alias="to",
        description="Time of day in UTC at which it ends; not later than `from` is of the next day.",
    )

    @model_validator(mode="after")
    def _is_one_of_two(self) -> FreezeSettings:
        dated = self.start is not None or self.end is not None
        if dated == bool(self.days):
            raise ValueError("give start and end, or days with from and to")
        if dated:
            if self.start is None or self.end is None:
                raise ValueError("start and end go together")
            if self.start.tzinfo is None or self.end.tzinfo is None:
                raise ValueError("start and end need a time zone, such as the Z of 2026-12-24T00:00:00Z")
            if self.end <= self.start:
                raise ValueError("end should be later than start")
        return self

    @property
    def weekdays(self) -> tuple[int, ...]:
        return tuple(sorted({WEEKDAYS.index(day) for day in self.days}))


class BreakerSettings(_Section):
    """When runs fail too often: nothing new is tried until a person has looked and reset it."""

    most_failures: int = Field(
        3, ge=1, description="It opens at so many runs that failed, were undone or have an unknown outcome."
    )
    window: Duration = Field(timedelta(hours=24), description="Counted within so long; a success takes nothing back.")


class PlaybookSettings(_Section):
    """What this installation says of one playbook; what is not given stays as in its file."""

    mode: Annotated[Literal["off", "shadow", "approve"] | None, BeforeValidator(off_as_written)] = Field(
        None, description="off: no plans; shadow: recorded, nobody is asked; approve: people are asked."
    )
    approvers: list[Approver] | None = Field(
        None, description="Who may approve: slack:U0123, slack-group:S0123, kubernetes:alice@corp, …; nobody if empty."
    )
    approvals: Literal[1, 2] | None = Field(None, description="How many different people must agree.")


class RemediationSettings(_Section):
    """What may be done, by whose leave; shipped playbooks ask nobody until an operator says so."""

    kill_switch: bool = Field(
        False, description="True: nothing new is changed, whatever people switch; giving back goes on."
    )
    approvers: list[Approver] = Field(
        default_factory=list, description="For every playbook that names none itself, here or in its file."
    )
    playbooks: dict[str, PlaybookSettings] = Field(
        default_factory=dict, description="Playbook id to what this installation says of it."
    )
    freeze: list[FreezeSettings] = Field(default_factory=list, description="Windows in which nothing new is changed.")
    breaker: BreakerSettings = Field(default_factory=BreakerSettings)
    verified_within: Duration = Field(
        timedelta(seconds=60),
        description=(
            "Who a person is, and in which groups, was looked up at most so long before the decision: somebody who was "
            "taken off the group a minute ago decides nothing."
        ),
    )
    approval_good_for: Duration = Field(
        timedelta(minutes=15),
        description="A step begins at most so long after the approval; later the cluster is another one.",
    )
