"""
What can be clicked below a message.

Limits from docs.slack.dev (button and confirm objects): button text 75 of which about 30 are seen, value 2,000, confirm
title 100, text 300, its buttons 30.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sevenhop.channels.text import cut, plain
from sevenhop.core.effects import Notify, PlanCard
from sevenhop.core.events import Verb

Block = dict[str, Any]

PREFIX = "sevenhop."
SILENCE = f"{PREFIX}silence"
DETAILS = f"{PREFIX}details"

SILENCES = {"30m": "30 minutes", "1h": "1 hour", "2h": "2 hours", "4h": "4 hours", "12h": "12 hours", "24h": "24 hours"}

_LABELS = {
    Verb.APPROVE: "Approve",
    Verb.REJECT: "Reject",
    Verb.UNDO: "Undo",
    Verb.EXTEND: "Extend the lease",
    Verb.RESTORE: "Give back now",
}
_ASKS = {
    Verb.APPROVE: "Approve this change?",
    Verb.UNDO: "Undo this change?",
    Verb.EXTEND: "Keep the capacity longer?",
    Verb.RESTORE: "Give the capacity back now?",
}
"""Verbs that change something in the cluster: asked once more, with the numbers."""


class Value(msgspec.Struct, frozen=True, rename={"plan": "p", "hash": "h", "incident": "i", "revision": "r"}):
    """What a button carries: names only.  It proves nothing: who clicked, and what holds, is looked up."""

    incident: str
    plan: str = ""
    hash: str = ""
    revision: int = 0


def buttons_of(notify: Notify) -> list[Block]:
    """Approve · Reject · Silence · Details, as far as each makes sense now; none for what has ended."""
    message = notify.message
    elements: list[Block] = []
    card = message.plan
    if card is not None:
        elements += [_decision(notify, card, verb) for verb in Verb if verb.value in card.buttons]
    if message.status == "firing":
        value = msgspec.json.encode(Value(notify.incident, revision=notify.revision)).decode()
        elements.append(
            {
                "type": "static_select",
                "action_id": SILENCE,
                "placeholder": _text("Silence"),
                "options": [
                    {"text": _text(words), "value": f"{duration} {notify.incident}"[:150]}
                    for duration, words in SILENCES.items()
                ],
            }
        )
        elements.append({"type": "button", "action_id": DETAILS, "text": _text("Details"), "value": value})
    return elements


def _decision(notify: Notify, card: PlanCard, verb: Verb) -> Block:
    value = Value(notify.incident, card.plan_id, card.plan_hash, notify.revision)
    label = f"{_LABELS[verb]} {card.plan_id}" if verb in (Verb.APPROVE, Verb.REJECT) else _LABELS[verb]
    button: Block = {
        "type": "button",
        "action_id": f"{PREFIX}{verb}",
        "text": _text(cut(label, 30)),
        "value": msgspec.json.encode(value).decode(),
        "accessibility_label": cut(plain(f"{_LABELS[verb]}: {card.question}"), 75),
    }
    if verb in _ASKS:
        button["confirm"] = {
            "title": _text(_ASKS[verb]),
            "text": _text(cut(plain(card.question) or "No details are known.", 300)),
            "confirm": _text(cut(_LABELS[verb], 30)),
            "deny": _text("Cancel"),
        }
    if verb is Verb.APPROVE:
        button["style"] = "primary"
    elif verb is Verb.REJECT:
        button["style"] = "danger"
    return button


def _text(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}
