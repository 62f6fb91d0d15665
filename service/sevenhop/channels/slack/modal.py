"""
An incident in full, in a window of its own.

Limits from docs.slack.dev (views): title 24, close 24, 100 blocks, a section 3,000.
"""

from __future__ import annotations

from typing import Any

from sevenhop.channels.slack.markup import cut_escaped, literal
from sevenhop.channels.text import plain
from sevenhop.core.effects import Message

MAX_BLOCKS = 100
MAX_SECTION = 3_000
MAX_VIEW = 60_000
"""Characters; Slack takes 250 kB."""


def details_view(message: Message) -> dict[str, Any]:
    """The view for `views.open`."""
    texts = [f"*{literal(line.label)}*  {literal(line.text)}" for line in message.lines if plain(line.text)]
    texts += [literal(detail) for detail in message.details if plain(detail)]
    blocks: list[dict[str, Any]] = [
        {
            "type": "header",
            "text": {"type": "plain_text", "text": plain(message.title)[:150] or "Incident", "emoji": False},
        }
    ]
    room = MAX_VIEW
    for text in texts:
        shown = cut_escaped(text, MAX_SECTION)
        if len(blocks) >= MAX_BLOCKS - 1 or room < len(shown):
            blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": "… more in the thread"}]})
            break
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": shown, "verbatim": True}})
        room -= len(shown)
    return {
        "type": "modal",
        "title": {"type": "plain_text", "text": "Sevenhop"},
        "close": {"type": "plain_text", "text": "Close"},
        "blocks": blocks,
    }
