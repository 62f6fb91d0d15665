"""What every shipped rule must be; a new rule is found by itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sevenhop.core.alerts.render import render as text_of
from sevenhop.core.alerts.rule import Rule, Verdict
from sevenhop.core.facts.schema import Facts, FactType, Unknown, UnknownReason
from sevenhop.core.facts.table import FACTS
from sevenhop.core.hops.causes import CAUSES
from sevenhop.core.subject import SubjectKind
from sevenhop.rulebook import facts_docs
from sevenhop.rulebook.docs import render
from sevenhop.rulebook.load import load_rulebook
from sevenhop.rulebook.shipped import shipped_rules
from sevenhop.rulebook.testing import TestResult, run_tests

BOOK = load_rulebook([shipped_rules()], FACTS)
REPORT = run_tests(BOOK, [shipped_rules()], FACTS)


def test_the_shipped_rulebook_has_no_problem() -> None:
    """
    Rules and their tests load; each stable rule has its complete timelines.
    """
    assert [str(p) for p in (*BOOK.problems, *REPORT.problems)] == []
    assert BOOK.rules


@pytest.mark.parametrize("result", REPORT.results, ids=lambda r: f"{r.rule_id}: {r.name}")
def test_timeline(result: TestResult) -> None:
    """
    Each story goes as told.
    """
    assert [str(f) for f in result.failures] == []


@pytest.mark.parametrize("rule", BOOK.rules, ids=lambda r: r.id)
def test_texts_read_right_for_one_and_for_many(rule: Rule) -> None:
    """
    With every number 1 no noun is in the plural, and no text leaves the choice to its reader.
    """
    ones: Facts = {name: 1 for name, spec in FACTS.items() if spec.type is FactType.INT}
    for template in rule.annotations.values():
        text = text_of(template, {}, ones)
        assert re.search(r"(?<![\w.])1 (?:\w+ )?\w{2,}s\b", text) is None, text
        assert "(s)" not in text


@pytest.mark.parametrize("rule", BOOK.rules, ids=lambda r: r.id)
def test_blindness_neither_fires_nor_breaks(rule: Rule) -> None:
    """
    With every fact unknown a rule is unknown, and with every fact at rest it is quiet.
    """
    blind: Facts = dict.fromkeys(FACTS, Unknown(UnknownReason.NOT_SYNCED))

    assert rule.evaluate(blind).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("rule", BOOK.rules, ids=lambda r: r.id)
def test_drops_maintenance_and_intended_zero(rule: Rule) -> None:
    """
    What somebody does on purpose is not alerted; the one exception says why in its file.
    """
    expected = {SubjectKind.NODE: ("node.maintenance",), SubjectKind.COMPONENT: ("component.intended_zero",)}
    if rule.id == "queue-never-admits":  # a queue's wait is an intended zero, and this rule is about queues
        assert rule.drops == ()
        return

    assert rule.drops == expected.get(rule.subject, ())


@pytest.mark.parametrize("rule", [r for r in BOOK.rules if ".cause" in r.expr], ids=lambda r: r.id)
def test_causes_exist(rule: Rule) -> None:
    """
    A cause that a rule compares with is a published slug: a misspelt one would never match.
    """
    compared = re.findall(r"\.cause (?:in \[([^\]]*)\]|[!=]= (\"[^\"]*\"))", rule.expr)
    slugs = {slug for pair in compared for text in pair for slug in re.findall(r'"([^"]+)"', text)}

    assert slugs
    assert slugs <= set(CAUSES)


def test_ids_are_unique_to_their_files() -> None:
    """
    Every YAML file below the rules is a rule or the test of one.
    """
    files = {path.name.removesuffix(".test.yaml").removesuffix(".yaml") for path in Path(shipped_rules()).rglob("*.*")}

    assert files == {rule.id for rule in BOOK.rules}


def test_the_reference_names_every_rule_and_fact() -> None:
    """
    The pages are rendered from what is loaded.
    """
    rules_page, facts_page = render(BOOK.rules), facts_docs.render(FACTS)

    assert [r.id for r in BOOK.rules if f"### {r.id}\n" not in rules_page] == []
    assert [name for name in FACTS if f"| `{name}` |" not in facts_page] == []


def test_facts_at_rest_have_their_type() -> None:
    """
    A fact's not-applicable value is of its type: a rule would break on it otherwise.
    """
    types = {FactType.BOOL: bool, FactType.INT: int, FactType.DOUBLE: float, FactType.STRING: str}

    wrong = [
        name
        for name, spec in FACTS.items()
        if spec.not_applicable is not None and type(spec.not_applicable) is not types.get(spec.type)
    ]

    assert wrong == []
