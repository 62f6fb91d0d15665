"""What Slack refuses of a message, and what it would make of its markup; limits from docs.slack.dev."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

MAX_TEXT = 40_000
MAX_ALL_BLOCKS = 13_200
MAX_METADATA_BYTES = 8_000

_KNOWN = {"header", "section", "context", "actions", "divider", "image", "rich_text", "table", "markdown"}
_MENTION = re.compile(r"<(?:!(?!date\^)|@|#)[^>]*>")


def refusal_of(body: dict[str, Any]) -> str:
    """Slack's word for why it does not take this message; empty if it does."""
    text, blocks = body.get("text"), body.get("blocks")
    if not text and not blocks:
        return "no_text"
    if isinstance(text, str) and len(text) > MAX_TEXT:
        return "msg_too_long"
    if blocks is not None:
        if not isinstance(blocks, list):
            return "invalid_blocks_format"
        if len(blocks) > 50 or any(problem_of(block) for block in blocks):
            return "invalid_blocks"
        ids = [block["block_id"] for block in blocks if "block_id" in block]
        if len(ids) != len(set(ids)):
            return "invalid_blocks"
        if sum(len(text) for block in blocks for text in texts_of(block)) > MAX_ALL_BLOCKS:
            return "msg_blocks_too_long"
    return _metadata_refusal(body.get("metadata"))


def _metadata_refusal(metadata: Any) -> str:
    if metadata is None:
        return ""
    if not isinstance(metadata, dict) or set(metadata) != {"event_type", "event_payload"}:
        return "invalid_metadata_format"
    if not isinstance(metadata["event_type"], str) or not isinstance(metadata["event_payload"], dict):
        return "invalid_metadata_format"
    return "metadata_too_large" if len(json.dumps(metadata).encode()) > MAX_METADATA_BYTES else ""


def problem_of(block: Any) -> str:
    """What is wrong with one block; empty if nothing is."""
    if not isinstance(block, dict) or block.get("type") not in _KNOWN:
        return "no such block"
    if len(str(block.get("block_id", ""))) > 255:
        return "block_id"
    match block["type"]:
        case "header":
            return _text_problem(block.get("text"), 150, only="plain_text")
        case "section":
            return _section_problem(block)
        case "context":
            elements = block.get("elements")
            if not isinstance(elements, list) or not 1 <= len(elements) <= 10:
                return "elements"
            return next(filter(None, (_text_problem(e, 3_000) for e in elements if e.get("type") != "image")), "")
        case "actions":
            return _actions_problem(block.get("elements"))
    return ""


def _section_problem(block: dict[str, Any]) -> str:
    fields = block.get("fields")
    if "text" not in block and not fields:
        return "neither text nor fields"
    if "text" in block and (problem := _text_problem(block["text"], 3_000)):
        return problem
    if fields is None:
        return ""
    if not isinstance(fields, list) or not 1 <= len(fields) <= 10:
        return "fields"
    return next(filter(None, (_text_problem(field, 2_000) for field in fields)), "")


def _actions_problem(elements: Any) -> str:
    if not isinstance(elements, list) or not 1 <= len(elements) <= 25:
        return "elements"
    for element in elements:
        if len(str(element.get("value", ""))) > 2_000 or len(str(element.get("action_id", ""))) > 255:
            return "value or action_id"
        if element.get("type") not in {"button", "static_select"}:
            return "no such element"
        if element["type"] == "button":
            problem = _text_problem(element.get("text"), 75, only="plain_text") or _confirm_problem(element)
        else:
            problem = _select_problem(element)
        if problem:
            return problem
        if len(str(element.get("accessibility_label", ""))) > 75:
            return "accessibility_label"
    if sum(element.get("style") == "primary" for element in elements) > 1:
        return "one primary button"
    return ""


def _confirm_problem(element: dict[str, Any]) -> str:
    confirm = element.get("confirm")
    if confirm is None:
        return ""
    limits = {"title": 100, "text": 300, "confirm": 30, "deny": 30}
    return next(filter(None, (_text_problem(confirm.get(name), most) for name, most in limits.items())), "")


def _select_problem(element: dict[str, Any]) -> str:
    options = element.get("options")
    if not isinstance(options, list) or not 1 <= len(options) <= 100:
        return "options"
    for option in options:
        if not 1 <= len(str(option.get("value", ""))) <= 150:
            return "option value"
        if problem := _text_problem(option.get("text"), 75, only="plain_text"):
            return problem
    return _text_problem(element.get("placeholder"), 150, only="plain_text")


def _text_problem(text: Any, limit: int, only: str = "") -> str:
    if not isinstance(text, dict) or text.get("type") not in {"plain_text", "mrkdwn"}:
        return "no text object"
    if only and text["type"] != only:
        return f"not {only}"
    if text["type"] == "mrkdwn" and "emoji" in text:
        return "emoji belongs to plain_text"
    content = text.get("text")
    return "" if isinstance(content, str) and 1 <= len(content) <= limit else "length"


def texts_of(value: Any) -> Iterable[str]:
    """All texts of a block, however deep."""
    if isinstance(value, dict):
        if isinstance(value.get("text"), str):
            yield value["text"]
        for inner in value.values():
            if isinstance(inner, dict | list):
                yield from texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)


def mentions_in(body: dict[str, Any]) -> list[str]:
    """What would notify somebody or link to a channel: in the top-level text and in every mrkdwn."""
    places = [body.get("text") or "", *_mrkdwn_of(body.get("blocks") or [])]
    return [mention for place in places for mention in _MENTION.findall(place)]


def _mrkdwn_of(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        if value.get("type") == "mrkdwn" and isinstance(value.get("text"), str):
            yield value["text"]
        for inner in value.values():
            yield from _mrkdwn_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _mrkdwn_of(inner)
