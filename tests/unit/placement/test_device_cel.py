"""Selectors of DRA devices."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sevenhop.core.placement.device_cel import Device, UnreadableExpressionError, Version, selects

D = "gpu.nvidia.com"
GPU = Device(
    (D, "node-1", "gpu-0"),
    {
        D: {"type": "gpu", "productName": "NVIDIA H100 80GB HBM3", "index": 3, "driverVersion": Version("580.126.20")},
        "dra.net": {"rdma": True},
    },
    {D: {"memory": Decimal(80 * 2**30)}},
)
A, C = f'device.attributes["{D}"]', f'device.capacity["{D}"]'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'device.driver == "{D}"', True),
        (f'device.driver == "{D}" && {A}.type == "gpu"', True),
        (f'{A}.type == "mig"', False),
        (f'{A}.type != "mig"', True),
        (f"{A}['type'] == 'gpu'", True),
        (f'{A}.productName.startsWith("NVIDIA H100")', True),
        (f'{A}.productName.endsWith("HBM3") && {A}.productName.contains("80GB")', True),
        (f'{A}.productName.lowerAscii().matches("^nvidia (h100|h200) ")', True),
        (f'{A}.productName.matches("H200")', False),
        (f'{A}.type in ["gpu", "mig"]', True),
        (f'!({A}.type in ["mig"])', True),
        (f"{A}.index >= 3 && {A}.index < 4", True),
        (f"{A}.index > 3", False),
        ('device.attributes["dra.net"].rdma', True),
        ('!device.attributes["dra.net"].rdma', False),
        (f'{C}.memory.compareTo(quantity("80Gi")) == 0', True),
        (f'{C}.memory.compareTo(quantity("100Gi")) >= 0', False),
        (f'{C}.memory.isGreaterThan(quantity("40Gi"))', True),
        (f'{C}.memory.isLessThan(quantity("40Gi"))', False),
        (f'{A}.driverVersion.compareTo(semver("570.0.0")) > 0', True),
        (f'{A}.driverVersion.isLessThan(semver("580.126.3"))', False),
        (f'{A}.type == "gpu" ? {A}.index == 3 : false', True),
        (f"has({A}.type) && !has({A}.profile)", True),
        (f'"profile" in {A}', False),
        ("(true || false) && !false", True),
    ],
)
def test_common_selectors_are_evaluated(expression: str, expected: bool) -> None:
    """The forms that DeviceClasses and claims use."""
    assert selects(expression, GPU) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(f'{A}.profile == "1g.10gb"', False, id="a missing attribute does not match"),
        pytest.param(f'{A}.profile == "x" || {A}.type == "gpu"', True, id="or absorbs the missing one"),
        pytest.param(f'{A}.type == "gpu" || {A}.profile == "x"', True, id="in either order"),
        pytest.param(f'{A}.profile == "x" && false', False, id="and absorbs it too"),
        pytest.param(f'{A}.profile == "x" && {A}.type == "gpu"', False, id="but true does not absorb it"),
        pytest.param(f'{A}.profile == "x" || {A}.type == "mig"', False, id="nor does false in an or"),
        pytest.param('device.attributes["other.vendor"].type == "gpu"', False, id="a missing domain has no attributes"),
    ],
)
def test_what_a_device_lacks_does_not_match(expression: str, expected: bool) -> None:
    """Missing attributes are errors in CEL, which && and || may absorb."""
    assert selects(expression, GPU) is expected


@pytest.mark.parametrize(
    "expression",
    [
        "",
        f'{A}.type == "gpu" &&',
        f"{A}.?type.orValue('x') == 'gpu'",
        f"{A}.all(k, k != 'x')",
        "device.name == 'gpu-0'",
        "cel.bind(x, 1, x == 1)",
        f"{A}.type",
        f"{A}.type < 3",
        f'{A}.productName.matches("(?i)h100")',
        f'{A}.productName.matches("(H100")',
        f'{A}.index.startsWith("3")',
        f"{A}.type.startsWith()",
        'quantity("80 apples").isGreaterThan(quantity("1"))',
        f'{A}.driverVersion.compareTo(semver("latest")) > 0',
        "1 @ 2",
    ],
)
def test_what_it_cannot_read_is_never_assumed(expression: str) -> None:
    """Anything outside of the known part is refused by name."""
    with pytest.raises(UnreadableExpressionError):
        selects(expression, GPU)


@pytest.mark.parametrize(
    ("lower", "higher"),
    [("1.9.0", "1.10.0"), ("1.0.0-alpha", "1.0.0"), ("1.0.0-alpha.1", "1.0.0-alpha.beta"), ("1.0.0-2", "1.0.0-10")],
)
def test_versions_are_ordered_as_semver_says(lower: str, higher: str) -> None:
    """Numbers by value, and a pre-release before its release."""
    assert Version(lower).rank < Version(higher).rank
