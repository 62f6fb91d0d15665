"""The endpoint slice controller of the simulated cluster: Service → EndpointSlice."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sevenhop.simulation.controllers import is_ready, owner_reference
from sevenhop.simulation.store import Data, Store

_SLICE = "EndpointSlice.discovery.k8s.io"


class EndpointSlices:
    """One slice per Service that selects something; an address per pod with a node, ready as the pod is."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def step(self) -> datetime | None:
        for service in self._store.all("Service"):
            if service["spec"].get("selector"):
                self._reconcile(service)
        return None

    def _reconcile(self, service: Data) -> None:
        meta, spec = service["metadata"], service["spec"]
        pods = [
            pod
            for pod in self._store.all("Pod", meta["namespace"])
            if pod["spec"].get("nodeName") and _selects(spec["selector"], pod)
        ]
        name = f"{meta['name']}-slice"
        ports = [
            {"name": port.get("name", ""), "port": port["targetPort"], "protocol": port.get("protocol", "TCP")}
            for port in spec.get("ports", ())
        ]
        wanted: Data = {
            "metadata": {
                "name": name,
                "namespace": meta["namespace"],
                "labels": {"kubernetes.io/service-name": meta["name"]},
                "ownerReferences": [owner_reference(service)],
            },
            "addressType": "IPv4",
            "endpoints": [_endpoint(pod) for pod in pods],
            "ports": ports,
        }
        found = self._store.find(_SLICE, meta["namespace"], name)
        if found is None:
            self._store.create(_SLICE, wanted)
        elif found["endpoints"] != wanted["endpoints"]:
            self._store.update(_SLICE, {**wanted, "metadata": found["metadata"]})


def _selects(selector: dict[str, Any], pod: Data) -> bool:
    return selector.items() <= (pod["metadata"].get("labels") or {}).items()


def _endpoint(pod: Data) -> Data:
    meta = pod["metadata"]
    is_leaving = bool(meta.get("deletionTimestamp"))
    ready = is_ready(pod) and not is_leaving
    return {
        "addresses": [_address(meta["uid"])],
        "conditions": {"ready": ready, "serving": is_ready(pod), "terminating": is_leaving},
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]},
    }


def _address(uid: str) -> str:
    """Pods of the simulation have no network: an address that is theirs alone, from RFC 2544's block for tests."""
    number = int(uid[-4:], 16)
    return f"198.18.{number // 256}.{number % 256}"
