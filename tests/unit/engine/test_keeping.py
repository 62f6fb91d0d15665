"""What is kept over a restart reads back as it was."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from sevenhop.core.alerts.alert import Alert, AlertState
from sevenhop.core.effects import Row
from sevenhop.core.inventory.history import Loads, Restarts, SeenGpus
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.state import State
from sevenhop.core.inventory.waiting import Spell
from sevenhop.core.keeping import alert_row, history_rows, load_histories, read_alert
from sevenhop.core.subject import Subject
from sevenhop.frameworks import FRAMEWORKS
from tests.builders import at

ALERT = Alert(
    rule_id="r",
    rule_digest="d",
    cluster="c",
    subject=Subject.parse("component:prod/llama-70b/decode"),
    state=AlertState.FIRING,
    since=at(0),
    fired_at=at(120),
    labels={"tier": "critical"},
    values={"a": True, "b": 3, "c": 0.5, "d": "2026-11-30T12:00:00Z", "e": [1, 2], "f": at(7)},
    missing=("x is unknown",),
)


def test_an_alert_reads_back_as_it_was() -> None:
    """
    A text that looks like a time stays a text, a time stays a time.
    """
    row = alert_row(ALERT)

    assert row.value is not None
    assert read_alert(row.value) == ALERT
    assert isinstance(read_alert(row.value).values["f"], datetime)
    assert read_alert(row.value).values["b"] is not True


def test_an_inactive_alert_is_forgotten() -> None:
    """
    Its row goes, under the same key.
    """
    assert alert_row(replace(ALERT, state=AlertState.INACTIVE)) == Row("alerts", ALERT.fingerprint, None)


def state_with_histories() -> State:
    state = State("c", FRAMEWORKS, Policy())
    state.restarts[("prod", "p")] = ("uid", Restarts(3, ((at(0), 2),), 1, at(600), at(5)))
    state.seen_gpus["gpu-0"] = SeenGpus("H100|8", 8)
    state.loads["prod/Deployment.apps/x image:1"] = Loads((("uid", 100.0),))
    state.spells[(("prod", "llama-70b"), "decode")] = Spell(at(3), frozenset({"a"}))
    state.evidence.seen_autoscaler = True
    state.changed_histories = {
        ("restarts", "prod/p"),
        ("seen_gpus", "gpu-0"),
        ("loads", "prod/Deployment.apps/x image:1"),
        ("spells", "prod/llama-70b/decode"),
        ("autoscaler", "seen"),
        ("restarts", "prod/gone"),
    }
    return state


def test_histories_read_back_as_they_were() -> None:
    """
    Every table; what is gone is forgotten; and nothing is stored twice.
    """
    state = state_with_histories()
    rows = list(history_rows(state))
    after = State("c", FRAMEWORKS, Policy())

    problems = load_histories(after, rows)

    assert problems == []
    assert Row("restarts", "prod/gone", None) in rows
    assert (after.restarts, after.seen_gpus, after.loads) == (state.restarts, state.seen_gpus, state.loads)
    assert after.spells == state.spells
    assert after.evidence.seen_autoscaler
    assert list(history_rows(state)) == []


def test_a_history_of_another_version_is_named() -> None:
    """
    It is left out: unknown until it is covered again.
    """
    state = State("c", FRAMEWORKS, Policy())

    problems = load_histories(state, [Row("spells", "no slashes", b"{}"), Row("loads", "x", b'{"seconds": 3}')])

    assert [p.split(":")[0] for p in problems] == ["spells/no slashes", "loads/x"]
    assert state.loads == {}
