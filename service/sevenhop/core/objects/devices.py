"""Devices by resource.k8s.io (DRA): what drivers publish, what claims ask for, and what they were given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from sevenhop.core.objects.base import Meta, Object, Slim
from sevenhop.core.objects.pod import NodeSelector, Toleration


class CelSelector(Slim):
    expression: str = ""


class DeviceSelector(Slim):
    cel: CelSelector | None = None


class DeviceRequest(Slim):
    """What one claim asks for; `exactly` in resource.k8s.io/v1, flat in its betas."""

    name: str = ""
    device_class_name: str = ""
    count: int = 1
    allocation_mode: str = "ExactCount"
    admin_access: bool = False
    selectors: Sequence[DeviceSelector] = ()
    tolerations: Sequence[Toleration] = ()
    exactly: DeviceRequest | None = None
    first_available: Sequence[DeviceRequest] = ()


class Devices(Slim):
    requests: Sequence[DeviceRequest] = ()
    constraints: Sequence[dict[str, Any]] = ()


class ClaimSpec(Slim):
    devices: Devices = msgspec.field(default_factory=Devices)


class AllocationResult(Slim):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False


class AllocationDevices(Slim):
    results: Sequence[AllocationResult] = ()


class Allocation(Slim):
    devices: AllocationDevices = msgspec.field(default_factory=AllocationDevices)
    node_selector: NodeSelector | None = None


class ClaimStatus(Slim):
    allocation: Allocation | None = None
    reserved_for: Sequence[dict[str, Any]] = ()


class ResourceClaim(Object):
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class ClaimTemplateSpec(Slim):
    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)


class ResourceClaimTemplate(Object):
    spec: ClaimTemplateSpec = msgspec.field(default_factory=ClaimTemplateSpec)


class DeviceClassSpec(Slim):
    selectors: Sequence[DeviceSelector] = ()
    extended_resource_name: str = ""


class DeviceClass(Object):
    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)


class _AmountShape(Slim):
    value: str | int | float = 0


class _DeviceShape(Slim):
    """What of a device is read as a table or a list must be one."""

    attributes: dict[str, Any] | None = None
    capacity: dict[str, _AmountShape | str | int | float] | None = None
    taints: Sequence[dict[str, Any]] | None = None
    node_selector: NodeSelector | None = None
    basic: dict[str, Any] | None = None


class _PoolShape(Slim):
    generation: int = 0


class _SliceShape(Slim):
    pool: _PoolShape | None = None
    node_selector: NodeSelector | None = None
    devices: Sequence[_DeviceShape] | None = None


class ResourceSlice(Object):
    """
    `spec` as written: driver, nodeName, pool, devices with attributes and capacity.

    Its shape is checked when it is decoded, so that nothing breaks later on what another driver wrote.
    """

    spec: dict[str, Any] = {}

    def __post_init__(self) -> None:
        shape = msgspec.convert(self.spec, _SliceShape)
        for device in shape.devices or ():
            if device.basic is not None:  # up to v1beta1
                msgspec.convert(device.basic, _DeviceShape)
