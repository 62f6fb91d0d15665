"""Label and field selectors of lists and watches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from sevenhop.simulation.store import Data, StoreError

_SET = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s+(?P<op>in|notin)\s+\((?P<values>[^)]*)\)\s*$")
_COMMA = re.compile(r",(?![^(]*\))")


class _Test(msgspec.Struct, frozen=True):
    key: str
    op: str  # "=", "!=", "in", "notin", "exists", "absent"
    values: tuple[str, ...] = ()

    def holds(self, value: str | None) -> bool:
        if self.op in ("=", "in"):
            return value is not None and value in self.values
        if self.op in ("!=", "notin"):
            return value is None or value not in self.values
        return (value is not None) is (self.op == "exists")


class Selection(msgspec.Struct, frozen=True):
    """Objects that all tests on their labels and fields select."""

    labels: tuple[_Test, ...] = ()
    fields: tuple[_Test, ...] = ()

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Selection:
        """
        From the parameters ``labelSelector`` and ``fieldSelector``.

        Raises:
            StoreError: 400, not a selector.
        """
        return cls(_tests(query.get("labelSelector", "")), _tests(query.get("fieldSelector", "")))

    def selects(self, data: Data) -> bool:
        if not self.labels and not self.fields:
            return True
        labels = data["metadata"].get("labels") or {}
        return all(test.holds(labels.get(test.key)) for test in self.labels) and all(
            test.holds(_field(data, test.key)) for test in self.fields
        )


def _field(data: Data, path: str) -> str:
    """A field by its path; one that is not set counts as empty, as in the API."""
    value: Any = data
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return "" if value is None else str(value)


def _tests(text: str) -> tuple[_Test, ...]:
    return tuple(_test(part) for part in _COMMA.split(text) if part.strip())


def _test(part: str) -> _Test:
    found = _SET.match(part)
    if found:
        return _Test(found["key"], found["op"], tuple(v.strip() for v in found["values"].split(",")))
    for sign, op in (("!=", "!="), ("==", "="), ("=", "=")):
        key, split, value = part.partition(sign)
        if split:
            return _Test(key.strip(), op, (value.strip(),))
    key = part.strip()
    if re.search(r"[\s()]", key):
        raise StoreError(400, "BadRequest", f"unable to parse requirement: {key!r}")
    return _Test(key.removeprefix("!"), "absent" if key.startswith("!") else "exists")
