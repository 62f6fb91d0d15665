"""Timeline tests of rules: they find a wrong rule, and cannot be written so that they prove nothing."""

from __future__ import annotations

import pytest

from sevenhop.core.facts.table import FACTS
from sevenhop.rulebook.load import load_texts
from sevenhop.rulebook.testing import TestReport, run_test_texts

RULE = """\
id: too-few
status: stable
subject: component
expr: component.waiting > 0
for: 2m
keep_firing_for: 1m
severity: by_tier
annotations: {summary: "{{ workload }} waits"}
description: A part of a model has fewer replicas than it should have, for want of room.
false_positives: [A planned scale-up.]
triage: Look.
"""
TESTS = """\
rule: too-few
tests:
  - name: fires and resolves
    labels: &labels {workload: llm, component: decode, tier: critical}
    facts:
      - {at: 0s, set: {component.waiting: 1, component.intended_zero: false}}
      - {at: 5m, set: {component.waiting: 0}}
    expect:
      - {at: 1m59s, state: pending, notify: nothing}
      - {at: 2m, state: firing, notify: fires, severity: critical, summary: llm waits}
      - {at: 5m59s, state: firing, notify: nothing}
      - {at: 6m, state: inactive, notify: resolves}
  - name: a short wait is none
    labels: *labels
    facts:
      - {at: 0s, set: {component.waiting: 1, component.intended_zero: false}}
      - {at: 1m, set: {component.waiting: 0}}
    expect:
      - {at: 1h, state: inactive, notify: nothing}
"""


def report(tests: str = TESTS, rule: str = RULE, path: str = "rules/pod/too-few.test.yaml") -> TestReport:
    book = load_texts({"rules/pod/too-few.yaml": rule}, FACTS)
    assert not book.problems
    return run_test_texts(book, {path: tests} if tests else {}, FACTS)


def edited(old: str, new: str) -> str:
    assert old in TESTS
    return TESTS.replace(old, new, 1)


def test_a_right_rule_passes() -> None:
    """
    Both stories hold.
    """
    found = report()

    assert found.is_ok
    assert [(r.name, r.fired) for r in found.results] == [("fires and resolves", True), ("a short wait is none", False)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("> 0", "> 1", id="another threshold"),
        pytest.param("for: 2m", "for: 121s", id="a second later"),
        pytest.param("for: 2m", "for: 119s", id="a second sooner"),
        pytest.param("keep_firing_for: 1m", "keep_firing_for: 59s", id="resolves a second sooner"),
        pytest.param("keep_firing_for: 1m", "keep_firing_for: 61s", id="resolves a second later"),
        pytest.param("by_tier", "warning", id="another severity"),
        pytest.param("waits", "stands", id="another summary"),
        pytest.param("> 0", ">= 0", id="fires always"),
    ],
)
def test_a_wrong_rule_fails(old: str, new: str) -> None:
    """
    Each part of a rule that a timeline speaks of is seen to be wrong by it.
    """
    found = report(rule=RULE.replace(old, new, 1))

    assert any(result.failures for result in found.results)


def test_a_failure_has_its_place_and_both_sides() -> None:
    """
    The line of the expectation, what was expected, and what was.
    """
    found = report(edited("{at: 2m, state: firing", "{at: 2m, state: pending"))

    assert [str(f) for r in found.results for f in r.failures] == [
        "rules/pod/too-few.test.yaml:10: test-failed fires and resolves: at 2m expected pending, is firing"
    ]


QUIET = TESTS[TESTS.index("  - name: a short") :]
LATER = QUIET.replace("at: 1m, set", "at: 10m, set").replace("at: 1h, state: inactive", "at: 1m, state: pending")


@pytest.mark.parametrize(
    ("old", "new", "code", "says"),
    [
        pytest.param(TESTS, "", "test-missing", "needs too-few.test.yaml", id="no test at all"),
        pytest.param(TESTS, "rule: too-few\ntests: []\n", "test-bad-value", "tests", id="no story"),
        pytest.param(": too-few", ": too-fw", "test-unknown-rule", "mean too-few?", id="unknown rule"),
        pytest.param("waiting: 1", "wating: 1", "test-unknown-name", "mean component.waiting?", id="unknown fact"),
        pytest.param("workload", "workloud", "test-unknown-name", "mean workload?", id="unknown label"),
        pytest.param("waiting: 1", "waiting: one", "test-wrong-value", "is an int, got 'one'", id="wrong type"),
        pytest.param("waiting: 1", "waiting: true", "test-wrong-value", "is an int, got True", id="no number"),
        pytest.param("{component.waiting: 0}", "{component.x: 0}", "test-unknown-name", "component.x", id="at the end"),
        pytest.param(
            "set: {component.waiting: 0}", "unknown: {component.x: stale}", "test-unknown-name", "x", id="blind"
        ),
        pytest.param("set: {component.waiting: 0}", "unknown: {a: tired}", "test-bad-value", "stale", id="no reason"),
        pytest.param("notify: fires", "notify: fire", "test-bad-value", "did you mean fires?", id="no such news"),
        pytest.param("state: firing, n", "stat: firing, n", "test-unknown-key", "mean state?", id="misspelt key"),
        pytest.param("at: 5m, set", "at: 5, set", "test-bad-value", "such as 90s", id="no unit"),
        pytest.param("at: 1m59s", "at: 3m", "test-bad-value", "times should go forward", id="not in order"),
        pytest.param("at: 1m59s", "at: 1m58s", "test-incomplete", "one that fires", id="not the second of firing"),
        pytest.param(", notify: fires", "", "test-incomplete", "one that fires", id="firing is not heard"),
        pytest.param("at: 5m59s", "at: 5m58s", "test-incomplete", "one that resolves", id="not the second of the end"),
        pytest.param(QUIET, "", "test-incomplete", "one that stays quiet", id="none stays quiet"),
        pytest.param("at: 1m, set", "at: 10m, set", "test-incomplete", "stays quiet", id="the quiet one fires"),
        pytest.param(QUIET, LATER, "test-incomplete", "stays quiet", id="the quiet one fires when nobody looks"),
    ],
)
def test_a_test_that_proves_nothing_is_refused(old: str, new: str, code: str, says: str) -> None:
    """
    Unknown names are errors, and a stable rule's stories are complete.
    """
    found = report(edited(old, new))

    assert [p for p in found.problems if p.code == code and says in p.message], found.problems
    assert not found.is_ok


def test_a_test_file_is_named_after_its_rule() -> None:
    """
    Else it would not be found beside it.
    """
    found = report(path="rules/pod/other.test.yaml")

    assert [p.code for p in found.problems] == ["test-file-name"]


def test_an_experimental_rule_needs_no_test() -> None:
    """
    What may still change need not be pinned.
    """
    assert report("", RULE.replace("stable", "experimental")).is_ok


def test_unknown_and_gone_in_a_story() -> None:
    """
    A story may blind a fact, say what is missing, and let the subject go.
    """
    story = """\
rule: too-few
tests:
  - name: blind, then gone
    facts:
      - {at: 0s, set: {component.waiting: 1, component.intended_zero: false}}
      - {at: 3m, unknown: {component.waiting: stale}}
      - {at: 9m, gone: true}
    expect:
      - {at: 2m, state: firing, unknown: []}
      - {at: 8m, state: firing, unknown: [component.waiting]}
      - {at: 9m, state: inactive, notify: resolves}
"""

    found = report(story, RULE.replace("stable", "experimental"))

    assert found.is_ok, found
