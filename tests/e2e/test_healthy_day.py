"""Healthy changes on a real control plane, recorded with `sevenhop record` and run through the shipped rules."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sevenhop.app import build_rulebook
from sevenhop.core.events import Applied, Deleted, Event
from sevenhop.rulebook.load import Rulebook
from sevenhop.settings import Settings
from sevenhop.sources.recording import Recording
from tests.e2e.healthy_changes import begin, one_round
from tests.e2e.rules import hurried_rules, patient_rules
from tests.e2e.scenes import scene
from tests.e2e.service import sevenhop
from tests.golden.day_faults import FAULTS, events_of, lasts
from tests.golden.firing import COMPANIONS, fired
from tests.golden.healthy_day import with_fault
from tests.shared import ROOT
from tests.testbed.cluster import Cluster
from tests.testbed.waiting import eventually

LENGTH_S = 600 if os.environ.get("SEVENHOP_ROUNDS") == "soak" else 30
"""At least so long changes go on; a round that has begun is brought to its end."""

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(LENGTH_S + 900)]

HURRY = "15s"
"""With this `for:` instead of minutes, everything that a healthy change passes through is over in time."""


@pytest.fixture(scope="module")
def recording(testbed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    What `sevenhop record` wrote while models were scaled, rolled out, drained, queued, and put to zero and back.

    ``SEVENHOP_HEALTHY`` names a recording to take instead of a new one.
    """
    kept = os.environ.get("SEVENHOP_HEALTHY")
    if kept:
        return Path(kept)
    path = tmp_path_factory.mktemp("recording") / "healthy.sevenhop.gz"
    command = [sys.executable, "-m", "sevenhop.cli.main", "record", str(path)]
    command += ["--kubeconfig", str(testbed.kubeconfig())]
    with scene(testbed) as here:
        begin(here)
        recorder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            eventually(path.exists, what="the recording")
            until = time.monotonic() + LENGTH_S
            rounds = 0
            while not rounds or time.monotonic() < until:
                one_round(here, rounds)
                rounds += 1
        finally:
            recorder.send_signal(signal.SIGTERM)
            out, err = recorder.communicate(timeout=20)
        print(f"{rounds} rounds of healthy changes; {out.strip()}")
        assert recorder.returncode == 0, err
    return path


@pytest.fixture(scope="module")
def events(recording: Path) -> list[Event]:
    """All of the recording."""
    return list(Recording(recording))


@pytest.fixture(scope="module")
def rulebook() -> Rulebook:
    """The shipped rules."""
    return build_rulebook(Settings())


def _firing(recording: Path, *more: str) -> list[dict[str, Any]]:
    answer = sevenhop("replay", str(recording), "-o", "json", *more)
    assert answer.returncode == 0, answer.stderr
    return [row for row in json.loads(answer.stdout) if row["state"] == "firing"]


def test_the_recording_has_seen_it(events: list[Event]) -> None:
    """Otherwise silence would prove nothing: pods waited, were gated, loaded and were replaced, and a node left."""
    pods = [event.obj for event in events if isinstance(event, Applied) and event.kind == "Pod"]
    names = {pod.metadata.name for pod in pods}
    span = events[-1].at - events[0].at
    print(f"{len(events)} events in {span.total_seconds():.0f} s, {len(names)} pods, {len(pods)} changes of them")
    assert len(names) > 12
    assert any(pod.spec.scheduling_gates for pod in pods)  # type: ignore[attr-defined]
    assert any(isinstance(event, Deleted) and event.kind == "Node" for event in events)
    assert span.total_seconds() >= LENGTH_S or os.environ.get("SEVENHOP_HEALTHY")


def test_nothing_fires(recording: Path) -> None:
    """With the shipped rules."""
    assert _firing(recording) == []


def test_nothing_fires_even_in_a_hurry(recording: Path, tmp_path: Path) -> None:
    """Nor if every rule waits for seconds instead of minutes: what healthy changes show is soon over."""
    rules = hurried_rules(tmp_path, dict.fromkeys(patient_rules(), HURRY))
    assert _firing(recording, "--rules", str(rules)) == []


@pytest.mark.parametrize("rule", sorted(FAULTS))
def test_one_fault_fires_its_rule_and_no_other(rule: str, events: list[Event], rulebook: Rulebook) -> None:
    """The same recording with one fault in the middle of it: exactly the rule about it."""
    middle = events[0].at + (events[-1].at - events[0].at) / 2
    hold = next(known.hold for known in rulebook.rules if known.id == rule)
    until = lasts(hold, middle)
    rules, told = fired(with_fault(events, events_of(rule, middle), until=until), rulebook, until)
    assert set(rules) - COMPANIONS.get(rule, set()) == {rule}, "\n".join(told)
