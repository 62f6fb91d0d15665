"""What a channel still shows of an incident that we forgot: not over while nobody can tell."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from sevenhop.core.alerts.rule import Evaluation, Verdict
from sevenhop.core.incidents.incident import incident_key
from tests.unit.incidents.scene import (
    CLUSTER,
    FEWER,
    SHORT,
    Scene,
    alert,
    at,
    component,
    fires,
    node,
    pool,
    reasons,
    recalled,
)

MINUTE, HOUR = 60, 3600


def test_what_a_channel_shows_stays_while_nobody_can_see_it() -> None:
    """A lost store and a cluster that cannot be listed: no end is told, and no second page when it can be seen."""
    scene = Scene()
    scene.restart(keep=False)
    scene.hidden = {pool()}
    scene.desk.hear(recalled())
    scene.step(0)
    assert scene.until(HOUR) == []

    scene.hidden = set()
    sent = scene.until(HOUR + 7 * MINUTE)
    sent += scene.step(HOUR + 7 * MINUTE, fires(alert(SHORT, component()), HOUR + 7 * MINUTE))
    sent += scene.until(2 * HOUR)

    assert [(n.reason, n.anew, n.episode) for n in sent[:1]] == [("changed", False, 3)]
    assert not [n for n in sent if n.anew or n.message.status != "firing"]


def test_once_it_can_be_seen_its_time_begins() -> None:
    """Hidden for an hour and then visible and well: it ends, no earlier than the wait after it could be seen."""
    scene = Scene()
    scene.restart(keep=False)
    scene.hidden = {pool()}
    scene.desk.hear(recalled())
    scene.step(0)
    scene.until(HOUR)
    scene.hidden = set()

    (notify,) = scene.until(HOUR + 11 * MINUTE)

    assert (notify.reason, notify.message.end_reason) == ("resolved", "state_lost")
    assert notify.message.at >= at(HOUR + 7.9 * MINUTE)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(Verdict.UNKNOWN, [], id="a window that is not covered yet"),
        pytest.param(Verdict.FALSE, ["resolved"], id="seen to be well"),
    ],
)
def test_what_its_rules_cannot_tell_does_not_end(answer: Verdict, expected: list[str]) -> None:
    """The store was lost, the object is there, and what the rule reads of it is unknown: not well, so no end."""
    asked = replace(FEWER, evaluate=lambda _: Evaluation(answer))
    scene = Scene(rules=(asked,))
    scene.restart(keep=False)
    scene.facts[node()] = {}
    shown = {"key": incident_key(CLUSTER, node(), "discovery"), "cause": str(node()), "family": "discovery"}
    scene.desk.hear(recalled(causes=(FEWER.id,), **shown))
    scene.step(0)

    assert reasons(scene.until(HOUR)) == expected


@pytest.mark.parametrize("restarted", [False, True])
def test_a_rule_that_holds_longer_than_the_wait_pages_no_second_time(*, restarted: bool) -> None:
    """Its `for:` began anew with the lost store; until that has passed, not firing says nothing."""
    slow = replace(SHORT, hold=timedelta(minutes=15))
    scene = Scene(rules=(slow,))
    scene.restart(keep=False)
    scene.desk.hear(recalled())
    scene.step(0)
    if restarted:
        scene.restart()
        scene.step(1)
    sent = scene.until(15 * MINUTE)

    sent += scene.step(15 * MINUTE, fires(alert(slow, component()), 15 * MINUTE)) + scene.until(HOUR)

    assert [(n.reason, n.episode) for n in sent[:1]] == [("changed", 3)]
    assert not [n for n in sent if n.anew]


def test_alerts_that_cannot_be_read_do_not_end_their_incident() -> None:
    """After an upgrade that reads no alert of before: what still fires is the same incident, and pages nobody again."""
    scene = Scene()
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    (first,) = scene.step(5)
    scene.arrives(first, "C1/1.1")
    scene.step(6)
    del scene.rows[("alerts", firing.fingerprint)]
    scene.restart()

    sent = scene.step(20) + scene.step(30, fires(firing, 30)) + scene.until(HOUR)

    assert [n for n in sent if n.anew or n.message.status != "firing"] == []
    assert [incident.alerts for incident in scene.desk.incidents.values()] == [(firing.fingerprint,)]


def test_an_incident_whose_alerts_cannot_be_read_ends_when_nothing_fires_again() -> None:
    """It does not stay red for ever."""
    scene = Scene()
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(5)
    del scene.rows[("alerts", firing.fingerprint)]
    scene.restart()

    sent = scene.step(20) + scene.until(15 * MINUTE)

    assert [(n.reason, n.message.end_reason) for n in sent] == [("resolved", "state_lost")]
