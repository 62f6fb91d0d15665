"""
An incident as Slack blocks, inside all of Slack's limits.

Limits from docs.slack.dev (reference/block-kit) and slack_sdk's models; the one on all blocks together is not
documented, was met at about 13,200 characters (github.com/slackapi/bolt-js, 2509), and is kept well below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from sevenhop.channels.slack.markup import code, cut_escaped, escaped, link, literal, local_time
from sevenhop.channels.text import clock_time, cut, icon_of, plain, word_of
from sevenhop.core.effects import Line, Message, Notify, Role

Block = dict[str, Any]

MAX_BLOCKS = 50
MAX_HEADER = 150
MAX_SECTION = 3_000
MAX_ACTIONS = 25
MAX_BLOCK_ID = 255
MAX_ALL = 12_000
"""Characters of all blocks of one message together."""

MAX_LABEL = 80

MAX_TEXT = 3_500
"""Of the top-level text: Slack recommends 4,000."""

MAX_SHORT = 1_000
"""Of a message that is told in short, in which nothing else stands."""

_FOOT = 1_000
"""Kept free for what stands below the lines."""


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """
    What is sent.

    Attributes:
        text: What a screen reader says, and what a notification shows: whole sentences.
        left_out: Lines that did not fit in full, for the thread.
    """

    text: str
    blocks: list[Block]
    left_out: tuple[str, ...] = ()


def parent_of(notify: Notify, *, in_doubt: bool = False, buttons: Sequence[Block] = ()) -> Post:
    """
    The message that stands in the channel.

    Args:
        in_doubt: It may be there already, and the channel could not be asked: it then says so.
        buttons: Elements below the lines; none unless something can be decided.
    """
    message = notify.message
    head = f"{icon_of(message)} {word_of(message)} · {plain(message.title)}"
    blocks: list[Block] = [{"type": "header", "text": _plain_text(cut(head, MAX_HEADER))}]
    blocks.append(_context(_circumstances(message)))
    left_out: list[str] = []
    room = MAX_ALL - _FOOT - sum(map(size_of, blocks)) - sum(map(size_of, buttons))
    # One section a line while there are few; a last one says what did not fit.
    most = MAX_BLOCKS - len(blocks) - 4
    lines = [line for line in message.lines if plain(line.text)]
    for index, line in enumerate(lines):
        shown = _section_text(line)
        limit = min(MAX_SECTION, room)
        if index >= most or limit < _LEAST:
            left_out += [f"{plain(rest.label)} {plain(rest.text)}" for rest in lines[index:]]
            break
        if len(shown) > limit:
            left_out.append(f"{plain(line.label)} {plain(line.text)}")
            shown = _section_text(line, limit)
        blocks.append(_section(shown))
        room -= len(shown)
    if left_out:
        blocks.append(_context(f"{_count(len(left_out), 'line')} in full in the thread"))
    if buttons:
        # A new block_id with each edit, as Slack asks: else a choice that somebody made would stay selected.
        block_id = cut(f"sevenhop/{plain(notify.id)}", MAX_BLOCK_ID)
        blocks.append({"type": "actions", "block_id": block_id, "elements": list(buttons[:MAX_ACTIONS])})
    blocks.append(_context(_foot(notify, in_doubt=in_doubt)))
    return Post(text=sentence_of(message), blocks=blocks, left_out=tuple(left_out))


def in_short(post: Post, why: str) -> Post:
    """
    The same as one plain sentence, where Slack does not take the blocks: a page must not be lost for its looks.

    Args:
        why: Slack's word for it.
    """
    note = f" (in short, without its blocks and buttons: Slack does not take them: {why})"
    return Post(text=f"{cut_escaped(post.text, MAX_SHORT)}{note}", blocks=[])


def details_of(message: Message, left_out: Iterable[str] = ()) -> Post | None:
    """What stands in the thread: lines that had no room above, evidence, history; None if there is nothing."""
    lines = [line for line in (*left_out, *message.details) if plain(line)]
    if not lines:
        return None
    shown: list[str] = []
    room = MAX_ALL - 200
    # The newest are at the end and matter most, so room is given out from there.
    for number, line in enumerate(reversed(lines)):
        text = cut_escaped(literal(line), MAX_SECTION - 10)
        if room < len(text) + 1:
            shown.append(f"… {_count(len(lines) - number, 'earlier line')} left out")
            break
        shown.append(text)
        room -= len(text) + 1
    blocks: list[Block] = [_section(text) for text in packed(reversed(shown), MAX_SECTION)]
    return Post(text=cut_escaped(f"Details: {escaped(message.title)}", MAX_TEXT), blocks=blocks)


def superseded_of(notify: Notify, permalink: str) -> Post:
    """What becomes of an earlier message when the incident was told anew below it."""
    message = notify.message
    head = f"⏬ Told anew · {plain(message.title)}"
    where = link(permalink, "the newer message") if permalink else "a newer message below"
    at = clock_time(message.at, message.at)
    blocks: list[Block] = [
        {"type": "header", "text": _plain_text(cut(head, MAX_HEADER))},
        _context(f"Since {at} UTC this incident continues in {where} · {literal(cut(notify.incident, 100))}"),
    ]
    text = f"Told anew: {escaped(cut(message.title, 300))}. See the newer message."
    return Post(text=cut_escaped(text, MAX_TEXT), blocks=blocks)


def sentence_of(message: Message) -> str:
    """
    The message for those who hear it: screen readers and notifications read this instead of the blocks.
    """
    where = f", {message.cluster}" if message.cluster else ""
    parts = [f"{icon_of(message)} {word_of(message)}{where}: {message.title}"]
    parts.append(f"Since {clock_time(message.since, message.at)} UTC")
    for line in message.lines:
        if line.role in (Role.FIRST_BROKEN, Role.HIT, Role.IF_NOTHING) and plain(line.text):
            parts.append(f"{line.label}: {line.text}")
    return cut_escaped(". ".join(literal(part).rstrip(".") for part in parts) + ".", MAX_TEXT)


def packed(lines: Iterable[str], limit: int) -> list[str]:
    """
    Lines joined to as few texts as the limit allows; each line itself is within it.

    >>> packed(["aa", "bb", "cc"], 5)
    ['aa\\nbb', 'cc']
    """
    texts: list[str] = []
    for line in lines:
        if texts and len(texts[-1]) + 1 + len(line) <= limit:
            texts[-1] += "\n" + line
        else:
            texts.append(line)
    return texts


def size_of(block: Block) -> int:
    """Characters that Slack counts: every text in it."""
    return sum(map(len, _texts(block)))


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in {"text", "value", "url"} and isinstance(inner, str):
                yield inner
            else:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


_LEAST = 80
"""A line with less room than this says nothing; it goes to the thread."""


def _section_text(line: Line, limit: int | None = None) -> str:
    name = cut_escaped(literal(line.label), MAX_LABEL)
    label = f"*{name}*" if name else ""
    room = None if limit is None else limit - len(label) - 10
    if line.role is Role.COMMAND:
        text = code(line.text if room is None else cut(line.text, max(room // 5, 10)))
        return f"{label}\n{text}" if label else text
    if line.role is Role.LINK and re.fullmatch(r"https?://\S+", line.text) and len(line.text) < 1_000:
        return link(line.text, line.label or "Runbook")
    text = literal(line.text)
    if room is not None:
        text = cut_escaped(text, max(room, 10))
    return f"{label}  {text}" if label else text


def _circumstances(message: Message) -> str:
    parts = [literal(cut(message.cluster, 200))] if message.cluster else []
    parts.append(f"since {local_time(message.since)}")
    if message.status == "resolved":
        parts.append(f"until {local_time(message.at)}")
    return " · ".join(parts)


def _foot(notify: Notify, *, in_doubt: bool) -> str:
    doubt = "⚠ may be a repeat: the channel could not be asked whether this was posted before · " if in_doubt else ""
    causes = ", ".join(sorted(notify.causes))
    named = f"{causes} · " if causes else ""
    return f"{doubt}{literal(cut(named, 400))} incident {literal(cut(notify.incident, 100))}".replace("  ", " ")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _plain_text(text: str) -> Block:
    # No mentions, no markup and no emoji codes in plain text; pictures are characters.
    return {"type": "plain_text", "text": text, "emoji": False}


def _section(mrkdwn: str) -> Block:
    return {"type": "section", "text": {"type": "mrkdwn", "text": mrkdwn, "verbatim": True}}


def _context(mrkdwn: str) -> Block:
    shown = cut_escaped(mrkdwn, 2_000)
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": shown, "verbatim": True}]}
