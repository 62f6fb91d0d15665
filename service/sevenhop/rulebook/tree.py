"""CEL's expression tree as plain nodes, from what the compiler serialises (cel-spec: proto/cel/expr/syntax.proto)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from sevenhop.rulebook import wire


class NodeKind(StrEnum):
    CONST = "const"
    IDENT = "ident"
    SELECT = "select"
    CALL = "call"
    LIST = "list"
    MAP = "map"
    COMPREHENSION = "comprehension"


@dataclass(slots=True)
class Node:
    """
    Attributes:
        name: Of an identifier, a selected field, a called function, or a comprehension's variable.
        children: The operand of a select; target (if any) and arguments of a call; elements; of a comprehension the
            range first, then what runs over it.
        text: Of a string constant; None for every other constant.
        is_test: A select that came from `has()`.
        bound: Names that a comprehension binds.
        offset: Code points from the start of the expression.
    """

    kind: NodeKind
    id: int = 0
    name: str = ""
    children: list[Node] = field(default_factory=list)
    text: str | None = None
    is_test: bool = False
    bound: tuple[str, ...] = ()
    offset: int = 0

    def walk(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def parsed_tree(serialized: bytes) -> Node:
    """
    The tree of an expression that was parsed and not checked (`compile(…, disable_check=True)`).

    Checking rewrites names (`has(a.b)` of a declared ``a.b`` becomes the plain variable), so lint reads this one.

    Raises:
        WireError: Not an expression.
    """
    body = _any_value(serialized)
    root: Node | None = None
    offsets: dict[int, int] = {}
    for number, value in wire.fields(body):
        if number == 2:
            root = _node(wire.message(value))
        elif number == 3:
            offsets = _positions(wire.message(value))
    if root is None:
        raise wire.WireError("no expression in the parsed message")
    for node in root.walk():
        node.offset = offsets.get(node.id, 0)
    return root


def references(serialized: bytes) -> set[str]:
    """
    Names of variables that a checked expression refers to: its reference map, field 2 of `CheckedExpr`.

    Variables that macros bind are among them; functions are not.

    Raises:
        WireError: Not a checked expression.
    """
    names = set()
    for number, value in wire.fields(_any_value(serialized)):
        if number != 2:
            continue
        for key, entry in wire.fields(wire.message(value)):
            if key == 2:  # the map entry's value, a Reference; its field 1 is a variable's name
                reference = dict(wire.fields(wire.message(entry)))
                if 1 in reference:
                    names.add(wire.text(reference[1]))
    return names


def _any_value(serialized: bytes) -> bytes:
    for number, value in wire.fields(serialized):
        if number == 2:
            return wire.message(value)
    raise wire.WireError("no value in the serialised expression")


def _positions(source_info: bytes) -> dict[int, int]:
    offsets = {}
    for number, value in wire.fields(source_info):
        if number == 4:
            entry = dict(wire.fields(wire.message(value)))
            offsets[wire.number(entry.get(1, 0))] = wire.number(entry.get(2, 0))
    return offsets


def _node(message: bytes) -> Node:
    node = Node(NodeKind.CONST)
    node_id = 0
    for number, value in wire.fields(message):
        if number == 2:
            node_id = wire.number(value)
        elif number == 3:
            node = _const(wire.message(value))
        elif number == 4:
            node = Node(NodeKind.IDENT, name=_first_text(wire.message(value), 1).removeprefix("."))
        elif number == 5:
            node = _select(wire.message(value))
        elif number == 6:
            node = _call(wire.message(value))
        elif number == 7:
            node = _all_below(NodeKind.LIST, wire.message(value), {1})
        elif number == 8:
            node = _map(wire.message(value))
        elif number == 9:
            node = _comprehension(wire.message(value))
    node.id = node_id
    return node


def _const(message: bytes) -> Node:
    node = Node(NodeKind.CONST)
    for number, value in wire.fields(message):
        if number == 6:
            node.text = wire.text(value)
    return node


def _select(message: bytes) -> Node:
    node = Node(NodeKind.SELECT)
    for number, value in wire.fields(message):
        if number == 1:
            node.children.append(_node(wire.message(value)))
        elif number == 2:
            node.name = wire.text(value)
        elif number == 3:
            node.is_test = bool(value)
    return node


def _call(message: bytes) -> Node:
    node = _all_below(NodeKind.CALL, message, {1, 3})
    node.name = _first_text(message, 2)
    return node


def _map(message: bytes) -> Node:
    node = Node(NodeKind.MAP)
    for number, value in wire.fields(message):
        if number == 2:
            node.children += _all_below(NodeKind.MAP, wire.message(value), {3, 4}).children
    return node


def _comprehension(message: bytes) -> Node:
    node = Node(NodeKind.COMPREHENSION)
    bound: list[str] = []
    parts: dict[int, Node] = {}
    for number, value in wire.fields(message):
        if number in (1, 3, 8):
            bound.append(wire.text(value))
        else:
            parts[number] = _node(wire.message(value))
    node.bound = tuple(bound)
    node.name = bound[0] if bound else ""
    node.children = [parts[n] for n in sorted(parts)]  # field 2, the range, is the lowest
    return node


def _all_below(kind: NodeKind, message: bytes, numbers: set[int]) -> Node:
    below = [_node(wire.message(value)) for number, value in wire.fields(message) if number in numbers]
    return Node(kind, children=below)


def _first_text(message: bytes, number: int) -> str:
    return next((wire.text(value) for found, value in wire.fields(message) if found == number), "")
