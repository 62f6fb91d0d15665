"""Which names the rules of a subject may use: its own facts, the labels, and `known.<fact>`."""

from __future__ import annotations

from collections.abc import Mapping

from sevenhop.core.facts.schema import LABELS, FactSpec
from sevenhop.core.subject import SubjectKind

KNOWN = "known."
"""Prefix of the Boolean that says whether a fact is known; itself never unknown."""


def visible_facts(facts: Mapping[str, FactSpec], subject: SubjectKind) -> dict[str, FactSpec]:
    """
    Facts that a rule of this subject may read: the subject's own.

    A neighbour's facts (a component's pool) would make one change of the neighbour re-evaluate all of them; what a
    rule needs from there is a fact of its own subject.
    """
    return {name: spec for name, spec in facts.items() if spec.subject is subject}


def where_else(name: str, facts: Mapping[str, FactSpec], subject: SubjectKind) -> str:
    """Why a fact that exists may not be read here; empty for a name that is no fact."""
    spec = facts.get(name)
    if spec is None or name in visible_facts(facts, subject):
        return ""
    return f"{name} is a fact of the subject {spec.subject}, and this rule's subject is {subject}"


def all_names(facts: Mapping[str, FactSpec], subject: SubjectKind) -> list[str]:
    """Facts, then labels; what a template may name too."""
    return [*visible_facts(facts, subject), *LABELS]
