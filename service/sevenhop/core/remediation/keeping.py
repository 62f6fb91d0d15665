"""What the desk of plans keeps over a restart, as rows: plans with all that became of them, the switch, the breaker."""

from __future__ import annotations

import msgspec

from sevenhop.core.effects import Row
from sevenhop.core.remediation.case import Case
from sevenhop.core.remediation.guards_breaker import Breaker
from sevenhop.core.remediation.guards_question import Switch

PLANS = "plans"
SWITCH = "switch"
BREAKER = "breaker"

_cases = msgspec.json.Decoder(Case)
_switches = msgspec.json.Decoder(Switch)
_breakers = msgspec.json.Decoder(Breaker)


def case_row(plan_id: str, case: Case | None) -> Row:
    return Row(PLANS, plan_id, None if case is None else msgspec.json.encode(case, order="deterministic"))


def switch_row(switch: Switch) -> Row:
    return Row(SWITCH, "", msgspec.json.encode(switch, order="deterministic"))


def breaker_row(breaker: Breaker) -> Row:
    return Row(BREAKER, "", msgspec.json.encode(breaker, order="deterministic"))


def read_row(row: Row) -> Case | Switch | Breaker | None:
    """
    The inverse; None for a row of another table, or one that forgets.

    Raises:
        msgspec.MsgspecError: The row is of another version, or damaged.
    """
    if row.value is None:
        return None
    if row.table == PLANS:
        return _cases.decode(row.value)
    if row.table == SWITCH:
        return _switches.decode(row.value)
    if row.table == BREAKER:
        return _breakers.decode(row.value)
    return None
