"""Every situation has exactly one reason."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from sevenhop.core.alerts.rule import Severity
from sevenhop.core.incidents.incident import Incident, IncidentStatus, NotifyReason, Told
from sevenhop.core.incidents.notify import Decision, Loud, Quiet, Shown, is_flapping, next_look, notify_reason
from sevenhop.core.incidents.settings import DeskSettings
from tests.unit.incidents.scene import CLUSTER, NOON, at, pool

SETTINGS = DeskSettings(receivers=("console",))
NOW = at(1000)
SAME, OTHER = Shown("content", "fine"), Shown("changed", "changed")
FINE = Shown("content", "finer")

INCIDENT = Incident(
    key="k",
    episode=1,
    cluster=CLUSTER,
    cause=pool(),
    family="scheduling",
    status=IncidentStatus.OPEN,
    severity=Severity.WARNING,
    opened_at=NOON,
    updated_at=NOON,
    since=NOON,
    tell_at=at(5),
    openings=(NOON,),
)
TOLD = Told(
    receiver="console",
    revision=1,
    at=at(5),
    severity=Severity.WARNING,
    causes=("a",),
    content="content",
    fine="fine",
    loud_at=at(5),
)
ENDED = replace(INCIDENT, status=IncidentStatus.RESOLVED)
LOUDER = replace(INCIDENT, severity=Severity.CRITICAL)
BACK = replace(INCIDENT, opening=2)
R = NotifyReason


@pytest.mark.parametrize(
    ("incident", "told", "shown", "quiet", "expected"),
    [
        pytest.param(INCIDENT, None, SAME, Quiet(), Decision(R.FIRST_FIRING), id="nobody was told yet"),
        pytest.param(
            replace(INCIDENT, tell_at=at(1001)), None, SAME, Quiet(), Decision(R.NOT_DUE_GROUP_WAIT), id="group wait"
        ),
        pytest.param(
            replace(INCIDENT, tell_at=NOW), None, SAME, Quiet(), Decision(R.FIRST_FIRING), id="group wait, on the dot"
        ),
        pytest.param(ENDED, None, SAME, Quiet(), Decision(R.NOT_DUE_NEVER_TOLD), id="ended untold"),
        pytest.param(INCIDENT, None, SAME, Quiet(silence=True), Decision(R.NOT_DUE_SILENCED), id="silenced, untold"),
        pytest.param(
            INCIDENT, None, SAME, Quiet(maintenance=True), Decision(R.NOT_DUE_MAINTENANCE), id="maintenance, untold"
        ),
        pytest.param(INCIDENT, TOLD, SAME, Quiet(), Decision(R.NOT_DUE_NOTHING_NEW), id="nothing new"),
        pytest.param(INCIDENT, TOLD, OTHER, Quiet(), Decision(R.CHANGED), id="changed"),
        pytest.param(
            INCIDENT,
            replace(TOLD, at=at(999.5)),
            OTHER,
            Quiet(),
            Decision(R.NOT_DUE_EDIT_INTERVAL),
            id="changed a moment after the last edit",
        ),
        pytest.param(INCIDENT, TOLD, FINE, Quiet(), Decision(R.CHANGED), id="only names, a minute later"),
        pytest.param(
            INCIDENT, replace(TOLD, at=at(950)), FINE, Quiet(), Decision(R.NOT_DUE_NOTHING_NEW), id="only names, soon"
        ),
        pytest.param(LOUDER, TOLD, OTHER, Quiet(), Decision(R.SEVERITY_UP), id="severity up"),
        pytest.param(
            LOUDER, replace(TOLD, at=at(999.5)), OTHER, Quiet(), Decision(R.SEVERITY_UP), id="severity up does not wait"
        ),
        pytest.param(
            LOUDER,
            TOLD,
            OTHER,
            Quiet(silence=True),
            Decision(R.CHANGED, R.NOT_DUE_SILENCED),
            id="severity up, silenced: shown, and owed",
        ),
        pytest.param(
            LOUDER, TOLD, OTHER, Quiet(flapping=True), Decision(R.SEVERITY_UP), id="flapping hides no severity"
        ),
        pytest.param(BACK, TOLD, OTHER, Quiet(), Decision(R.REOPENED), id="came back"),
        pytest.param(
            replace(BACK, tell_at=at(1003)),
            TOLD,
            OTHER,
            Quiet(),
            Decision(R.CHANGED, R.NOT_DUE_GROUP_WAIT),
            id="came back just now",
        ),
        pytest.param(
            BACK, TOLD, OTHER, Quiet(flapping=True), Decision(R.CHANGED, R.NOT_DUE_FLAPPING), id="came back too often"
        ),
        pytest.param(
            INCIDENT,
            replace(TOLD, loud_at=NOW - SETTINGS.repeat_interval),
            SAME,
            Quiet(),
            Decision(R.REPEAT_INTERVAL_ELAPSED),
            id="reminder, on the dot",
        ),
        pytest.param(
            INCIDENT,
            replace(TOLD, loud_at=NOW - SETTINGS.repeat_interval + timedelta(seconds=1)),
            SAME,
            Quiet(),
            Decision(R.NOT_DUE_NOTHING_NEW),
            id="reminder, a second early",
        ),
        pytest.param(ENDED, TOLD, OTHER, Quiet(), Decision(R.RESOLVED), id="ended"),
        pytest.param(ENDED, TOLD, OTHER, Quiet(silence=True), Decision(R.RESOLVED), id="a silence hides no end"),
        pytest.param(ENDED, TOLD, SAME, Quiet(), Decision(R.NOT_DUE_NOTHING_NEW), id="the end was told"),
        pytest.param(
            INCIDENT, replace(TOLD, refused_at=at(900)), OTHER, Quiet(), Decision(R.NOT_DUE_REFUSED), id="refused"
        ),
        pytest.param(
            INCIDENT,
            replace(TOLD, refused_at=at(700)),
            OTHER,
            Quiet(),
            Decision(R.FIRST_FIRING),
            id="refused, never shown: again",
        ),
        pytest.param(
            INCIDENT,
            replace(TOLD, refused_at=at(700), reference="C1/1", content=""),
            SAME,
            Quiet(),
            Decision(R.CHANGED),
            id="an edit was refused: edited again",
        ),
        pytest.param(
            ENDED,
            replace(TOLD, refused_at=at(700)),
            OTHER,
            Quiet(),
            Decision(R.NOT_DUE_NEVER_TOLD),
            id="refused, never shown, ended",
        ),
    ],
)
def test_notify_reason(incident: Incident, told: Told | None, shown: Shown, quiet: Quiet, expected: Decision) -> None:
    """One situation, one decision."""
    causes = [Loud("a", Severity.WARNING)]
    assert notify_reason(incident, told, lambda: shown, causes, quiet, NOW, SETTINGS) == expected


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        pytest.param([Loud("a", Severity.CRITICAL)], R.NOT_DUE_NOTHING_NEW, id="what was told"),
        pytest.param([Loud("b", Severity.WARNING)], R.NEW_CAUSE, id="something else is left"),
        pytest.param([Loud("b", Severity.INFO)], R.NOT_DUE_NOTHING_NEW, id="which only informs"),
        pytest.param(
            [Loud("a", Severity.WARNING), Loud("b", Severity.WARNING)],
            R.NOT_DUE_NOTHING_NEW,
            id="a further rule about what was told",
        ),
        pytest.param(
            [Loud("a", Severity.WARNING, holds=False), Loud("b", Severity.WARNING)],
            R.NOT_DUE_NOTHING_NEW,
            id="what was told fires on for a while",
        ),
        pytest.param([Loud("b", Severity.WARNING, holds=False)], R.NOT_DUE_NOTHING_NEW, id="what is left ends too"),
    ],
)
def test_a_new_cause_is_told_anew(causes: list[Loud], expected: NotifyReason) -> None:
    """Not a rule is a cause, but what is broken: nothing of what was told fires, and the incident goes on."""
    found = notify_reason(INCIDENT, TOLD, lambda: SAME, causes, Quiet(), NOW, SETTINGS)
    assert found.reason is expected


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        pytest.param([0], False, id="once"),
        pytest.param([900, 600, 300], False, id="as often as the limit"),
        pytest.param([900, 600, 300, 0], True, id="once more"),
        pytest.param([3700, 3650, 300, 0], False, id="not within the hour"),
        pytest.param([1500, 1200, 900, 601], False, id="and it has stayed open since"),
    ],
)
def test_flapping(ago: list[float], expected: bool) -> None:
    """More openings than the limit within the window, the last one not long ago."""
    openings = [NOW - timedelta(seconds=seconds) for seconds in ago]
    assert is_flapping(openings, NOW, SETTINGS) is expected


@pytest.mark.parametrize("reason", list(NotifyReason))
def test_reasons_that_post_are_due(reason: NotifyReason) -> None:
    """What is posted anew is sent; what is not due is neither."""
    assert not (reason.is_loud and not reason.is_due)
    assert reason.is_due is not reason.value.startswith("not_due")


def test_the_desk_is_woken_when_time_alone_decides() -> None:
    """Group wait, edit interval, reminder and retry each name their moment; an ended incident none."""
    waiting = replace(INCIDENT, tell_at=at(1003))
    assert next_look(waiting, None, NOW, SETTINGS) == at(1003)
    assert next_look(INCIDENT, replace(TOLD, at=at(999.5)), NOW, SETTINGS) == at(1000.5)
    assert next_look(replace(INCIDENT, openings=()), TOLD, NOW, SETTINGS) == at(5) + SETTINGS.repeat_interval
    assert next_look(INCIDENT, replace(TOLD, refused_at=at(900)), NOW, SETTINGS) == at(1200)
    assert next_look(ENDED, TOLD, NOW, SETTINGS) is None
