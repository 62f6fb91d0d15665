"""Fresh scheduling cases about what a pod needs beside a node: volumes, and devices of dynamic resource allocation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.fresh_maker import Maker
from tests.testbed.client import Object

DRIVER = "gpu.nvidia.com"
_RESOURCE = "resource.k8s.io/v1"


# Volumes


def _volume(name: str, claim: str) -> dict[str, Any]:
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": claim}}]}


def _claim(make: Maker, *, volume: str = "", storage_class: str = "", mode: str = "ReadWriteOnce") -> str:
    spec: Object = {
        "accessModes": [mode],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }
    if volume:
        spec["volumeName"] = volume
    return make.object("v1", "PersistentVolumeClaim", "weights", spec=spec)


def _persistent(make: Maker, *, zone: str = "", storage_class: str = "", mode: str = "ReadWriteOnce") -> str:
    spec: Object = {
        "capacity": {"storage": "1Gi"},
        "accessModes": [mode],
        "storageClassName": storage_class,
        "csi": {"driver": "csi.example", "volumeHandle": f"{make.namespace}-{make.case.name}"},
        "claimRef": {"namespace": make.namespace, "name": f"{make.case.name}-weights"},
    }
    if zone:
        here = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [f"{make.case.name}-{zone}"]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    return make.object("v1", "PersistentVolume", f"{make.namespace}-pv", namespaced=False, spec=spec)


def _volume_elsewhere(make: Maker) -> None:
    """Its volume lives in a zone where no node of it is, or only a full one."""
    for _ in range(make.dice.randint(1, 2)):
        make.gpu_node("a")
    volume = _persistent(make, zone="b")
    make.ask(1, **_volume("w", _claim(make, volume=volume)))
    make.refused("volume-zone")


def _volume_here(make: Maker) -> None:
    """Of two zones only the volume's will do."""
    make.gpu_node("a")
    make.gpu_node("b")
    volume = _persistent(make, zone=make.dice.choice("ab"))
    make.ask(1, **_volume("w", _claim(make, volume=volume)))
    make.case.fits = True


def _claim_missing(make: Maker) -> None:
    """Nobody made the claim."""
    make.gpu_node()
    make.ask(1, **_volume("w", f"{make.case.name}-weights"))
    make.refused("pvc-missing")


def _claim_unbound(make: Maker) -> None:
    """No volume is there for the claim, and none is made."""
    make.gpu_node()
    make.ask(1, **_volume("w", _claim(make)))
    make.refused("pvc-unbound")


def _only_one_pod(make: Maker) -> None:
    """Another pod has the volume that only one pod may have."""
    node = make.gpu_node()
    volume = _persistent(make, mode="ReadWriteOncePod")
    claim = _volume("w", _claim(make, volume=volume, mode="ReadWriteOncePod"))
    make.case.donors = [make.fill(node, 1, **claim)]
    make.ask(1, **claim)
    make.refused("pvc-in-use")


# Devices


def _devices(make: Maker, node: str, count: int, product: str = "NVIDIA H100 80GB HBM3", **more: Any) -> None:
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"productName": {"string": product}, "type": {"string": "gpu"}, "index": {"int": number}},
            **more,
        }
        for number in range(count)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    make.object(
        _RESOURCE, "ResourceSlice", f"{node}-slice", namespaced=False,
        spec={"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices},
    )  # fmt: skip


def _device_class(make: Maker, resource: str = "") -> str:
    spec: Object = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
    if resource:
        spec["extendedResourceName"] = resource
    return make.object(_RESOURCE, "DeviceClass", f"{make.namespace}-class", namespaced=False, spec=spec)


def _template(make: Maker, device_class: str, name: str, count: int, product: str = "") -> dict[str, Any]:
    request: Object = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    if product:
        expression = f"device.attributes['{DRIVER}'].productName == '{product}'"
        request["selectors"] = [{"cel": {"expression": expression}}]
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}}
    own = make.object(_RESOURCE, "ResourceClaimTemplate", name, spec=spec)
    return {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": own}], "claims": ["gpu"]}


def _dra_node(make: Maker, count: int, **more: Any) -> str:
    node = make.cpu_node()
    _devices(make, node, count, **more)
    return node


def _devices_taken(make: Maker) -> None:
    """Other pods have the devices."""
    device_class = _device_class(make)
    _dra_node(make, 4)
    held = _template(make, device_class, "held", 3)
    make.case.donors = [make.place(0, **held)]
    make.ask(0, **_template(make, device_class, "wanted", make.dice.choice([2, 4])))
    make.case.is_closed = True
    make.refused("dra-unsatisfiable")


def _devices_free(make: Maker) -> None:
    """Some devices are taken, and enough are left."""
    device_class = _device_class(make)
    _dra_node(make, 4)
    make.place(0, **_template(make, device_class, "held", 2))
    make.ask(0, **_template(make, device_class, "wanted", make.dice.choice([1, 2])))
    make.case.is_closed = True
    make.case.fits = True


def _devices_of_another_product(make: Maker) -> None:
    """The product that the selector wants is on no node, or on one."""
    device_class = _device_class(make)
    _dra_node(make, 2)
    there = make.dice.random() < 0.5
    if there:
        _dra_node(make, 2, product="NVIDIA B200")
    make.ask(0, **_template(make, device_class, "wanted", 2, "NVIDIA B200"))
    make.case.is_closed = True
    if there:
        make.case.fits = True
    else:
        make.refused("dra-unsatisfiable")


def _devices_tainted(make: Maker) -> None:
    """The devices carry a taint that nobody tolerates."""
    device_class = _device_class(make)
    _dra_node(make, 2, taints=[{"key": "health", "value": "bad", "effect": "NoSchedule"}])
    make.ask(0, **_template(make, device_class, "wanted", 1))
    make.case.is_closed = True
    make.refused("dra-unsatisfiable")


def _claim_template_missing(make: Maker) -> None:
    """The template of its claim is not there."""
    _device_class(make)
    _dra_node(make, 2)
    claims = [{"name": "gpu", "resourceClaimTemplateName": f"{make.case.name}-nobody"}]
    make.ask(0, resourceClaims=claims, claims=["gpu"])
    make.refused("dra-claim-missing")


def _class_missing(make: Maker) -> None:
    """Its claim is of a class that is not there."""
    _dra_node(make, 2)
    make.ask(0, **_template(make, f"{make.case.name}-typo", "wanted", 1))
    make.refused("device-class-missing")


def _served_by_devices(make: Maker) -> None:
    """A plain request for a resource that devices serve."""
    resource = f"{make.namespace}.example/{make.case.name}"
    _device_class(make, resource)
    _dra_node(make, 4)
    make.place(0, limits={resource: "2"})
    count = make.dice.choice([2, 3, 5])
    make.ask(0, limits={resource: str(count)})
    make.case.is_closed = True
    if count > 2:
        make.refused("dra-extended-resource")
    else:
        make.case.fits = True


RECIPES: dict[str, Callable[[Maker], None]] = {
    "volume-elsewhere": _volume_elsewhere,
    "volume-here": _volume_here,
    "claim-missing": _claim_missing,
    "claim-unbound": _claim_unbound,
    "only-one-pod": _only_one_pod,
    "devices-taken": _devices_taken,
    "devices-free": _devices_free,
    "devices-of-another-product": _devices_of_another_product,
    "devices-tainted": _devices_tainted,
    "claim-template-missing": _claim_template_missing,
    "class-missing": _class_missing,
    "served-by-devices": _served_by_devices,
}
