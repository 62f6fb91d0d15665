"""Severity, texts, explanations, and what would arm a rule."""

from __future__ import annotations

import pytest

from sevenhop.core.alerts.book import AlertBook
from sevenhop.core.alerts.explain import explain
from sevenhop.core.alerts.inert import inert
from sevenhop.core.alerts.render import is_well_formed, render
from sevenhop.core.alerts.rule import Severity, SeverityPolicy, Verdict
from sevenhop.core.alerts.severity import severity_of
from sevenhop.core.facts.schema import Facts, FactSpec, FactType, FactValue, Unknown
from sevenhop.core.subject import SubjectKind
from tests.unit.alerts.rules_for_tests import STALE, at, rule, subject

A = subject("a")


@pytest.mark.parametrize(
    ("tier", "ready", "minimum", "expected"),
    [
        pytest.param("critical", 3, 4, Severity.CRITICAL, id="critical, below its minimum"),
        pytest.param("critical", 4, 4, Severity.WARNING, id="critical, at its minimum"),
        pytest.param("critical", 5, 4, Severity.WARNING, id="critical, above its minimum"),
        pytest.param("critical", 0, 0, Severity.CRITICAL, id="a minimum of 0 is no promise"),
        pytest.param("critical", STALE, 4, Severity.CRITICAL, id="ready unknown"),
        pytest.param("critical", 4, STALE, Severity.CRITICAL, id="minimum unknown"),
        pytest.param("standard", 0, 4, Severity.WARNING, id="standard"),
        pytest.param("batch", 0, 4, Severity.WARNING, id="batch"),
        pytest.param("", 0, 4, Severity.WARNING, id="no tier"),
    ],
)
def test_severity_by_tier(
    tier: str, ready: FactValue | Unknown, minimum: FactValue | Unknown, expected: Severity
) -> None:
    """
    The critical tier pages, others warn; a component known to be at its minimum only warns.
    """
    facts: Facts = {"component.ready": ready, "component.min": minimum}

    assert severity_of(rule(), {"tier": tier}, facts) is expected


@pytest.mark.parametrize("policy", [SeverityPolicy.INFO, SeverityPolicy.WARNING, SeverityPolicy.CRITICAL])
def test_a_fixed_severity_does_not_ask(policy: SeverityPolicy) -> None:
    """
    Tier and minimum say nothing where the rule does.
    """
    facts: Facts = {"component.ready": 9, "component.min": 1}

    assert severity_of(rule(severity=policy), {"tier": "critical"}, facts) is Severity(policy.value)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        pytest.param("{{ workload }}/{{component}}", "llm/a", id="labels"),
        pytest.param("{{ component.ready }} of {{ component.min }}", "3 of unknown (stale: Pod)", id="unknown"),
        pytest.param("{{ nothing }}", "unknown", id="no such value"),
        pytest.param("{{ owner }}", "none", id="empty label"),
        pytest.param("{{ component.ratio }}", "0.333", id="ratio"),
    ],
)
def test_render(template: str, text: str) -> None:
    """
    Labels and facts are filled in; unknown reads as unknown, with its reason.
    """
    labels = {"workload": "llm", "component": "a", "owner": ""}
    values: Facts = {"component.ready": 3, "component.min": STALE, "component.ratio": 1 / 3}

    assert render(template, labels, values) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(0, "0 pods of 0 policies", id="none"),
        pytest.param(1, "1 pod of 1 policy", id="one"),
        pytest.param(3, "3 pods of 3 policies", id="many"),
        pytest.param(STALE, "an unknown number of pods of an unknown number of policies", id="unknown"),
        pytest.param(True, "an unknown number of pods of an unknown number of policies", id="no number"),
    ],
)
def test_a_count_agrees_with_its_noun(value: FactValue | Unknown, text: str) -> None:
    """
    One and many read right, and what cannot be counted is not given a number.
    """
    template = "{{ count(component.failing, 'pod') }} of {{count( component.failing , 'policy' )}}"

    assert render(template, {}, {"component.failing": value}) == text


def test_a_count_may_name_its_plural() -> None:
    """
    Where the rules of English do not make it.
    """
    assert render("{{ count(n, 'man', 'men') }}, {{ count(m, 'man', 'men') }}", {}, {"n": 2, "m": 1}) == "2 men, 1 man"


def test_text_from_the_cluster_is_no_template() -> None:
    """
    What is filled in is not filled again.
    """
    assert render("{{ a }} {{ b }}", {"a": "{{ b }}", "b": "secret"}, {}) == "{{ b }} secret"
    assert render("{{ a }}", {"a": "{{ count(n, 'pod') }}"}, {"n": 3}) == "{{ count(n, 'pod') }}"


@pytest.mark.parametrize(("template", "ok"), [("{{ a }}", True), ("{{ a }", False), ("a }}", False), ("{ a }", True)])
def test_well_formed(template: str, ok: bool) -> None:
    """
    Every pair of braces is closed.
    """
    assert is_well_formed(template) is ok


GPU = FactSpec(name="gpu.xid", subject=SubjectKind.GPU, type=FactType.INT, doc="", source="gpu agent")


@pytest.mark.parametrize(
    ("needs", "available", "expected"),
    [
        pytest.param([{"gpu.xid"}], {"node.ready"}, "needs gpu.xid (gpu agent)", id="source named"),
        pytest.param([{"gpu.xid"}, {"node.ready"}], {"node.ready"}, "", id="one way is enough"),
        pytest.param([{"gpu.xid", "a"}, {"b"}], set(), "needs a and gpu.xid (gpu agent), or b", id="both ways"),
        pytest.param([], set(), "", id="needs nothing"),
    ],
)
def test_inert(needs: list[set[str]], available: set[str], expected: str) -> None:
    """
    A rule is inert while none of the sets of facts that could make it true is there; it says what would arm it.
    """
    r = rule(needs=tuple(frozenset(way) for way in needs))

    assert inert(r, available, {"gpu.xid": GPU}) == expected


@pytest.mark.parametrize(
    ("bad", "more", "seconds", "says"),
    [
        pytest.param(False, {}, 0, "the condition does not hold", id="false"),
        pytest.param(True, {}, 55, "true since 12:00:00: 55s of for: 2m", id="pending"),
        pytest.param(True, {}, 130, "firing since 12:02:00", id="firing"),
        pytest.param(STALE, {}, 0, "cannot be decided: component.bad is unknown (stale: Pod)", id="blind"),
        pytest.param("broken", {}, 0, "the rule is broken, its state is frozen: division by zero", id="broken"),
        pytest.param(False, {"node.maintenance": True}, 0, "dropped while node.maintenance", id="dropped"),
    ],
)
def test_explain(bad: FactValue | Unknown, more: Facts, seconds: float, says: str) -> None:
    """
    One sentence says why an alert is as it is, in each of its situations.
    """
    r = rule(hold=120, drops=("node.maintenance",))
    facts: Facts = {"component.bad": bad, **more}
    b = AlertBook([r], "prod")
    b.evaluate({A: facts}, (), at(0))
    b.tick(at(seconds))

    explained = explain(r, A, b.alert("r", A), facts, at(seconds))

    assert says in explained.why
    assert dict(explained.facts)["component.bad"]


def test_explain_names_blind_time() -> None:
    """
    Seconds that did not count are told.
    """
    r = rule(hold=120)
    b = AlertBook([r], "prod")
    for seconds, bad in ((0, True), (10, STALE), (50, True)):
        b.evaluate({A: {"component.bad": bad}}, (), at(seconds))

    explained = explain(r, A, b.alert("r", A), {"component.bad": True}, at(60))

    assert "20s of for: 2m, 40s blind not counted" in explained.why
    assert explained.due == at(160)


def test_explain_writes_times_as_rules_do() -> None:
    """
    Whole seconds, and days as days: what is said of a rule can be found in its file.
    """
    r = rule(hold=36 * 3600)
    b = AlertBook([r], "prod")
    b.evaluate({A: {"component.bad": True}}, (), at(0))

    explained = explain(r, A, b.alert("r", A), {"component.bad": True}, at(90_000.4))

    assert "1d1h of for: 1d12h" in explained.why


def test_explain_of_a_subject_that_is_not_there() -> None:
    """
    No guess about what is not known.
    """
    explained = explain(rule(), A, None, None, at(0))

    assert explained.verdict is Verdict.UNKNOWN
    assert "not in the inventory" in explained.why
