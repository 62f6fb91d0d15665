"""The Kubernetes Event on each object that an act touched: `kubectl describe` then says who, what and why."""

from __future__ import annotations

from datetime import UTC, datetime

from sevenhop.actions._writer import Writer, short_hash
from sevenhop.actions.errors import ActError, PermitError
from sevenhop.actions.pointers import Data
from sevenhop.core.effects import Act
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation.action import ObjectRef
from sevenhop.core.remediation.permit import Purpose

CONTROLLER = "sevenhop.dev/remediator"

REASONS = {
    Purpose.APPLY: "RemediationApplied",
    Purpose.READ_BACK: "RemediationApplied",  # whoever did it may have ended before it was told
    Purpose.UNDO: "RemediationUndone",
    Purpose.RESTORE: "RemediationRestored",
    Purpose.EXTEND: "RemediationExtended",
}

_NOTE_BYTES = 1000
"""The API server takes up to 1 kB (staging/src/k8s.io/api/events/v1/types.go)."""


async def tell(writer: Writer, act: Act, touched: list[ObjectRef], now: datetime) -> str:
    """
    Write the Events; gives what could not be written, for the step's detail.

    An Event is a courtesy: that it is refused does not make the step fail.  Its name is derived, so it exists once.
    """
    reason = REASONS.get(act.purpose)
    if reason is None:
        return ""
    refs = list(dict.fromkeys(touched))
    problems: list[str] = []
    for ref in refs:
        related = next((other for other in refs if other != ref), None)
        try:
            event = await _event(writer, act, ref, related, reason, now)
            await writer.record(ref.namespace or "default", event)
        except PermitError:
            raise
        except ActError as error:
            problems.append(str(error))
    return f"; no Event was written: {problems[0]}" if problems else ""


async def _event(
    writer: Writer, act: Act, ref: ObjectRef, related: ObjectRef | None, reason: str, now: datetime
) -> Data:
    note = act.note or f"{act.plan.title} (plan {act.plan.id})"
    event: Data = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": f"{ref.name[:200].rstrip('.-')}.{short_hash(_once(act), act.plan.hash, str(ref))}",
            "namespace": ref.namespace or "default",
        },
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": CONTROLLER,
        "reportingInstance": "sevenhop",
        "action": "Remediate",
        "reason": reason,
        "type": "Normal",
        "note": note.encode()[:_NOTE_BYTES].decode(errors="ignore"),
        "regarding": await _reference(writer, ref),
    }
    if related is not None:
        event["related"] = await _reference(writer, related)
    return event


def _once(act: Act) -> str:
    """A plan is applied once, whichever step did it, or found it done."""
    return f"{act.plan.id}/applied" if act.purpose in (Purpose.APPLY, Purpose.READ_BACK) else act.id


async def _reference(writer: Writer, ref: ObjectRef) -> Data:
    reference = {"apiVersion": await writer.api_version(ref), "kind": KINDS[ref.kind].kind, "name": ref.name}
    if ref.namespace:
        reference["namespace"] = ref.namespace
    if ref.uid:
        reference["uid"] = ref.uid
    return reference
