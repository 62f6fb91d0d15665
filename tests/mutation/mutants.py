"""Small changes of a module's source: each one what a tired person might write."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

_COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


class Mutant(NamedTuple):
    """
    Attributes:
        line: From 1.
        text: That line of the source, without indentation.
        change: What was done to it: ``< → <=``, ``no raise``.
    """

    line: int
    text: str
    change: str
    tree: ast.Module

    @property
    def key(self) -> tuple[str, str]:
        """Names it as long as its line stays the same, wherever that is."""
        return self.text, self.change


class _Change(NamedTuple):
    """`node` says the line; what is done is done to the node that is being visited."""

    node: ast.AST
    what: str
    do: Callable[[ast.AST], None]


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a module, in the order of its lines; each with a tree of its own."""
    tree = ast.parse(source)
    lines = source.splitlines()
    places = list(_walk(tree))
    for index, node in enumerate(places):
        for change in _changes(node):
            copied = copy.deepcopy(tree)
            twin = list(_walk(copied))[index]
            change.do(twin)
            line = getattr(change.node, "lineno", 1)
            yield Mutant(line, lines[line - 1].strip(), change.what, ast.fix_missing_locations(copied))


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that run: annotations are never evaluated, docstrings and messages change nothing."""
    yield node
    skipped = {"annotation", "returns", "decorator_list", "type_params", "type_comment", "ctx"}
    if isinstance(node, ast.ClassDef):
        skipped.add("keywords")  # how a struct is stored, not what it means
    for name, value in ast.iter_fields(node):
        if name in skipped or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child)


def _changes(node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for other in _COMPARE[type(op)]:
                yield _Change(node, f"{_word(type(op))} → {_word(other)}", _set_op(i, other))
    elif isinstance(node, ast.BoolOp):
        other_op = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield _Change(node, f"{_word(type(node.op))} → {_word(other_op)}", _set("op", other_op))
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _ARITHMETIC:
        changed = _ARITHMETIC[type(node.op)]
        yield _Change(node, f"{_word(type(node.op))} → {_word(changed)}", _set("op", changed))
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield _Change(node, "no not", _without_not)
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and isinstance(
        node.test, ast.Name | ast.Attribute | ast.Call
    ):
        yield _Change(node, "condition turned", _turned)
    elif isinstance(node, ast.Return) and node.value is not None and not _is_no(node.value):
        yield _Change(node, "return None", _return_none)
    elif isinstance(node, ast.Tuple | ast.List | ast.Set) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        for i in range(len(node.elts)):
            yield _Change(node, f"element {i + 1} removed", _without_element(i))
    elif isinstance(node, ast.Dict):
        for i in range(len(node.keys)):
            yield _Change(node, f"entry {i + 1} removed", _without_entry(i))
    for name in ("body", "orelse"):
        for i, statement in enumerate(_statements(node, name)):
            if said := _removable(statement):
                yield _Change(statement, said, _passed(name, i))


def _statements(node: ast.AST, name: str) -> list[ast.stmt]:
    found = getattr(node, name, None)
    return [s for s in found if isinstance(s, ast.stmt)] if isinstance(found, list) else []


def _removable(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Raise):
        return "no raise"
    if isinstance(statement, ast.Continue):
        return "no continue"
    if isinstance(statement, ast.Break):
        return "no break"
    if isinstance(statement, ast.AugAssign):
        return "statement removed"
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call | ast.Yield | ast.YieldFrom):
        return "statement removed"
    return ""


def _constants(node: ast.Constant) -> Iterator[_Change]:
    value = node.value
    if isinstance(value, bool):
        yield _Change(node, f"{value} → {not value}", _set("value", None, instead=not value))
    elif isinstance(value, int):
        for other in (value + 1, value - 1):
            yield _Change(node, f"{value} → {other}", _set("value", None, instead=other))


def _set(name: str, kind: Callable[[], object] | None, *, instead: object = None) -> Callable[[ast.AST], None]:
    return lambda node: setattr(node, name, kind() if kind is not None else instead)


def _set_op(i: int, kind: type[ast.cmpop]) -> Callable[[ast.AST], None]:
    def do(node: ast.AST) -> None:
        assert isinstance(node, ast.Compare)
        node.ops[i] = kind()

    return do


def _without_not(node: ast.AST) -> None:
    assert isinstance(node, ast.UnaryOp)
    # Twice is never: the truth of what stands there.
    node.operand = ast.UnaryOp(op=ast.Not(), operand=node.operand)


def _turned(node: ast.AST) -> None:
    assert isinstance(node, ast.If | ast.IfExp | ast.While)
    node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)


def _return_none(node: ast.AST) -> None:
    assert isinstance(node, ast.Return)
    node.value = ast.Constant(None)


def _without_element(i: int) -> Callable[[ast.AST], None]:
    def do(node: ast.AST) -> None:
        assert isinstance(node, ast.Tuple | ast.List | ast.Set)
        del node.elts[i]

    return do


def _without_entry(i: int) -> Callable[[ast.AST], None]:
    def do(node: ast.AST) -> None:
        assert isinstance(node, ast.Dict)
        del node.keys[i], node.values[i]

    return do


def _passed(name: str, i: int) -> Callable[[ast.AST], None]:
    def do(node: ast.AST) -> None:
        getattr(node, name)[i] = ast.Pass()

    return do


def _is_no(node: ast.expr) -> bool:
    """None, or False, which is turned into True instead."""
    return isinstance(node, ast.Constant) and node.value in (None, False)


def _word(kind: type[ast.AST]) -> str:
    return {
        "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!=", "Is": "is", "IsNot": "is not",
        "In": "in", "NotIn": "not in", "And": "and", "Or": "or", "Add": "+", "Sub": "-", "Mult": "*", "BitOr": "|",
        "BitAnd": "&",
    }[kind.__name__]  # fmt: skip
