"""
The body of a webhook: version 4 of Alertmanager's envelope, and under `incident` what that has no place for.

    {"schema": "sevenhop.dev/incident/v1",
     "version": "4", "receiver": "…", "status": "firing" | "resolved", "groupKey": "<incident id>",
     "truncatedAlerts": 0, "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {}, "externalURL": "",
     "alerts": [{"status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint"}],
     "incident": {"id", "key", "episode", "revision", "delivery", "anew", "reason", "title", "severity", "cluster",
                  "since", "at", "end_reason", "cause", "family", "causes": ["<rule id>"],
                  "lines": [{"role", "label", "text"}], "details": ["…"]}}

One incident is one alert: what reads Alertmanager's webhooks reads this.  `endsAt` of a firing one is the zero time of
Go, as Alertmanager writes it.  Labels have the outward names.  `incident.delivery` is the same on every attempt.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sevenhop.channels.text import cut
from sevenhop.core.effects import Message, Notify, Role

SCHEMA = "sevenhop.dev/incident/v1"
NEVER = "0001-01-01T00:00:00Z"

MAX_TEXT = 2_000
MAX_DETAILS = 100
"""So that the body stays far below the megabyte at which many servers refuse it."""


def payload_of(notify: Notify) -> dict[str, Any]:
    """The body, before it becomes JSON."""
    message = notify.message
    labels = {
        "alertname": _text(notify.causes[0]) if notify.causes else "sevenhop",
        **{name: _text(value) for name, value in message.labels.items()},
        "cluster": _text(message.cluster),
        "severity": str(message.severity),
    }
    annotations = _annotations(message)
    return {
        "schema": SCHEMA,
        "version": "4",
        "receiver": notify.receiver,
        "status": message.status,
        "groupKey": notify.incident,
        "truncatedAlerts": 0,
        "groupLabels": {"alertname": labels["alertname"]},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "",
        "alerts": [
            {
                "status": message.status,
                "labels": labels,
                "annotations": annotations,
                "startsAt": _rfc3339(message.since),
                "endsAt": _rfc3339(message.at) if message.status == "resolved" else NEVER,
                "generatorURL": "",
                "fingerprint": notify.key,
            }
        ],
        "incident": {
            "id": notify.incident,
            "key": notify.key,
            "episode": notify.episode,
            "revision": notify.revision,
            "delivery": notify.id,
            "anew": notify.anew,
            "reason": notify.reason,
            "title": _text(message.title),
            "severity": str(message.severity),
            "cluster": _text(message.cluster),
            "since": _rfc3339(message.since),
            "at": _rfc3339(message.at),
            "end_reason": message.end_reason,
            "cause": _text(notify.cause),
            "family": notify.family,
            "causes": [_text(cause) for cause in notify.causes],
            "lines": [
                {"role": str(line.role), "label": _text(line.label), "text": _text(line.text)} for line in message.lines
            ],
            "details": [_text(text) for text in message.details[-MAX_DETAILS:]],
        },
    }


def _text(text: str) -> str:
    return cut(text, MAX_TEXT)


def _annotations(message: Message) -> dict[str, str]:
    texts = {"summary": _text(message.title)}
    texts["description"] = "\n".join(f"{_text(line.label)}: {_text(line.text)}" for line in message.lines)
    links = [line.text for line in message.lines if line.role is Role.LINK]
    if links:
        texts["runbook_url"] = links[0]
    return texts


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
