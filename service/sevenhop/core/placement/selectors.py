"""Label selectors and node selectors, as the API machinery reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from sevenhop.core.objects.base import LabelSelector, SelectorRequirement
from sevenhop.core.objects.pod import NodeSelector
from sevenhop.core.words import whole

Requirement = tuple[str, str, tuple[str, ...]]
"""(key, operator, values)"""


class Selector(msgspec.Struct, frozen=True, gc=False):
    """
    A label selector, compiled so that equal selectors are equal values.

    Attributes:
        equal: Labels that must have exactly these values, sorted.
        requirements: The other requirements, sorted.
        nothing: The selector was absent, which selects nothing; ``{}`` selects everything.
    """

    equal: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether it is ``{}``."""
        return not (self.equal or self.requirements or self.nothing)

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.nothing:
            return False
        for key, value in self.equal:
            if labels.get(key) != value:
                return False
        return all(meets(labels, requirement) for requirement in self.requirements)

    def names(self, key: str) -> bool:
        """Whether any part of it speaks of that label."""
        return any(k == key for k, _ in self.equal) or any(r[0] == key for r in self.requirements)

    def having(self, key: str, operator: str, value: str) -> Selector:
        """The same selector with one more requirement."""
        return Selector(self.equal, (*self.requirements, (key, operator, (value,))))


NOTHING = Selector(nothing=True)


def compile_selector(selector: LabelSelector | None) -> Selector:
    """None selects nothing, an empty selector everything."""
    if selector is None:
        return NOTHING
    equal = dict(selector.match_labels)
    requirements: list[Requirement] = []
    for each in selector.match_expressions:
        if each.operator == "In" and len(each.values) == 1 and each.key not in equal:
            equal[each.key] = each.values[0]
        else:
            requirements.append(_requirement(each))
    return Selector(tuple(sorted(equal.items())), tuple(sorted(requirements)))


def meets(labels: Mapping[str, str], requirement: Requirement) -> bool:
    """
    Whether labels meet one requirement.

    `NotIn` and `DoesNotExist` hold for an absent label; `Gt` and `Lt` compare integers and fail on anything else.
    """
    key, operator, values = requirement
    value = labels.get(key)
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            left, right = _integer(value), _integer(values[0]) if len(values) == 1 else None
            if left is None or right is None:
                return False
            return left > right if operator == "Gt" else left < right
        case _:
            return False


def _integer(text: str | None) -> int | None:
    # Go's strconv.ParseInt takes an optional sign and ASCII digits only; Python's int() takes more.
    return whole(text) if text is not None else None


class NodeTerm(msgspec.Struct, frozen=True, gc=False):
    """All of its requirements must hold; one with none at all matches no node."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


NodeTerms = tuple[NodeTerm, ...]
"""One of these terms must match."""


def compile_node_selector(selector: NodeSelector) -> NodeTerms:
    return tuple(
        NodeTerm(
            tuple(_requirement(r) for r in term.match_expressions),
            tuple(_requirement(r) for r in term.match_fields),
        )
        for term in selector.node_selector_terms
    )


def node_matches(terms: NodeTerms, name: str, labels: Mapping[str, str]) -> bool:
    """Whether one of the terms matches the node; the only field that can be selected is ``metadata.name``."""
    for term in terms:
        if not term.labels and not term.fields:
            continue
        if all(meets(labels, r) for r in term.labels) and all(meets({"metadata.name": name}, r) for r in term.fields):
            return True
    return False


@lru_cache(maxsize=1024)
def describe(selector: Selector) -> str:
    """In words for people: ``app=embedder, tier in (gold, silver)``."""
    if selector.nothing:
        return "nothing"
    parts = [f"{key}={value}" for key, value in selector.equal]
    parts += [describe_requirement(r) for r in selector.requirements]
    return ", ".join(parts) or "every pod"


def describe_requirement(requirement: Requirement) -> str:
    key, operator, values = requirement
    listed = ", ".join(values)
    match operator:
        case "In":
            return f"{key} in ({listed})"
        case "NotIn":
            return f"{key} not in ({listed})"
        case "Exists":
            return f"has {key}"
        case "DoesNotExist":
            return f"has no {key}"
        case "Gt":
            return f"{key} > {listed}"
        case "Lt":
            return f"{key} < {listed}"
        case _:
            return f"{key} {operator} {listed}"


def describe_terms(terms: NodeTerms) -> str:
    """``gpu in (a, b) and has x; or …``"""
    return "; or ".join(
        " and ".join(describe_requirement(r) for r in (*term.labels, *term.fields)) or "nothing" for term in terms
    )


def _requirement(each: SelectorRequirement) -> Requirement:
    values: Sequence[str] = each.values
    return (each.key, each.operator, tuple(values))
