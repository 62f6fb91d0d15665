"""What plans in shadow mode would have done, and what happened instead: how a playbook earns trust."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from sevenhop.core.remediation.case import Case, Stage
from sevenhop.core.remediation.states import PlanState


class ShadowLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One plan that nobody was asked about.

    Attributes:
        instead: What happened without it; empty while it is not known yet.
        took: From the proposal until then, or until now.
    """

    plan_id: str
    playbook: str
    incident: str
    proposed_at: datetime
    title: str
    gpus: int
    instead: str
    took: timedelta
    is_over: bool


def shadow_report(cases: Iterable[Case], now: datetime) -> list[ShadowLine]:
    """The oldest first."""
    shadows = (case for case in cases if case.state is PlanState.SHADOWED)
    return [_line(case, now) for case in sorted(shadows, key=lambda case: (case.plan.proposed_at, case.id))]


def _line(case: Case, now: datetime) -> ShadowLine:
    is_over = case.stage is not Stage.SHADOW
    until = case.instead_at if case.instead_at is not None else now
    return ShadowLine(
        plan_id=case.id,
        playbook=case.plan.playbook,
        incident=case.plan.incident,
        proposed_at=case.plan.proposed_at,
        title=case.plan.title,
        gpus=case.plan.gpus,
        instead=case.instead,
        took=until - case.plan.proposed_at,
        is_over=is_over,
    )
