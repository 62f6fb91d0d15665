"""Quantities that nobody should write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.objects.quantity import parse, units

MOST = 2**63 - 1


@pytest.mark.parametrize("text", ["1" * 400, 10**30, "9E", "1e999", "1e30"])
def test_too_large_is_capped(text: str | int) -> None:
    """
    As Kubernetes caps it, instead of failing in the arithmetic.
    """
    assert units("memory", text) <= MOST
    assert units("memory", text) > 10**18
    assert units("cpu", text) > 10**18


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-inf", "", "x", "1e999999999999999999999", "0/0", "Gi", "10Gi;"])
def test_no_quantity(text: str) -> None:
    """
    What is no finite number is refused with the one error that callers expect.
    """
    with pytest.raises(ValueError, match="expected a quantity"):
        parse(text)


@given(st.one_of(st.text(), st.integers(), st.floats()), st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]))
def test_anything(text: str | float, resource: str) -> None:
    """
    Any value is a whole number of units, or a ValueError.
    """
    try:
        found = units(resource, text)
    except ValueError:
        return
    assert isinstance(found, int)
