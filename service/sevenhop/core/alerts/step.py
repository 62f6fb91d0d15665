"""
One alert's next state: inactive → pending → firing → resolved.

Pure: what is known of the alert and one evaluation go in, the alert as it is then and the reason come out.  Blindness
neither fires nor resolves: a pending alert's clock stands still, a firing alert keeps firing and says since when it is
unconfirmed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from sevenhop.core.alerts.alert import Alert, AlertState, ChangeReason
from sevenhop.core.alerts.rule import Evaluation, Rule, Verdict
from sevenhop.core.facts.schema import LABELS, Facts, FactValue, Unknown
from sevenhop.core.subject import Subject

LONGEST_BLIND_WAIT = timedelta(minutes=10)
"""A pending alert that cannot be confirmed is given up after this, or after its `for` where that is longer."""

AFTER_A_START = "not evaluated since the start"
"""What is missing of an alert that was loaded and not yet looked at."""

Change = tuple[Alert, ChangeReason]


def step(
    alert: Alert | None, rule: Rule, subject: Subject, cluster: str, found: Evaluation, facts: Facts, now: datetime
) -> Change | None:
    """
    Apply one evaluation.

    Args:
        alert: As it was; None while inactive.
        found: Not `BROKEN`: a broken rule's alerts are left as they are.
        now: Not before any time in the alert.

    Returns:
        The alert and why it is so, or None where nothing is to be kept or told.
    """
    if found.verdict is Verdict.UNKNOWN:
        return None if alert is None else _unknown(alert, found, now)
    if found.verdict is Verdict.FALSE:
        return None if alert is None else _false(alert, rule, now)
    if alert is None:
        alert = _opened(rule, subject, cluster, facts, now)
        return _maybe_fire(alert, rule, now) or (alert, ChangeReason.CONDITION_TRUE)
    return _true(alert, rule, facts, now)


def due(alert: Alert, rule: Rule) -> datetime | None:
    """When the passing of time alone changes the alert; None if it never does."""
    if alert.state is AlertState.PENDING:
        if alert.blind_since is not None:
            return alert.blind_since + max(rule.hold, LONGEST_BLIND_WAIT)
        return alert.since + timedelta(seconds=alert.blind_s) + rule.hold
    if alert.false_since is not None:
        return alert.false_since + rule.keep_firing
    return None


def elapse(alert: Alert, at: datetime) -> Change:
    """What happens at the moment that `due` named."""
    if alert.state is AlertState.FIRING:
        return ended(alert, ChangeReason.CONDITION_FALSE)
    if alert.blind_since is not None:
        return ended(alert, ChangeReason.BLIND)
    return replace(alert, state=AlertState.FIRING, fired_at=at), ChangeReason.HELD


def ended(alert: Alert, reason: ChangeReason) -> Change:
    """The alert as it is remembered once it is over."""
    return replace(alert, state=AlertState.INACTIVE), reason


def as_loaded(alert: Alert, down_since: datetime) -> Alert:
    """
    An alert from the store, before anything was seen again: blind, since we went down.

    Blind time from before is accounted for, so that what comes now is downtime alone.
    """
    start = max(down_since, alert.confirmed_at or alert.since)
    spent = alert.blind_s
    if alert.blind_since is not None:
        spent += max(0.0, (start - alert.blind_since).total_seconds())
    return replace(alert, blind_since=start, blind_s=spent, missing=(AFTER_A_START,))


def frozen(alert: Alert, error: str, now: datetime) -> Alert:
    """An alert whose rule fails to evaluate: where it was, unconfirmed since now."""
    return replace(alert, blind_since=alert.blind_since or now, false_since=None, missing=(f"rule broken: {error}",))


def resumed(alert: Alert, rule: Rule, facts: Facts) -> Alert:
    """
    A loaded alert when its facts are known for the first time.

    Where the server still tells the same beginning, the condition held while we were down, and that time counts.
    """
    began = _began(rule, facts)
    if alert.state is AlertState.PENDING and began is not None and began == alert.since:
        return replace(alert, blind_since=None, missing=())
    return alert


def labels_of(facts: Facts, cluster: str) -> dict[str, str]:
    """All labels, "" for what the subject does not have."""
    labels = {name: str(facts.get(name, "")) for name in LABELS}
    labels["cluster"] = labels["cluster"] or cluster
    return labels


def values_of(rule: Rule, facts: Facts) -> dict[str, FactValue]:
    """Known facts that the rule reads or shows."""
    return {
        name: value
        for name in sorted(rule.reads | rule.shows)
        if name not in LABELS and (value := facts.get(name)) is not None and not isinstance(value, Unknown)
    }


def _opened(rule: Rule, subject: Subject, cluster: str, facts: Facts, now: datetime) -> Alert:
    began = _began(rule, facts)
    return Alert(
        rule_id=rule.id,
        rule_digest=rule.digest,
        cluster=cluster,
        subject=subject,
        state=AlertState.PENDING,
        since=now if began is None else min(began, now),  # a server's clock may run ahead of ours
        confirmed_at=now,
        labels=labels_of(facts, cluster),
        values=values_of(rule, facts),
    )


def _true(alert: Alert, rule: Rule, facts: Facts, now: datetime) -> Change | None:
    seen = replace(
        _clock_after_blindness(alert, rule, facts, now),
        confirmed_at=now,
        false_since=None,
        blind_since=None,
        missing=(),
        labels=labels_of(facts, alert.cluster),
        values=values_of(rule, facts),
    )
    if seen.state is AlertState.PENDING:
        fired = _maybe_fire(seen, rule, now)
        if fired:
            return fired
    # confirmed_at alone is no news: a duplicate of an event must not be told
    return None if replace(seen, confirmed_at=alert.confirmed_at) == alert else (seen, ChangeReason.CONDITION_TRUE)


def _clock_after_blindness(alert: Alert, rule: Rule, facts: Facts, now: datetime) -> Alert:
    if alert.state is not AlertState.PENDING:
        return alert
    began = _began(rule, facts)
    if began is not None and began < alert.since:
        alert = replace(alert, since=began)
    if alert.blind_since is None:
        return alert  # a later beginning is another member's: the first is kept while the condition holds
    if began is not None and began > alert.since:
        # The condition ended unseen and began again.
        start = min(began, now)
        return replace(alert, since=start, blind_s=_seconds(max(alert.blind_since, start), now))
    return replace(alert, blind_s=alert.blind_s + _seconds(alert.blind_since, now))


def _maybe_fire(alert: Alert, rule: Rule, now: datetime) -> Change | None:
    at = due(alert, rule)
    if at is None or at > now:
        return None
    return replace(alert, state=AlertState.FIRING, fired_at=now), ChangeReason.HELD


def _false(alert: Alert, rule: Rule, now: datetime) -> Change | None:
    if alert.state is AlertState.PENDING:
        return ended(alert, ChangeReason.CONDITION_FALSE)
    false_since = alert.false_since or now
    seen = replace(alert, false_since=false_since, blind_since=None, missing=())
    if false_since + rule.keep_firing <= now:
        return ended(seen, ChangeReason.CONDITION_FALSE)
    return None if seen == alert else (seen, ChangeReason.CONDITION_FALSE)


def _unknown(alert: Alert, found: Evaluation, now: datetime) -> Change | None:
    missing = tuple(f"{name}: {why}" for name, why in found.missing)
    # A firing alert that was about to resolve starts its way out again once it can be seen: no resolve while blind.
    seen = replace(alert, blind_since=alert.blind_since or now, false_since=None, missing=missing)
    return None if seen == alert else (seen, ChangeReason.FACT_UNKNOWN)


def _began(rule: Rule, facts: Facts) -> datetime | None:
    began = facts.get(rule.since) if rule.since else None
    return began if isinstance(began, datetime) else None


def _seconds(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())


def looks_different(alert: Alert, rule: Rule, facts: Mapping[str, object]) -> bool:
    """Whether the subject's labels, or the facts that are only shown, are no longer those of the alert."""
    if any(facts.get(name, "") != value for name, value in alert.labels.items() if name != "cluster"):
        return True
    return any(facts.get(name) != alert.values.get(name) for name in rule.shows)
