"""
Matchers on labels, with Alertmanager's meaning.

``=`` and ``!=`` compare, ``=~`` and ``!~`` match a regular expression against the whole value; a label that is not
there is the empty string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache

import msgspec

from sevenhop.core.facts.schema import LABELS
from sevenhop.core.incidents.labels import ABOUT_THE_INCIDENT

NAMES: tuple[str, ...] = (*LABELS, *ABOUT_THE_INCIDENT)

_FORM = re.compile(r"""\s*([A-Za-z_][A-Za-z0-9_]*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^"].*?)|)\s*""", re.DOTALL)


class Op(StrEnum):
    EQUAL = "="
    NOT_EQUAL = "!="
    REGEX = "=~"
    NOT_REGEX = "!~"


class Matcher(msgspec.Struct, frozen=True, gc=False):
    """One comparison."""

    name: str
    op: Op
    value: str

    def __str__(self) -> str:
        quoted = self.value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{self.name}{self.op}"{quoted}"'

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.name, "")
        if self.op is Op.EQUAL:
            return value == self.value
        if self.op is Op.NOT_EQUAL:
            return value != self.value
        found = _compiled(self.value).fullmatch(value) is not None
        return found if self.op is Op.REGEX else not found


def parse_matcher(text: str) -> Matcher:
    """
    Read ``namespace = prod``, ``tier!="batch"``, ``node =~ gpu-.*``.

    Raises:
        ValueError: Another form, a label that does not exist, or a regular expression that cannot be read.

    >>> parse_matcher('namespace =~ "prod-.*"').matches({"namespace": "prod-eu"})
    True
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise ValueError(f"expected a matcher such as tier=critical or namespace=~prod-.*, got {text!r}")
    name, op, quoted, bare = form.groups()
    if name not in NAMES:
        close = get_close_matches(name, NAMES, n=1)
        hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(NAMES)}"
        raise ValueError(f"no label named {name!r}{hint}")
    value = re.sub(r"\\(.)", _unescape, quoted) if quoted is not None else (bare or "").strip()
    matcher = Matcher(name, Op(op), value)
    if matcher.op in (Op.REGEX, Op.NOT_REGEX):
        try:
            _compiled(value)
        except re.error as error:
            raise ValueError(f"not a regular expression: {value!r} ({error})") from None
    return matcher


def parse_matchers(texts: Iterable[str]) -> tuple[Matcher, ...]:
    """
    Read several; each text may hold several, separated by commas outside of quotes, in braces or not.

    Raises:
        ValueError: As `parse_matcher`.

    >>> [str(m) for m in parse_matchers(['{tier="critical", namespace=~"a|b"}'])]
    ['tier="critical"', 'namespace=~"a|b"']
    """
    found: list[Matcher] = []
    for text in texts:
        inner = text.strip()
        if inner.startswith("{") and inner.endswith("}"):
            inner = inner[1:-1]
        found += [parse_matcher(part) for part in _split(inner) if part.strip()]
    return tuple(found)


def all_match(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    """Whether every matcher holds; none at all holds always."""
    return all(matcher.matches(labels) for matcher in matchers)


def says_something(matchers: Iterable[Matcher]) -> bool:
    """
    Whether at least one matcher would refuse a subject without labels.

    A silence that says nothing would silence everything: Alertmanager refuses it too.
    """
    return any(not matcher.matches({}) for matcher in matchers)


def _split(text: str) -> list[str]:
    parts, current, quoted, escaped = [], "", False, False
    for char in text:
        if char == "," and not quoted:
            parts.append(current)
            current = ""
            continue
        current += char
        if escaped:
            escaped = False
        elif char == "\\" and quoted:
            escaped = True
        elif char == '"':
            quoted = not quoted
    return [*parts, current]


def _unescape(found: re.Match[str]) -> str:
    return {"n": "\n"}.get(found[1], found[1])


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
