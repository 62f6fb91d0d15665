"""Which rules fire in a stream of events, and what people are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from sevenhop.app import build_engine
from sevenhop.cli.replaying import steps
from sevenhop.core.alerts.alert import AlertState
from sevenhop.core.effects import Notify
from sevenhop.core.events import Event
from sevenhop.rulebook.load import Rulebook
from sevenhop.settings import Settings

COMPANIONS = {
    # A gang waits because of something, and so does an autoscaler.
    "gang-incomplete": {"waits-for-cordoned-nodes"},
    "scale-out-limited": {"component-short-of-gpus"},
}
"""Rule to those that fire with it, because the fault of the one cannot be without that of the others."""


def fired(events: Iterable[Event], rulebook: Rulebook, until: datetime) -> tuple[Counter[str], list[str]]:
    """Rules that fired, how often, and in words when; and one line for each message."""
    engine = build_engine(Settings(), rulebook, "golden")
    rules: Counter[str] = Counter()
    told: list[str] = []
    for at, step in steps(engine, events, until):
        for change in step.changes:
            if change.alert.state is AlertState.FIRING and change.was is not AlertState.FIRING:
                rules[change.alert.rule_id] += 1
                told.append(f"{at:%H:%M:%S} {change.alert.rule_id} {change.alert.subject} {change.alert.values}")
        told += [f"{at:%H:%M:%S} told: {e.message.title}" for e in step.effects if isinstance(e, Notify)]
    return rules, told
