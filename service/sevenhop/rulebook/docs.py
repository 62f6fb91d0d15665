"""docs/reference/rules.md, rendered from the rules."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.subject import HOPS
from sevenhop.rulebook.load import effective_expr
from sevenhop.rulebook.schema import RuleFile, format_duration

_HEAD = """# Rules

Rendered from `rules/` by `sevenhop rules docs`; change a rule's file, not this page.

A rule is true of what is bad. It is evaluated when a fact that it reads changes, fires when it has been true for `for`,
and resolves when it has been false for `keep_firing_for`. A fact that cannot be observed is *unknown*: the rule then
neither fires nor resolves. *Experimental* rules may change; those whose facts no source provides are inert, and
`sevenhop doctor` says what would arm them.
"""


def render(rules: Iterable[Rule]) -> str:
    """The page: the fields of a rule's file, an overview, then each rule by hop."""
    rules = list(rules)
    parts = [_HEAD, _fields(), _overview(rules)]
    for hop in (*HOPS, None):
        of_hop = sorted((r for r in rules if r.hop is hop), key=lambda r: r.id)
        if of_hop:
            parts.append(f"## {hop or 'self'}\n")
            parts += [_rule(rule) for rule in of_hop]
    return "\n".join(parts)


def _fields() -> str:
    rows = ["## A rule's file\n", "| key | required | meaning |", "| --- | --- | --- |"]
    for name, field in RuleFile.model_fields.items():
        rows.append(f"| `{field.alias or name}` | {'yes' if field.is_required() else 'no'} | {field.description} |")
    return "\n".join(rows) + "\n"


def _overview(rules: Iterable[Rule]) -> str:
    rows = [
        "## Overview\n",
        "| rule | subject | status | severity | for | keep |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    order = {hop: i for i, hop in enumerate(HOPS)}
    for rule in sorted(rules, key=lambda r: (order.get(r.hop, len(order)) if r.hop else len(order), r.id)):
        place = f"{rule.hop or 'self'}/{rule.id}"
        hold, keep = format_duration(rule.hold), format_duration(rule.keep_firing)
        status = rule.status if rule.enabled else f"{rule.status}, off"
        rows.append(f"| [{place}](#{rule.id}) | {rule.subject} | {status} | {rule.severity} | {hold} | {keep} |")
    return "\n".join(rows) + "\n"


def _rule(rule: Rule) -> str:
    lines = [f"### {rule.id}\n", rule.description + "\n", "```", effective_expr(rule.expr, rule.drops), "```\n"]
    terms = [f"subject {rule.subject}", f"severity {rule.severity}", f"for {format_duration(rule.hold)}"]
    terms.append(f"keeps firing for {format_duration(rule.keep_firing)}")
    if rule.since:
        terms.append(f"`for` counts from `{rule.since}`")
    if rule.cause is not rule.subject:
        terms.append(f"its incident is about the {rule.cause}")
    if rule.playbook:
        terms.append(f"playbook `{rule.playbook}`")
    lines.append(_first_upper("; ".join(terms)) + ".\n")
    lines.append(f"Says: {_code(rule.annotations['summary'])}\n")
    lines.append("May be false:\n")
    lines += [f"- {text}" for text in rule.false_positives]
    lines += ["\nLook first:\n", rule.triage.strip() + "\n"]
    return "\n".join(lines)


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _code(text: str) -> str:
    return "`" + re.sub(r"`", "'", text) + "`"
