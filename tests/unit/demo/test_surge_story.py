"""The story of a rollout that waits for itself."""

from __future__ import annotations

import pytest

from tests.unit.demo.telling import Told, tell


@pytest.fixture(scope="module")
def told() -> Told:
    return tell("surge")


def test_the_advice_is_max_surge_and_not_a_neighbours_gpus(told: Told) -> None:
    """No shortage is claimed, no plan is made."""
    (title,) = told.full_messages()
    assert "the rollout waits for GPUs that its own old pods hold" in title
    advice = next(line for line in told.lines if line.startswith("  What would help"))
    assert "maxSurge: 0" in advice
    assert "PLAN" not in told.text
    assert "clicks" not in told.text
    assert "gpu-shortage" not in told.text


def test_following_the_advice_ends_it_without_another_message(told: Told) -> None:
    """While the old pods leave one by one nobody is called short of GPUs."""
    assert (told.tally.posted, told.tally.repeated, told.tally.green) == (1, 0, 1)
    assert "✔ engine 2/2 Ready." in told.text
