"""Allocating devices to claims on one node."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.objects.decode import convert
from sevenhop.core.objects.devices import ClaimSpec
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.placement.devices import DeviceLedger, MissingClassError, allocate
from tests.placement_builders import custom, world

API = "resource.k8s.io/v1"


def _device(
    name: str, *, numa: int = 0, kind: str = "gpu", taints: list[dict[str, str]] | None = None
) -> dict[str, Any]:
    return {
        "name": name,
        "attributes": {"type": {"string": kind}, "numa": {"int": numa}},
        **({"taints": taints} if taints else {}),
    }


def _ledger(*devices: dict[str, Any], generation: int = 1, taken: tuple[str, ...] = ()) -> DeviceLedger:
    def slice_of(found: tuple[dict[str, Any], ...], number: int) -> dict[str, Any]:
        pool = {"name": "n1", "generation": number, "resourceSliceCount": 1}
        spec = {"driver": "gpu.x", "nodeName": "n1", "pool": pool, "devices": list(found)}
        return custom(API, "ResourceSlice", f"s{number}", spec=spec)

    held = [{"request": "r", "driver": "gpu.x", "pool": "n1", "device": name} for name in taken]
    claim = custom(API, "ResourceClaim", "held", "prod", status={"allocation": {"devices": {"results": held}}})
    selector = {"cel": {"expression": 'device.attributes["gpu.x"].type == "gpu"'}}
    old = (slice_of((_device("old"),), generation - 1),) if generation > 1 else ()
    return DeviceLedger(
        world(
            *old,
            slice_of(devices, generation),
            custom(API, "DeviceClass", "gpu", spec={"selectors": [selector]}),
            *((claim,) if taken else ()),
        )
    )


def _spec(*requests: dict[str, Any], same: str = "") -> ClaimSpec:
    constraints = [{"matchAttribute": same}] if same else []
    data = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": list(requests), "constraints": constraints}}}
    claim = convert(KINDS["ResourceClaim.resource.k8s.io"], data)
    return claim.spec  # type: ignore[attr-defined,no-any-return]


def _exactly(count: int = 1, *, name: str = "r", **more: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "gpu", "count": count, **more}}


TAINT = [{"key": "xid", "value": "79", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("ledger", "spec", "expected"),
    [
        pytest.param(_ledger(_device("a"), _device("b")), _spec(_exactly(2)), True, id="enough"),
        pytest.param(_ledger(_device("a"), _device("b")), _spec(_exactly(3)), False, id="too few"),
        pytest.param(_ledger(_device("a"), _device("b"), taken=("a",)), _spec(_exactly(2)), False, id="one is taken"),
        pytest.param(_ledger(_device("a", kind="nic")), _spec(_exactly()), False, id="another type"),
        pytest.param(_ledger(_device("a", taints=TAINT)), _spec(_exactly()), False, id="tainted"),
        pytest.param(
            _ledger(_device("a", taints=TAINT)),
            _spec(_exactly(tolerations=[{"key": "xid", "operator": "Exists"}])),
            True,
            id="tainted and tolerated",
        ),
        pytest.param(
            _ledger(_device("a"), _device("b")), _spec(_exactly(allocationMode="All")), True, id="all, and all are free"
        ),
        pytest.param(
            _ledger(_device("a"), _device("b"), taken=("a",)),
            _spec(_exactly(allocationMode="All")),
            False,
            id="all, and one is taken",
        ),
        pytest.param(
            _ledger(_device("a", kind="nic")),
            _spec(_exactly(allocationMode="All")),
            False,
            id="all, and there are none",
        ),
        pytest.param(
            _ledger(_device("a", numa=0), _device("b", numa=1), _device("c", numa=1)),
            _spec(_exactly(2), same="gpu.x/numa"),
            True,
            id="two of one kind",
        ),
        pytest.param(
            _ledger(_device("a", numa=0), _device("b", numa=1)),
            _spec(_exactly(2), same="gpu.x/numa"),
            False,
            id="one each of two kinds",
        ),
        pytest.param(
            _ledger(_device("a"), taken=("a",)),
            _spec(_exactly(adminAccess=True)),
            True,
            id="admin access takes nothing",
        ),
        pytest.param(
            _ledger(_device("a")),
            _spec(
                {
                    "name": "r",
                    "firstAvailable": [
                        {"name": "two", "deviceClassName": "gpu", "count": 2},
                        {"name": "one", "deviceClassName": "gpu", "count": 1},
                    ],
                }
            ),
            True,
            id="the second alternative",
        ),
        pytest.param(_ledger(_device("a"), generation=2), _spec(_exactly(2)), False, id="an older generation is gone"),
        pytest.param(
            _ledger(_device("a")),
            _spec({"name": "r", "deviceClassName": "gpu", "count": 1}),
            True,
            id="flat, as in betas",
        ),
    ],
)
def test_a_claim_is_allocated_where_its_devices_are_free(ledger: DeviceLedger, spec: ClaimSpec, expected: bool) -> None:
    """Counts, taints, modes and constraints of one claim on one node."""
    answer = allocate(ledger, "n1", {}, [ledger.need(spec)])
    assert (answer.devices is not None) is expected
    assert not answer.problems


def test_requests_do_not_stand_in_each_others_way() -> None:
    """A wide request gives way to a narrow one that has only one choice, whatever their order."""
    ledger = _ledger(_device("a", numa=0), _device("b", numa=1))
    narrow = _exactly(name="narrow", selectors=[{"cel": {"expression": 'device.attributes["gpu.x"].numa == 0'}}])
    need = ledger.need(_spec(_exactly(name="wide"), narrow))
    answer = allocate(ledger, "n1", {}, [need])
    assert answer.devices == ((("gpu.x", "n1", "b"), ("gpu.x", "n1", "a")),)


def test_two_claims_do_not_get_the_same_device() -> None:
    """What the first claim takes is not free for the second."""
    ledger = _ledger(_device("a"))
    need = ledger.need(_spec(_exactly()))
    assert allocate(ledger, "n1", {}, [need, need]).devices is None


def test_a_selector_that_cannot_be_read_is_told_and_not_assumed() -> None:
    """The claim is not allocated, and the reason says that we do not know."""
    ledger = _ledger(_device("a"))
    need = ledger.need(_spec(_exactly(selectors=[{"cel": {"expression": "device.name == 'a'"}}])))
    answer = allocate(ledger, "n1", {}, [need])
    assert answer.devices is None
    assert "device.name" in answer.problems[0]


def test_a_class_that_does_not_exist_is_named() -> None:
    """The error carries the name of the class."""
    ledger = _ledger(_device("a"))
    with pytest.raises(MissingClassError, match="typo"):
        ledger.need(_spec({"name": "r", "exactly": {"deviceClassName": "typo"}}))


def test_devices_elsewhere_are_out_of_reach() -> None:
    """A slice of one node says nothing about another."""
    ledger = _ledger(_device("a"))
    assert allocate(ledger, "n2", {}, [ledger.need(_spec(_exactly()))]).devices is None
