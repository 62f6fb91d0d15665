"""A permit is given by the guards, for one step, now; everything else is none."""

from __future__ import annotations

import ast
import copy
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.remediation import permit as permits
from sevenhop.core.remediation.guards import PERMIT_LASTS, judge
from sevenhop.core.remediation.permit import Permit, Purpose, claim, covers
from tests.guard_questions import NOW, passing

HASH = passing().plan.hash
STEP = passing().effect_id
ROOT = Path(__file__).parents[4]


def given_permit() -> Permit:
    found = judge(passing())
    assert isinstance(found, Permit)
    return found


def test_it_says_what_it_is_for() -> None:
    """
    The step, the commitment, the purpose, and from when until when are those of the question.
    """
    permit = given_permit()

    assert (permit.effect_id, permit.plan_hash, permit.purpose) == (STEP, HASH, Purpose.APPLY)
    assert (permit.given_at, permit.expires_at) == (NOW, NOW + timedelta(seconds=30))
    assert permit.covers(STEP, HASH, Purpose.APPLY, NOW)


@pytest.mark.parametrize(
    ("after", "valid"),
    [
        (timedelta(0), True),
        (PERMIT_LASTS, True),
        (PERMIT_LASTS + timedelta(microseconds=1), False),
        (-timedelta(microseconds=1), False),
        (timedelta(days=-1), False),
        (timedelta(days=1), False),
    ],
    ids=["at-once", "at-the-end", "just-over", "before-it-was-given", "clock-turned-back", "a-day-later"],
)
def test_it_is_for_now(after: timedelta, valid: bool) -> None:
    """
    It holds from when it was given for 30 seconds, both ends included.
    """
    assert given_permit().covers(STEP, HASH, Purpose.APPLY, NOW + after) is valid


@given(
    st.sampled_from([STEP, STEP + "0", "", "other/1-apply"]),
    st.sampled_from([HASH, HASH[:-1], "", HASH.upper() + "x"]),
    st.sampled_from(list(Purpose)),
)
def test_it_covers_nothing_else(step: str, plan_hash: str, purpose: Purpose) -> None:
    """
    Another step, commitment or purpose is not covered, in any combination.
    """
    expected = (step, plan_hash, purpose) == (STEP, HASH, Purpose.APPLY)

    assert given_permit().covers(step, plan_hash, purpose, NOW) is expected


@pytest.mark.parametrize(
    "make",
    [
        Permit,
        lambda: Permit(object(), effect_id=STEP),
        lambda: Permit.__new__(Permit, "effect"),
        lambda: copy.copy(given_permit()),
        lambda: copy.deepcopy(given_permit()),
        lambda: pickle.dumps(given_permit()),
        lambda: given_permit().__reduce__(),
        lambda: given_permit().__reduce_ex__(4),
        lambda: type("Mine", (Permit,), {}),
    ],
    ids=["call", "call-with-key", "new", "copy", "deepcopy", "pickle", "reduce", "reduce-ex", "subclass"],
)
def test_it_cannot_be_made(make: Any) -> None:
    """
    No way of Python to make or double an object makes a permit.
    """
    with pytest.raises(TypeError, match=r"permit|pickled"):
        make()


@pytest.mark.parametrize("name", ["effect_id", "plan_hash", "purpose", "given_at", "expires_at", "covers", "anything"])
def test_it_cannot_be_changed(name: str) -> None:
    """
    Not even `object.__setattr__` makes it last longer or cover another step.
    """
    permit = given_permit()

    with pytest.raises(AttributeError):
        object.__setattr__(permit, name, NOW + timedelta(days=1))
    with pytest.raises(AttributeError):
        setattr(permit, name, "x")


class _Imitation:
    __slots__ = ("__weakref__",)
    effect_id, plan_hash, purpose, given_at, expires_at = STEP, HASH, Purpose.APPLY, NOW, NOW

    def covers(self, *_: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __eq__(self, _: object) -> bool:
        return True


def test_an_imitation_is_none() -> None:
    """
    An object that answers like a permit, even one that claims its class or equals every other, covers nothing.
    """
    keep = given_permit()
    bare = object.__new__(Permit)
    disguised = _Imitation()
    disguised.__class__ = Permit  # type: ignore[assignment]

    assert [covers(x, STEP, HASH, Purpose.APPLY, NOW) for x in (None, _Imitation(), bare, disguised)] == [False] * 4
    assert keep.covers(STEP, HASH, Purpose.APPLY, NOW)
    for name in ("effect_id", "plan_hash", "purpose", "given_at", "expires_at"):
        with pytest.raises(TypeError, match="not given"):
            getattr(bare, name)


def test_what_makes_permits_is_taken() -> None:
    """
    Only the guards, which are imported first, hold it.
    """
    with pytest.raises(RuntimeError, match="nobody else"):
        claim()


def test_it_is_forgotten_with_its_holder() -> None:
    """
    Permits do not pile up: one that nobody holds takes no memory.
    """
    before = len(permits._GIVEN)
    for _ in range(10):
        given_permit()

    assert len(permits._GIVEN) == before


def test_nobody_but_the_guards_reaches_for_it() -> None:
    """
    No module takes a private name out of the permit's module, and only the guards call `claim`.
    """
    wrong = []
    for path in (ROOT / "service").rglob("*.py"):
        if path.name == "permit.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("remediation.permit"):
                for alias in node.names:
                    if alias.name.startswith("_") or (alias.name == "claim" and path.name != "guards.py"):
                        wrong.append(f"{path.name}: {alias.name}")
            own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
            if isinstance(node, ast.Attribute) and not own and node.attr in ("_give", "_GIVEN", "_claimed"):
                wrong.append(f"{path.name}: {node.attr}")

    assert wrong == []
