"""Why an alert fires, or does not: the facts, what is unknown and why, where the clock of `for` stands."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from sevenhop.core.alerts.alert import Alert, AlertState
from sevenhop.core.alerts.render import render_value
from sevenhop.core.alerts.rule import Evaluation, Rule, Verdict
from sevenhop.core.alerts.step import due
from sevenhop.core.durations import format_duration
from sevenhop.core.facts.schema import LABELS, Facts, Unknown
from sevenhop.core.subject import Subject


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        why: One sentence.
        facts: (name, value as text) of all that the rule reads, unknown ones with their reason.
        dropped_by: The facts that silence the rule now, such as ``node.maintenance``.
        due: When time alone would change the state; None if it would not.
    """

    rule_id: str
    subject: Subject
    state: AlertState
    verdict: Verdict
    why: str
    facts: tuple[tuple[str, str], ...]
    dropped_by: tuple[str, ...] = ()
    due: datetime | None = None


def explain(rule: Rule, subject: Subject, alert: Alert | None, facts: Facts | None, now: datetime) -> Explanation:
    """
    Explain one rule on one subject now.

    Args:
        alert: None while inactive.
        facts: All facts of the subject; None where the subject is not known.
    """
    state = alert.state if alert is not None else AlertState.INACTIVE
    if facts is None:
        found, known = Evaluation(Verdict.UNKNOWN), Facts()
        why = f"{subject} is not in the inventory"
    else:
        found, known = rule.evaluate(facts), facts
        why = _why(rule, alert, found, known, now)
    return Explanation(
        rule_id=rule.id,
        subject=subject,
        state=state,
        verdict=found.verdict,
        why=why,
        facts=tuple((name, _text(known, name)) for name in sorted(rule.reads | rule.shows)),
        dropped_by=_dropped_by(rule, known),
        due=due(alert, rule) if alert is not None else None,
    )


def _why(rule: Rule, alert: Alert | None, found: Evaluation, facts: Facts, now: datetime) -> str:
    if found.verdict is Verdict.BROKEN:
        return f"the rule is broken, its state is frozen: {found.error}"
    if found.verdict is Verdict.UNKNOWN:
        missing = ", ".join(f"{name} is {why}" for name, why in found.missing)
        return f"cannot be decided: {missing}{_blind(alert)}"
    if found.verdict is Verdict.FALSE:
        dropped = _dropped_by(rule, facts)
        if dropped:
            return f"dropped while {' and '.join(dropped)}"
        if alert is not None and alert.false_since is not None:
            left = alert.false_since + rule.keep_firing - now
            return f"no longer true since {_clock(alert.false_since)}, resolves in {_length(left)}"
        return "the condition does not hold"
    if alert is None:
        return "the condition holds, and was not evaluated yet"
    if alert.state is AlertState.PENDING:
        held = now - alert.since - timedelta(seconds=alert.blind_s)
        blind = f", {_length(timedelta(seconds=alert.blind_s))} blind not counted" if alert.blind_s else ""
        return f"true since {_clock(alert.since)}: {_length(held)} of for: {_length(rule.hold)}{blind}"
    fired = f", firing since {_clock(alert.fired_at)}" if alert.fired_at else ""
    return f"true since {_clock(alert.since)}{fired}"


def _blind(alert: Alert | None) -> str:
    if alert is None or alert.blind_since is None:
        return ""
    confirmed = f", last confirmed {_clock(alert.confirmed_at)}" if alert.confirmed_at else ""
    return f"; blind since {_clock(alert.blind_since)}{confirmed}"


def _dropped_by(rule: Rule, facts: Facts) -> tuple[str, ...]:
    return tuple(name for name in rule.drops if facts.get(name) is True)


def _text(facts: Facts, name: str) -> str:
    value = facts.get(name, "" if name in LABELS else None)
    return str(value) if isinstance(value, Unknown) else render_value(value)


def _clock(at: datetime) -> str:
    return f"{at:%H:%M:%S}"


def _length(length: timedelta) -> str:
    return format_duration(timedelta(seconds=max(0, round(length.total_seconds()))))
