"""The two faces of an Event: events.k8s.io/v1, and core/v1 as it is stored (pkg/apis/events/v1/conversion.go)."""

from __future__ import annotations

from sevenhop.simulation.store import Data, StoreError

GROUP = "events.k8s.io"

_LONGEST_NOTE = 1024


def to_core(event: Data) -> Data:
    """
    Raises:
        StoreError: 422, as pkg/apis/core/validation/events.go says.
    """
    for field in ("eventTime", "reportingController", "reportingInstance", "action", "reason", "type"):
        if not event.get(field):
            raise StoreError(422, "Invalid", f"{field}: Required value")
    if len(event.get("note", "").encode()) > _LONGEST_NOTE:
        raise StoreError(422, "Invalid", f"message: can have at most {_LONGEST_NOTE} characters")
    names = {"regarding": "involvedObject", "note": "message", "reportingController": "reportingComponent"}
    return {names.get(key, key): value for key, value in event.items() if key not in ("apiVersion", "kind")}
