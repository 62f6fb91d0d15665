"""
An incident as an event of PagerDuty's Events API v2, inside of its limits.

Fields and limits from the API's documentation (PagerDuty/developer-docs, events-API-v2): summary 1,024 characters,
`dedup_key` 255, an event 512 KB.  PagerDuty's urgency follows our severity only where the service is set to dynamic
notifications.
"""

from __future__ import annotations

import json
from datetime import UTC
from enum import StrEnum
from hashlib import sha256
from typing import Any

from sevenhop.channels.text import cut, plain
from sevenhop.core.alerts.rule import Severity
from sevenhop.core.effects import Message, Notify, Role
from sevenhop.core.remediation.states import PlanState
from sevenhop.version import __version__

MAX_SUMMARY = 1_024
MAX_DEDUP_KEY = 255
MAX_EVENT_BYTES = 512_000
MAX_TEXT = 2_000
MAX_DETAILS = 40

SEVERITIES = {Severity.CRITICAL: "critical", Severity.WARNING: "warning", Severity.INFO: "info"}
"""Theirs are critical, error, warning, info, in small letters."""

_ATTENDED = frozenset({PlanState.APPROVED, PlanState.RUNNING})


class Step(StrEnum):
    """`event_action`."""

    TRIGGER = "trigger"
    ACKNOWLEDGE = "acknowledge"
    RESOLVE = "resolve"


def step_of(message: Message) -> Step:
    """Who approved a plan attends to the incident: nobody else needs to be woken while it runs."""
    if message.status == "resolved":
        return Step.RESOLVE
    if message.plan is not None and message.plan.state in _ATTENDED:
        return Step.ACKNOWLEDGE
    return Step.TRIGGER


def is_acknowledged(gist: str) -> bool:
    """Whether this is the digest of an acknowledge of ours."""
    return gist == _digest([Step.ACKNOWLEDGE])


def gist_of(notify: Notify) -> str:
    """Digest of what is worth another event: the rest of a quiet edit would only fill PagerDuty's log."""
    message = notify.message
    step = step_of(message)
    gist: list[object] = [step]
    if step is Step.TRIGGER:  # the others say nothing but themselves
        plan = [message.plan.plan_id, message.plan.state] if message.plan is not None else None
        gist += [message.severity, message.title.partition(" · ")[0], plan]
    return _digest(gist)


def _digest(gist: list[object]) -> str:
    return sha256(json.dumps(gist).encode()).hexdigest()[:12]


def dedup_key_of(notify: Notify) -> str:
    """The incident's id with its episode: the same on every attempt, and another one when it comes back later."""
    return cut(plain(notify.incident), MAX_DEDUP_KEY)


def event_of(notify: Notify, step: Step, routing_key: str) -> dict[str, Any]:
    """The body of one call."""
    event: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": str(step),
        "dedup_key": dedup_key_of(notify),
        "client": f"Sevenhop {__version__}",
    }
    if step is not Step.TRIGGER:
        return event
    message = notify.message
    event["payload"] = {
        "summary": cut(plain(f"{message.cluster}: {message.title}"), MAX_SUMMARY) or "sevenhop",
        "source": cut(_source(message), MAX_SUMMARY),
        "severity": SEVERITIES[message.severity],
        "timestamp": message.since.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "component": _label(message, "inference_workload_component"),
        "group": _label(message, "inference_workload"),
        "class": cut(plain(notify.causes[0]), MAX_SUMMARY) if notify.causes else "",
        "custom_details": _details(notify),
    }
    links = [line.text for line in message.lines if line.role is Role.LINK and line.text.startswith("http")]
    if links:
        event["links"] = [{"href": cut(link, MAX_TEXT), "text": "Runbook"} for link in links[:5]]
    return _within(event)


def _source(message: Message) -> str:
    parts = (message.cluster, message.labels.get("namespace", ""), message.labels.get("inference_workload", ""))
    return "/".join(part for part in map(plain, parts) if part) or "sevenhop"


def _label(message: Message, name: str) -> str:
    return cut(plain(message.labels.get(name, "")), MAX_SUMMARY)


def _details(notify: Notify) -> dict[str, str]:
    """A label that occurs twice is counted: custom details are a mapping."""
    message = notify.message
    details: dict[str, str] = {}
    for line in message.lines[:MAX_DETAILS]:
        label, text = plain(line.label), cut(plain(line.text), MAX_TEXT)
        if not text:
            continue
        name = label or str(line.role)
        number = 2
        while name in details:
            name = f"{label} ({number})"
            number += 1
        details[name] = text
    for name, value in message.labels.items():
        details.setdefault(plain(name), cut(plain(value), MAX_TEXT))
    if message.plan is not None:
        details["Plan id"] = message.plan.plan_id
        if "approve" in message.plan.buttons:
            details["Approve with"] = f"sevenhop approve {message.plan.plan_id}"
    details["Incident"] = notify.incident
    return details


def _within(event: dict[str, Any]) -> dict[str, Any]:
    """Without details where they would make it too large: a page that is refused for its size wakes nobody."""
    if len(json.dumps(event).encode()) > MAX_EVENT_BYTES:
        event["payload"]["custom_details"] = {"Details": "left out, they are too large"}
    return event
