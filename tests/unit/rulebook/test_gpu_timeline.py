"""Rule tests that GPU agents tell: what a story may say, and that it goes through the inventory."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sevenhop.core.events import GpusSampled, XidSeen
from sevenhop.core.facts.table import FACTS
from sevenhop.rulebook.gpu_timeline import GpuMoment, GpuWorld, events_of
from sevenhop.rulebook.load import load_texts
from sevenhop.rulebook.testing import START, run_test_texts

RULE = """
id: lost
status: experimental
subject: gpu
expr: "!gpu.present"
for: 30s
keep_firing_for: 1m
severity: warning
annotations: {summary: "{{ node }}"}
description: A GPU is gone, and whatever used it until now fails.
false_positives: [none]
triage: Look.
"""


def run(tests: str) -> list[str]:
    """What is wrong with a test file; empty if all of it passes."""
    book = load_texts({"rules/gpu/lost.yaml": RULE}, FACTS)
    assert not book.problems
    report = run_test_texts(book, {"rules/gpu/lost.test.yaml": f"rule: lost\ntests:\n{tests}"}, FACTS)
    return [p.message for p in (*report.problems, *(f for r in report.results for f in r.failures))]


def test_a_story_of_samples() -> None:
    """
    It fires at the exact second, and is blind while the agent is silent.
    """
    assert not run(
        """
  - name: gone, then silent
    gpus: {gpus: 2}
    samples:
      - {at: 20s, gpus: [0], gone: true}
      - {at: 1m, silent: true}
    expect:
      - {at: 49s, state: pending}
      - {at: 50s, state: firing, notify: fires}
      - {at: 3m, state: firing, unknown: [gpu.present]}
"""
    )


def test_a_story_that_ends_otherwise_says_so() -> None:
    """
    With the second and what was expected.
    """
    (said,) = run("  - {name: x, gpus: {}, samples: [{at: 5s, gone: true}], expect: [{at: 35s, state: inactive}]}\n")

    assert "at 35s" in said
    assert "expected inactive, is firing" in said


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{name: x, expect: [{at: 1s, state: inactive}]}", "either `facts` or `gpus`"),
        ("{name: x, facts: [{at: 0s}], gpus: {}, expect: [{at: 1s, state: inactive}]}", "either `facts` or `gpus`"),
        (
            "{name: x, facts: [{at: 0s}], samples: [{at: 1s, gone: true}], expect: [{at: 1s, state: inactive}]}",
            "`samples` need `gpus`",
        ),
        (
            "{name: x, gpus: {}, samples: [{at: 1s, read: {temprature_c: 3}}], expect: [{at: 1s, state: inactive}]}",
            "a reading has no temprature_c",
        ),
        (
            "{name: x, gpus: {}, samples: [{at: 1s, read: {throttle: warm}}], expect: [{at: 1s, state: inactive}]}",
            "warm",
        ),
        (
            "{name: x, gpus: {}, samples: [{at: 1s, node: node-9, gone: true}], expect: [{at: 1s, state: inactive}]}",
            "there is no node-9",
        ),
        (
            "{name: x, gpus: {gpus: 2}, samples: [{at: 1s, gpus: [5]}], expect: [{at: 1s, state: inactive}]}",
            "has no GPU 5",
        ),
        (
            "{name: x, gpus: {}, samples: [{at: 2s}, {at: 1s}], expect: [{at: 1s, state: inactive}]}",
            "times should go forward",
        ),
    ],
    ids=["neither", "both", "no world", "no field", "no value", "no node", "no GPU", "backwards"],
)
def test_what_is_written_wrongly_is_named(written: str, expected: str) -> None:
    """
    At load, with what is there instead.
    """
    (said,) = run(f"  - {written}\n")

    assert expected in said


def test_agents_speak_every_fifteen_seconds_and_at_once_of_what_changes() -> None:
    """
    A silent one says nothing, and an XID is not held back.
    """
    moments = [
        GpuMoment(at=timedelta(seconds=20), gpus=[1], xid=79),
        GpuMoment(at=timedelta(seconds=35), silent=True),
    ]
    events = list(events_of(GpuWorld(gpus=2), moments, START, timedelta(seconds=60)))

    samples = [(e.at - START).total_seconds() for e in events if isinstance(e, GpusSampled)]
    xids = [(e.at - START).total_seconds() for e in events if isinstance(e, XidSeen)]
    assert samples == [0, 15, 20, 30]
    assert xids == [20]
