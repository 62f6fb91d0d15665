"""A hundred rules: the shipped ones, and generated ones over the facts that change most."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sevenhop.core.facts.schema import FactSpec, FactType
from sevenhop.core.facts.table import FACTS, facts_of
from sevenhop.core.subject import SubjectKind
from sevenhop.rulebook.load import Rulebook, load_rulebook
from sevenhop.rulebook.shipped import shipped_rules

_SUBJECTS = (SubjectKind.COMPONENT, SubjectKind.POD, SubjectKind.WORKLOAD, SubjectKind.POOL, SubjectKind.NODE)
_NEVER_TRUE = {
    FactType.BOOL: '{0} && workload == "no-such"',
    FactType.INT: "{0} > 1000000",
    FactType.DOUBLE: "{0} > 1000000.0",
    FactType.STRING: '{0} == "no-such-word"',
}
"""The cost of rules is measured, not that of alerts: the shipped rules fire enough of those."""


def rulebook_of(count: int) -> Rulebook:
    """
    The shipped rules, and generated ones up to `count` that are at work.

    Raises:
        ValueError: A generated rule is none; the problems are in the message.
    """
    with tempfile.TemporaryDirectory() as name:
        book = load_rulebook(write_rules(Path(name), count), FACTS)
    at_work = sum(rule.enabled for rule in book.rules)
    if book.problems or at_work != count:
        raise ValueError(f"{at_work} rules: " + "; ".join(map(str, book.problems)))
    return book


def write_rules(folder: Path, count: int) -> list[Path]:
    """Generated rules that make `count` at work with the shipped ones; where all of them are, for the settings."""
    shipped, place = shipped_rules(), folder / "self"
    known = sum(rule.enabled for rule in load_rulebook([shipped], FACTS).rules)
    place.mkdir()
    for number, (subject, expr) in zip(range(count - known), _expressions(), strict=False):
        (place / f"generated-{number:03}.yaml").write_text(_rule(f"generated-{number:03}", subject, expr))
    return [shipped, place]


def _expressions() -> Iterator[tuple[SubjectKind, str]]:
    """Two facts of one subject each, the subjects in turn, without end in practice."""
    for distance in range(1, 40):
        for position in range(40):
            for subject in _SUBJECTS:
                facts = [spec for spec in facts_of(subject).values() if spec.type in _NEVER_TRUE]
                if position + distance < len(facts):
                    yield subject, f"{_condition(facts[position])} && {_condition(facts[position + distance])}"


def _condition(spec: FactSpec) -> str:
    if spec.values:
        return f'{spec.name} == "{spec.values[-1]}" && workload == "no-such"'
    return _NEVER_TRUE[spec.type].format(spec.name)


def _rule(rule_id: str, subject: SubjectKind, expr: str) -> str:
    return json.dumps(
        {
            "id": rule_id,
            "status": "experimental",
            "subject": str(subject),
            "expr": expr,
            "for": "1m",
            "severity": "warning",
            "annotations": {"summary": "{{ workload }}"},
            "description": "Generated for the benchmark: reads two facts of its subject.",
            "false_positives": ["none"],
            "triage": "none",
        }
    )
