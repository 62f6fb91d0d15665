"""The tool that breaks guards: it finds the places that can be broken, and leaves alone what changes nothing."""

from __future__ import annotations

import ast

import pytest

from tests.mutation.mutants import mutants
from tests.mutation.targets import TARGETS
from tests.shared import ROOT


def changed(source: str) -> dict[str, str]:
    """What was done → the code afterwards."""
    return {m.change: ast.unparse(m.tree) for m in mutants(source)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", {"< → <=": "a <= b", "< → >=": "a >= b"}),
        ("a == b", {"== → !=": "a != b"}),
        ("a is None", {"is → is not": "a is not None"}),
        ("a in b", {"in → not in": "a not in b"}),
        ("a and b", {"and → or": "a or b"}),
        ("not a", {"no not": "not not a"}),
        ("a - b", {"- → +": "a + b"}),
        ("x = 3", {"3 → 4": "x = 4", "3 → 2": "x = 2"}),
        ("x = True", {"True → False": "x = False"}),
        ("f(a)", {"statement removed": "pass"}),
        ("x = {a: b}", {"entry 1 removed": "x = {}"}),
        ("x = (a, b)", {"element 1 removed": "x = (b,)", "element 2 removed": "x = (a,)"}),
        ("if a:\n    raise b", {"condition turned": "if not a:\n    raise b", "no raise": "if a:\n    pass"}),
        ("def f() -> int | None:\n    return a", {"return None": "def f() -> int | None:\n    return None"}),
        ('"""Says 3 < 4."""\nx: int | str\nf"{a < 3}"\nclass A(b=True):\n    y: bool', {}),
    ],
)
def test_each_kind_of_change(source: str, expected: dict[str, str]) -> None:
    """
    Every change that this source allows, and no other.
    """
    assert changed(source) == expected


def test_a_mutant_names_its_line() -> None:
    """
    Line and text are those of what was changed, also of a statement that is gone.
    """
    found = [(m.line, m.text, m.change) for m in mutants("if a:\n\n    f(b)\n")]

    assert found == [(1, "if a:", "condition turned"), (3, "f(b)", "statement removed")]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.module)
def test_targets_are_there(target: object) -> None:
    """
    Every module that is to be mutated, and every test that is to notice, exists; and there is something to break.
    """
    path, tests = getattr(target, "path"), getattr(target, "tests")  # noqa: B009

    assert all((ROOT / test).is_file() for test in tests)
    assert next(mutants((ROOT / path).read_text("utf-8")), None) is not None


def test_no_guard_is_left_out() -> None:
    """
    Every module of guards is mutated.
    """
    folder = ROOT / "service" / "sevenhop" / "core" / "remediation"

    assert {p.name for p in folder.glob("guards*.py")} <= {t.path.rpartition("/")[2] for t in TARGETS}
