"""
Selectors of DRA devices: the part of CEL that people write in DeviceClasses and claims.

What it cannot read raises `UnreadableExpressionError`: the caller lists it as not modelled and never assumes an answer.
The variables and functions are those of resource.k8s.io/v1 `CELDeviceSelector`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from sevenhop.core.objects.quantity import parse as parse_quantity


class UnreadableExpressionError(Exception):
    """The expression uses something that this evaluator does not know."""


class _MissingError(Exception):
    """A key that the device does not have; CEL calls it an error, which `&&` and `||` may absorb."""


class Version(msgspec.Struct, frozen=True, gc=False):
    """A semantic version, ordered as semver.org §11 says."""

    text: str

    @property
    def rank(self) -> tuple[Any, ...]:
        core, _, _build = self.text.partition("+")
        numbers, _, pre = core.partition("-")
        parts = tuple(int(p) for p in numbers.split("."))
        identifiers = tuple((0, int(i), "") if i.isdigit() else (1, 0, i) for i in pre.split(".")) if pre else ()
        return (parts, not pre, identifiers)


class Device(msgspec.Struct, frozen=True, gc=False):
    """
    One device of a ResourceSlice.

    Attributes:
        key: (driver, pool, device), unique in the cluster.
        attributes: Domain to name to value; unqualified names belong to the driver's domain.
        capacity: The same for quantities.
        taints: (key, value, effect) of the device itself.
        shares: It is partitionable or can be allocated more than once, which is not modelled.
    """

    key: tuple[str, str, str]
    attributes: Mapping[str, Mapping[str, Any]] = {}
    capacity: Mapping[str, Mapping[str, Decimal]] = {}
    taints: tuple[tuple[str, str, str], ...] = ()
    shares: bool = False


def selects(expression: str, device: Device) -> bool:
    """
    Whether the expression holds for the device; one that asks for what the device lacks does not.

    Raises:
        UnreadableExpressionError: Outside of what this evaluator knows.
    """
    try:
        value = _compiled(expression)({"device": device})
    except _MissingError:
        return False
    except (TypeError, AttributeError, IndexError, ValueError):
        raise UnreadableExpressionError(f"types do not suit in {expression!r}") from None
    if not isinstance(value, bool):
        raise UnreadableExpressionError(f"expected true or false from {expression!r}")
    return value


_Node = Callable[[Mapping[str, Any]], Any]

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)
    |(?P<string>r?"(?:[^"\\]|\\.)*"|r?'(?:[^'\\]|\\.)*')
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<op>&&|\|\||==|!=|<=|>=|[<>!()\[\].,?:+*/%-]))""",
    re.VERBOSE,
)


def _tokens(text: str) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise UnreadableExpressionError(f"cannot read {text[at : at + 20].strip()!r}")
        out.append((found.lastgroup, found.group(found.lastgroup)))
        at = found.end()
    out.append(("end", ""))
    return out


@lru_cache(maxsize=512)
def _compiled(expression: str) -> _Node:
    parser = _Parser(_tokens(expression))
    node = parser.choice()
    parser.expect("end")
    return node


class _Parser:
    """Recursive descent, one method per level of precedence; each returns a function of the variables."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0

    def expect(self, text: str) -> None:
        kind, value = self._tokens[self._at]
        if text not in (value, kind):
            raise UnreadableExpressionError(f"expected {text!r}, got {value or 'the end'!r}")
        self._at += 1

    def _accept(self, *texts: str) -> str:
        kind, value = self._tokens[self._at]
        if kind in ("op", "name") and value in texts:
            self._at += 1
            return value
        return ""

    def choice(self) -> _Node:
        test = self._or()
        if not self._accept("?"):
            return test
        then = self.choice()
        self.expect(":")
        other = self.choice()
        return lambda v: then(v) if _truth(test(v)) else other(v)

    def _or(self) -> _Node:
        parts = [self._and()]
        while self._accept("||"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else lambda v: _absorb(parts, v, decides=True)

    def _and(self) -> _Node:
        parts = [self._relation()]
        while self._accept("&&"):
            parts.append(self._relation())
        return parts[0] if len(parts) == 1 else lambda v: _absorb(parts, v, decides=False)

    def _relation(self) -> _Node:
        left = self._unary()
        operator = self._accept("==", "!=", "<=", ">=", "<", ">", "in")
        if not operator:
            return left
        right = self._unary()
        return lambda v: _compare(operator, left(v), right(v))

    def _unary(self) -> _Node:
        if self._accept("!"):
            inner = self._unary()
            return lambda v: not _truth(inner(v))
        if self._accept("-"):
            inner = self._unary()
            return lambda v: _negative(inner(v))
        return self._postfix()

    def _postfix(self) -> _Node:
        node = self._primary()
        while True:
            if self._accept("."):
                if self._accept("?"):
                    raise UnreadableExpressionError("optional field selection")
                name = self._name()
                node = self._call(node, name) if self._accept("(") else _field(node, name)
            elif self._accept("["):
                if self._accept("?"):
                    raise UnreadableExpressionError("optional index")
                index = self.choice()
                self.expect("]")
                node = _index(node, index)
            else:
                return node

    def _name(self) -> str:
        kind, value = self._tokens[self._at]
        if kind != "name":
            raise UnreadableExpressionError(f"expected a name, got {value!r}")
        self._at += 1
        return value

    def _arguments(self, closing: str) -> list[_Node]:
        out: list[_Node] = []
        while not self._accept(closing):
            if out:
                self.expect(",")
            out.append(self.choice())
        return out

    def _call(self, target: _Node, name: str) -> _Node:
        if name not in _METHODS:
            raise UnreadableExpressionError(f"function {name}")
        arguments = self._arguments(")")
        method = _METHODS[name]
        return lambda v: method(target(v), *(a(v) for a in arguments))

    def _primary(self) -> _Node:
        kind, value = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            number = Decimal(value) if "." in value else int(value)
            return lambda _: number
        if kind == "string":
            text = _unquote(value)
            return lambda _: text
        if value == "(":
            node = self.choice()
            self.expect(")")
            return node
        if value == "[":
            items = self._arguments("]")
            return lambda v: [item(v) for item in items]
        if value in ("true", "false"):
            truth = value == "true"
            return lambda _: truth
        if value == "device":
            return lambda v: v["device"]
        if kind == "name" and value in _FUNCTIONS and self._accept("("):
            arguments = self._arguments(")")
            function = _FUNCTIONS[value]
            return lambda v: function(*(a(v) for a in arguments))
        if value == "has" and self._accept("("):
            inner = self.choice()
            self.expect(")")
            return lambda v: _has(inner, v)
        raise UnreadableExpressionError(f"{value or 'the end'!r}")


def _absorb(parts: list[_Node], variables: Mapping[str, Any], *, decides: bool) -> bool:
    # CEL: one operand that decides wins over an error in another, whatever their order.
    missing: _MissingError | None = None
    for part in parts:
        try:
            if _truth(part(variables)) is decides:
                return decides
        except _MissingError as error:
            missing = error
    if missing is not None:
        raise missing
    return not decides


def _has(inner: _Node, variables: Mapping[str, Any]) -> bool:
    try:
        inner(variables)
    except _MissingError:
        return False
    return True


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UnreadableExpressionError(f"expected true or false, got {type(value).__name__}")
    return value


def _negative(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise UnreadableExpressionError("minus before what is no number")
    return -value


def _compare(operator: str, left: Any, right: Any) -> bool:
    if operator == "in":
        if isinstance(right, list | Mapping):
            return left in right
        raise UnreadableExpressionError("in: expected a list or a map")
    if operator in ("==", "!="):
        return bool(left == right) is (operator == "==")
    if isinstance(left, bool) or type(left) is not type(right) or isinstance(left, Mapping | list | Version):
        raise UnreadableExpressionError(f"{operator} between {type(left).__name__} and {type(right).__name__}")
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator])


def _field(target: _Node, name: str) -> _Node:
    def read(variables: Mapping[str, Any]) -> Any:
        value = target(variables)
        if isinstance(value, Device):
            match name:
                case "driver":
                    return value.key[0]
                case "attributes":
                    return value.attributes
                case "capacity":
                    return value.capacity
                case _:
                    raise UnreadableExpressionError(f"device.{name}")
        if isinstance(value, Mapping):
            if name in value:
                return value[name]
            raise _MissingError(name)
        raise UnreadableExpressionError(f".{name}")

    return read


def _index(target: _Node, index: _Node) -> _Node:
    def read(variables: Mapping[str, Any]) -> Any:
        value, key = target(variables), index(variables)
        device = variables["device"]
        if value is device.attributes or value is device.capacity:
            return value.get(key, {})  # an unknown domain is an empty map, not an error
        if isinstance(value, Mapping):
            if key in value:
                return value[key]
            raise _MissingError(str(key))
        raise UnreadableExpressionError("index")

    return read


def _unquote(literal: str) -> str:
    if literal.startswith("r"):
        return literal[2:-1]
    body = literal[1:-1]
    if re.search(r"""\\[^\\"'nt]""", body):
        raise UnreadableExpressionError("escape in a string")
    escapes = {"n": "\n", "t": "\t"}
    return re.sub(r"\\(.)", lambda m: escapes.get(m.group(1), m.group(1)), body)


def _quantity(text: Any) -> Decimal:
    try:
        return parse_quantity(text)
    except ValueError as error:
        raise UnreadableExpressionError(str(error)) from None


def _semver(text: Any, *_normalize: Any) -> Version:
    version = Version(str(text).removeprefix("v"))
    try:
        version.rank  # noqa: B018 (reading it is the check)
    except ValueError:
        raise UnreadableExpressionError(f"semver({text!r})") from None
    return version


def _compare_to(left: Any, right: Any) -> int:
    if isinstance(left, Version) and isinstance(right, Version):
        return (left.rank > right.rank) - (left.rank < right.rank)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return (left > right) - (left < right)
    raise UnreadableExpressionError("compareTo")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UnreadableExpressionError(f"expected a string, got {type(value).__name__}")
    return value


def _matches(text: Any, pattern: Any) -> bool:
    # CEL uses RE2; the constructs that mean something else there are refused rather than guessed.
    if re.search(r"\(\?(?!:)|\\[pPzZQEC]|\\[1-9]|[*+?}]\+", _text(pattern)):
        raise UnreadableExpressionError(f"regular expression {pattern!r}")
    try:
        return re.search(pattern, _text(text), re.ASCII) is not None
    except re.error:
        raise UnreadableExpressionError(f"regular expression {pattern!r}") from None


_FUNCTIONS: dict[str, Callable[..., Any]] = {"quantity": _quantity, "semver": _semver, "size": len}

_METHODS: dict[str, Callable[..., Any]] = {
    "startsWith": lambda t, p: _text(t).startswith(_text(p)),
    "endsWith": lambda t, p: _text(t).endswith(_text(p)),
    "contains": lambda t, p: _text(p) in _text(t),
    "matches": _matches,
    "lowerAscii": lambda t: _text(t).lower(),
    "upperAscii": lambda t: _text(t).upper(),
    "size": len,
    "compareTo": _compare_to,
    "isGreaterThan": lambda a, b: _compare_to(a, b) > 0,
    "isLessThan": lambda a, b: _compare_to(a, b) < 0,
    "major": lambda v: v.rank[0][0],
    "minor": lambda v: v.rank[0][1],
    "patch": lambda v: v.rank[0][2],
}
