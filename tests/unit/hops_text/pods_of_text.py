"""Pods and Events for the tests of this folder, written as YAML would have them."""

from __future__ import annotations

from typing import Any, cast

from sevenhop.core.objects.base import Object
from sevenhop.core.objects.cluster import Event
from sevenhop.core.objects.decode import convert
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod

NOON = "2026-01-02T12:00:00Z"
Doc = dict[str, Any]


def pod(*, status: Doc, spec: Doc | None = None, **meta: Any) -> Pod:
    """A pod `prod/llama-0` with one container `engine` on `gpu-1`, unless `spec` says otherwise."""
    base: Doc = {"nodeName": "gpu-1", "containers": [{"name": "engine", "image": "engine:1"}]}
    document = {"metadata": {"namespace": "prod", "name": "llama-0", **meta}, "spec": base | (spec or {})}
    return cast("Pod", read("Pod", document | {"status": status}))


def event(reason: str, message: str, **fields: Any) -> Event:
    """A Warning about `prod/llama-0`."""
    about = {"kind": "Pod", "namespace": "prod", "name": "llama-0", "fieldPath": fields.pop("path", "")}
    document = {"metadata": {"name": f"llama-0.{reason}"}, "involvedObject": about, "type": "Warning"}
    return cast(
        "Event", read("Event", document | {"reason": reason, "message": message, "lastTimestamp": NOON} | fields)
    )


def container(state: Doc, *, last: Doc | None = None, **fields: Any) -> Doc:
    """Status of the container `engine`."""
    return {"name": "engine", "state": state, "lastState": last or {}} | fields


def running(container_status: Doc, *, ready: str = "False") -> Doc:
    """Status of a Running pod with this one container."""
    return {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": ready}],
        "containerStatuses": [container_status],
    }


def read(kind: str, document: Doc) -> Object:
    """The object that a document describes."""
    return convert(KINDS[kind], document)
