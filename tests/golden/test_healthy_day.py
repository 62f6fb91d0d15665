"""On a healthy day nothing fires; one fault in it fires its rule and no other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sevenhop.app import build_rulebook
from sevenhop.core.events import Applied, Event
from sevenhop.core.subject import Hop
from sevenhop.rulebook.load import Rulebook
from sevenhop.settings import Settings
from tests.golden.day_faults import FAULTS, events_of, lasts
from tests.golden.firing import COMPANIONS, fired
from tests.golden.healthy_day import MIDNIGHT, healthy_day, with_fault

END = MIDNIGHT + timedelta(hours=24)


@pytest.fixture(scope="module")
def day() -> list[Event]:
    return healthy_day()


@pytest.fixture(scope="module")
def rulebook() -> Rulebook:
    return build_rulebook(Settings())


def test_the_day_is_a_busy_one(day: list[Event]) -> None:
    """Otherwise silence would prove nothing: pods come and go, wait, are gated, finish; a node is drained."""
    pods = [event.obj for event in day if isinstance(event, Applied) and event.kind == "Pod"]
    names = {pod.metadata.name for pod in pods}
    print(f"{len(day)} events, {len(names)} pods")
    assert len(names) > 30
    assert {"Pending", "Running", "Succeeded"} <= {pod.status.phase for pod in pods}  # type: ignore[attr-defined]
    assert any(pod.spec.scheduling_gates for pod in pods)  # type: ignore[attr-defined]
    assert day[-1].at > MIDNIGHT + timedelta(hours=22)


def test_nothing_fires_on_a_healthy_day(day: list[Event], rulebook: Rulebook) -> None:
    """The shipped rules over 24 hours: no alert fires, nobody is told anything."""
    rules, told = fired(day, rulebook, END)
    assert not told, "\n".join(told)
    assert not rules


@pytest.mark.parametrize("rule", sorted(FAULTS))
def test_one_fault_fires_its_rule_and_no_other(rule: str, day: list[Event], rulebook: Rulebook) -> None:
    """The same day with one fault at noon: exactly the rule about it."""
    hold = next(known.hold for known in rulebook.rules if known.id == rule)
    until = lasts(hold)
    rules, told = fired(with_fault(day, events_of(rule), until=until), rulebook, until)
    assert set(rules) - COMPANIONS.get(rule, set()) == {rule}, "\n".join(told)


def test_every_rule_that_objects_can_provoke_is_provoked(rulebook: Rulebook) -> None:
    """What has no fault is named here with the reason."""
    elsewhere = {
        "load-overdue": "needs learned load times",
        "outbox-stuck": "about our own delivery",
        "rule-broken": "about our own rules",
        "rulebook-rejected": "about our own rules",
    }
    needs_more = {rule.id for rule in rulebook.rules if rule.hop in (Hop.GPU, Hop.GATEWAY)}
    needs_more |= {"unhealthy-gpu-still-allocatable", "straggler", "cpu-throttled"}  # agent
    needs_more |= {"ready-but-not-serving"}  # probe
    assert {rule.id for rule in rulebook.rules} - needs_more - set(elsewhere) == set(FAULTS)
