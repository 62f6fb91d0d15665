"""The story of a cluster in which nobody has said what a workload is worth."""

from __future__ import annotations

import pytest

from tests.unit.demo.telling import Told, tell


@pytest.fixture(scope="module")
def told() -> Told:
    return tell("no-donor")


def test_the_message_says_what_to_set_and_offers_nothing(told: Told) -> None:
    """No plan, no buttons, and the annotation that is missing with the workloads that lack it."""
    (row,) = [line for line in told.lines if line.startswith("  No plan")]
    assert "none ranks lower; set sevenhop.dev/tier" in row
    assert "docs/summarizer" in row
    assert not [line for line in told.lines if line.startswith("  PLAN")]


def test_one_annotation_makes_a_plan(told: Told) -> None:
    """Its owner follows the words, and the same message offers summarizer's replica, without another post."""
    assert "plan waits" not in told.text[: told.text.index("kubectl -n docs annotate")]
    assert "summarizer 4 → 3, frees 2 H100" in told.after("kubectl -n docs annotate")
    assert (told.tally.posted, told.tally.repeated) == (1, 0)
