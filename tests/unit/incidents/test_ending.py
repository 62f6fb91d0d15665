"""An alert that is kept firing although it is not true any more: pods that are made anew do that for a moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest
from msgspec.structs import replace

from sevenhop.core.alerts.alert import Alert
from sevenhop.core.effects import Role
from sevenhop.core.inventory.capacity import Change
from sevenhop.core.subject import Hop
from tests.unit.incidents.scene import SHORT, SHORTAGE, Scene, alert, at, component, context, fires

DECODE = component()
BROKEN = {Hop.SCHEDULING: ["decode-1"]}


@dataclass
class Told:
    scene: Scene
    alert: Alert


@pytest.fixture
def told() -> Told:
    """An incident that was told, with its diagnosis."""
    scene = Scene()
    scene.contexts[DECODE] = context(DECODE, BROKEN, diagnosis=SHORTAGE, ready=3, desired=4)
    firing = alert(SHORT, DECODE)
    scene.step(0, fires(firing))
    assert len(scene.until(10)) == 1
    return Told(scene, firing)


def _stops_being_true(told: Told, seconds: float) -> None:
    told.scene.contexts[DECODE] = context(DECODE, {}, ready=3, desired=4)
    told.scene.step(seconds, fires(replace(told.alert, false_since=at(seconds)), again=True))


def test_a_moment_without_the_pod_changes_nothing(told: Told) -> None:
    """What was written still stands while it may come back; nobody reads that nothing is known."""
    _stops_being_true(told, 20)
    told.scene.until(25)
    told.scene.contexts[DECODE] = context(DECODE, BROKEN, diagnosis=SHORTAGE, ready=3, desired=4)
    told.scene.step(26, fires(told.alert, again=True))
    assert len(told.scene.sent) == 1


def test_what_stays_untrue_is_said_to_end(told: Told) -> None:
    """After the grace the message says so, keeps its diagnosis, and is edited once."""
    _stops_being_true(told, 20)
    sent = told.scene.until(30 + 25)
    (edit,) = sent
    assert edit.message.at == at(30)
    assert [line.text for line in edit.message.lines if line.label == "Ending"]
    assert any(line.role is Role.WHY and "needs 2 GPUs" in line.text for line in edit.message.lines)


def test_what_changed_before_survives_our_restart() -> None:
    """A new process has not seen what changed before it began; what was written of it stays true."""
    scene = Scene()
    change = Change(
        at=at(-60), kind="Deployment", namespace="prod", name="decode", what="image", before="v1", after="v2"
    )
    seen = context(DECODE, BROKEN, diagnosis=SHORTAGE, ready=3, desired=4, changes=(change,))
    scene.contexts[DECODE] = seen
    firing = alert(SHORT, DECODE)
    scene.step(0, fires(firing))
    scene.until(10)
    scene.restart()
    scene.contexts[DECODE] = replace(seen, changes=())
    scene.step(60, fires(replace(firing, labels={**firing.labels, "owner": "@somebody"}), again=True))
    (edit,) = scene.until(60 + timedelta(minutes=3).total_seconds()) or scene.sent[-1:]
    assert any(line.role is Role.CHANGED and "v1" in line.text for line in edit.message.lines)
