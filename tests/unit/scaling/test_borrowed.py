"""Who has lent is read from the cluster alone, and never guessed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.effects import Borrow
from sevenhop.core.remediation.borrowed import BORROWED, MARKABLE, decode_borrow, encode_borrow, read_borrowed
from sevenhop.frameworks.scaling import SCALING
from tests.unit.frameworks import running
from tests.unit.frameworks.running import NAMESPACE
from tests.unit.scaling import scenes
from tests.unit.scaling.world import World

BORROW = Borrow(
    plan="7f3a",
    hash="abc",
    incident="i",
    workload="prod/summarizer",
    component="engine",
    before=4,
    after=3,
    until=datetime(2026, 11, 30, 14, tzinfo=UTC),
    by="alice",
)


def marked(**annotation: str) -> World:
    """A Deployment and a RayService, each with what `annotation` says of it; and a pod that copied it."""
    world = World([*scenes.plain().manifests.values(), *running.ray_service().objects])
    for kind, name, key in (("Deployment", "summarizer", "deployment"), ("RayService", "chat", "ray")):
        if key in annotation:
            world.manifest(kind, name)["metadata"]["annotations"] = {BORROWED: annotation[key]}
    world.manifest("Pod", "summarizer-abc-0")["metadata"]["annotations"] = {BORROWED: encode_borrow(BORROW)}
    world.read()
    return world


def test_every_donor_is_found() -> None:
    """
    Whatever kind the donor is of, with its uid; pods that inherited the annotation are no donors.
    """
    found = read_borrowed(marked(deployment=encode_borrow(BORROW), ray=encode_borrow(BORROW)))

    assert [(str(lent.ref), lent.ref.uid, lent.borrow) for lent in found] == [
        (f"Deployment {NAMESPACE}/summarizer", "Deployment:summarizer", BORROW),
        (f"RayService {NAMESPACE}/chat", "RayService:chat", BORROW),
    ]


def plain() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode_borrow(BORROW))
    return found


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("{", "not JSON"),
        ("", "not JSON"),
        ("[]", "not what we write"),
        (json.dumps({k: v for k, v in plain().items() if k != "before"}), "before"),
        (json.dumps(plain() | {"after": "3"}), "after"),
        (json.dumps(plain() | {"until": "2026-11-30T14:00:00"}), "time zone"),
        (json.dumps(plain() | {"after": -1}), "fewer than no replicas"),
    ],
    ids=["cut", "empty", "a list", "a field missing", "text for a number", "no time zone", "negative"],
)
def test_what_cannot_be_read_is_named(raw: str, words: str) -> None:
    """
    An annotation that is not ours is a problem with the object's name, and takes nothing from the others.
    """
    found = read_borrowed(marked(deployment=raw, ray=encode_borrow(BORROW)))

    broken, good = found
    assert broken.borrow is None
    assert f"Deployment {NAMESPACE}/summarizer" in broken.problem
    assert words in broken.problem
    assert (good.borrow, good.problem) == (BORROW, "")


@given(raw=st.text() | st.recursive(st.none() | st.integers() | st.text(), lambda s: st.lists(s)).map(json.dumps))
def test_any_text_is_read_or_refused(raw: str) -> None:
    """
    Nothing that stands in an annotation makes reading it fail.
    """
    assert isinstance(decode_borrow(raw), Borrow | str)


def test_there_and_back() -> None:
    """
    What is written is what is read.
    """
    assert decode_borrow(encode_borrow(BORROW)) == BORROW


def test_whatever_is_marked_is_looked_at() -> None:
    """
    Each kind that a row of the table patches itself, and so may mark, is among those that are searched.
    """
    patched = {kind for spec in SCALING.values() for kind, subresource in spec.patches if not subresource}

    assert patched
    assert patched <= set(MARKABLE)
