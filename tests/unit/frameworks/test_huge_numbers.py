"""Numbers of thousands of digits, and what only looks like one, come from the cluster: no text ends the service."""

from __future__ import annotations

import pytest

from sevenhop.core.inventory.read_component import budget_floor
from sevenhop.core.objects.cluster import PdbSpec, PodDisruptionBudget
from sevenhop.core.placement.selectors import _integer
from sevenhop.core.remediation.planning.ranking import deletion_cost
from sevenhop.frameworks.reading import number
from tests.builders import pod

HUGE = "9" * 5_000


@pytest.mark.parametrize("text", [HUGE, f"-{HUGE}", "--5", "²", "٣", "", "-", str(2**63)])
def test_what_is_no_number_of_64_bits(text: str) -> None:
    """It counts as not stated, wherever it stands."""
    assert number({"a": text}, "a") is None
    assert _integer(text) is None
    made = pod("a")
    made.metadata.annotations["controller.kubernetes.io/pod-deletion-cost"] = text
    assert deletion_cost(made) == 0
    for amount in (text, f"{text}%"):
        assert budget_floor(PodDisruptionBudget(spec=PdbSpec(min_available=amount)), 4) == 0


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("-3", -3), ("007", 7), (str(2**63 - 1), 2**63 - 1)])
def test_what_is_one(text: str, value: int) -> None:
    """As Go reads it."""
    assert number({"a": text}, "a") == value
    assert _integer(text) == value
