"""
What an expression must not say, found on the tree before CEL checks types.

Unknown facts are left out of the activation, so that CEL's own operators give strong Kleene logic.  `has()` and macros
over lists of facts would break that: the first turns blindness into an answer, the second is strict where
``a || b`` is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from sevenhop.core.facts.schema import LABELS, FactSpec
from sevenhop.core.subject import SubjectKind
from sevenhop.rulebook.names import KNOWN, visible_facts, where_else
from sevenhop.rulebook.problem import did_you_mean
from sevenhop.rulebook.tree import Node, NodeKind

_TYPE_NAMES = frozenset(["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"])
_TOO_MANY_WAYS = 32


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem within an expression; `line` and `column` from 1."""

    line: int
    column: int
    code: str
    message: str


def lint(tree: Node, expr: str, facts: Mapping[str, FactSpec], subject: SubjectKind) -> list[Finding]:
    """All findings, in the order of the text."""
    visible = visible_facts(facts, subject)
    found = [
        *_unknown_names(tree, visible, facts, subject),
        *_unknown_values(tree, visible),
        *_has(tree),
        *_macros(tree, visible),
    ]
    placed = []
    for node, code, message in sorted(found, key=lambda f: f[0].offset):
        line, column = _place(expr, node.offset)
        placed.append(Finding(line, column, code, message))
    return list(dict.fromkeys(placed))


def facts_in(node: Node) -> frozenset[str]:
    """Dotted names below a node, `known.` ones and labels included."""
    return frozenset(name for name, _ in _chains(node, frozenset()))


def ways_to_be_true(tree: Node, visible: Mapping[str, FactSpec]) -> tuple[frozenset[str], ...]:
    """
    The smallest sets of facts of which any one, if known, can make the expression true.

    Says what would arm a rule.  Beyond a few dozen ways it is one: all facts.
    """
    always_there = {name for name in facts_in(tree) if name not in visible}
    true, _ = _ways(tree, always_there)
    return tuple(sorted(true, key=lambda way: (len(way), sorted(way))))


_Ways = frozenset[frozenset[str]]
_Found = tuple[Node, str, str]


def _ways(node: Node, ignored: set[str]) -> tuple[_Ways, _Ways]:
    """Fact sets that suffice for true, and for false (strong Kleene)."""
    below = node.children
    if node.kind is NodeKind.CALL and node.name == "!_":
        true, false = _ways(below[0], ignored)
        return false, true
    if node.kind is NodeKind.CALL and node.name in ("_&&_", "_||_"):
        (left_true, left_false), (right_true, right_false) = (_ways(child, ignored) for child in below)
        if node.name == "_&&_":
            return _both(left_true, right_true), _smallest(left_false | right_false)
        return _smallest(left_true | right_true), _both(left_false, right_false)
    if node.kind is NodeKind.CALL and node.name == "_?_:_":
        (yes, no), (then_true, then_false), (else_true, else_false) = (_ways(child, ignored) for child in below)
        return (
            _smallest(_both(yes, then_true) | _both(no, else_true)),
            _smallest(_both(yes, then_false) | _both(no, else_false)),
        )
    every = frozenset({facts_in(node) - ignored})
    return every, every


def _both(left: _Ways, right: _Ways) -> _Ways:
    return _smallest(frozenset(a | b for a, b in product(left, right)))


def _smallest(ways: _Ways) -> _Ways:
    kept = frozenset(way for way in ways if not any(other < way for other in ways))
    return kept if len(kept) <= _TOO_MANY_WAYS else frozenset({frozenset().union(*kept)})


def _chains(node: Node, bound: frozenset[str]) -> Iterator[tuple[str, Node]]:
    """Names as written (``component.waiting.cause``), whole, without what macros bind."""
    name = _dotted(node)
    if name is not None:
        if name.split(".", 1)[0] not in bound:
            yield name, node
        return
    if node.kind is NodeKind.COMPREHENSION:
        bound_range, *rest = node.children
        yield from _chains(bound_range, bound)
        inner = bound | set(node.bound)
        for child in rest:
            yield from _chains(child, inner)
        return
    for child in node.children:
        yield from _chains(child, bound)


def _dotted(node: Node) -> str | None:
    if node.kind is NodeKind.IDENT:
        return node.name
    if node.kind is NodeKind.SELECT:
        start = _dotted(node.children[0])
        return None if start is None else f"{start}.{node.name}"
    return None


def _unknown_names(
    tree: Node, visible: Mapping[str, FactSpec], facts: Mapping[str, FactSpec], subject: SubjectKind
) -> Iterator[_Found]:
    for name, node in _chains(tree, frozenset()):
        fact = name.removeprefix(KNOWN)
        if name in visible or name in LABELS or (fact != name and fact in visible) or name in _TYPE_NAMES:
            continue
        elsewhere = where_else(fact, facts, subject)
        if elsewhere:
            yield node, "expr-fact-of-other-subject", elsewhere
        else:
            hint = did_you_mean(fact, [*visible, *LABELS])
            yield node, "expr-unknown-fact", f"{name} is neither a fact of {subject} nor a label{hint}"


def _unknown_values(tree: Node, visible: Mapping[str, FactSpec]) -> Iterator[_Found]:
    """String constants that a closed set does not have: such a comparison would never hold, or always."""
    for node in tree.walk():
        if node.kind is not NodeKind.CALL or node.name not in ("_==_", "_!=_", "@in"):
            continue
        names = [name for child in node.children if (name := _dotted(child)) in visible and name is not None]
        if len(names) != 1 or not visible[names[0]].values:
            continue
        allowed = visible[names[0]].values
        constants = [c for child in node.children for c in (child, *child.children) if c.text is not None]
        for constant in constants:
            if constant.text not in allowed and constant.text:
                hint = did_you_mean(constant.text, allowed) or f"; one of {', '.join(allowed)}"
                yield constant, "expr-unknown-value", f"{names[0]} is never {constant.text!r}{hint}"


def _has(tree: Node) -> Iterator[_Found]:
    for node in tree.walk():
        if node.is_test:
            name = _dotted(node) or node.name
            yield node, "expr-has", f"has() would make blindness an answer; write known.{name}"


def _macros(tree: Node, visible: Mapping[str, FactSpec]) -> Iterator[_Found]:
    first_words = {name.split(".", 1)[0] for name in visible} | set(LABELS) | {KNOWN[:-1]}
    for node in tree.walk():
        if node.kind is not NodeKind.COMPREHENSION:
            continue
        over = node.children[0]
        if any(part.kind in (NodeKind.LIST, NodeKind.MAP) and facts_in(part) for part in over.walk()):
            text = "a macro over a list of facts is unknown as soon as one of them is; write a || b, or a && b"
            yield node, "expr-macro-over-facts", text
        for name in node.bound:
            if name in first_words:
                yield node, "expr-shadows", f"the macro's variable {name} hides a name of the rulebook; call it x"


def _place(expr: str, offset: int) -> tuple[int, int]:
    before = expr[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
