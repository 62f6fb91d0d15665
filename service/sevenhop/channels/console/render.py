"""How an incident looks on a terminal: pure text in, text out."""

from __future__ import annotations

import io
import os
import sys
from datetime import timedelta
from typing import TextIO

import msgspec
from rich.box import ASCII, ROUNDED
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sevenhop.channels.text import clock_time, icon_of, plain, word_of
from sevenhop.core.durations import format_duration
from sevenhop.core.effects import Line, Message, Notify, Role

NARROW = 72
"""Below this many columns labels stand before their text instead of in a column of their own."""

WIDEST = 120
"""Longer lines are tiring to read, however wide the terminal is."""

_TO_COPY = frozenset({Role.COMMAND, Role.LINK})


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """
    What the terminal can do.

    Attributes:
        width: Columns; 0 for a pipe, where nothing is wrapped.
        colour: ANSI colours may be used.
        unicode: Boxes and emoji may be used.
    """

    width: int = 0
    colour: bool = False
    unicode: bool = True
    one_line: bool = False


def look_of(stream: TextIO, *, one_line: bool = False) -> Look:
    """What `stream` can do: colour only on a terminal, and not where ``NO_COLOR`` or ``TERM=dumb`` says so."""
    is_terminal = stream.isatty()
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
    return Look(
        width=_columns(stream) if is_terminal else 0,
        colour=is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
        unicode=encoding.startswith("utf"),
        one_line=one_line,
    )


def _columns(stream: TextIO) -> int:
    if os.environ.get("COLUMNS", "").isdigit():
        return int(os.environ["COLUMNS"]) or 80
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def render(notify: Notify, look: Look, *, is_first: bool, was_over: bool = False) -> str:
    """
    The text to print, without the last newline.

    Args:
        is_first: Nothing was shown of this incident so far; a quiet change is then shown in full too.
        was_over: It was shown as ended already: what changes now is something else.
    """
    message = notify.message
    in_full = notify.anew or is_first
    if look.one_line or not in_full or (message.status == "resolved" and not is_first):
        return _styled(Text(" ".join(_line_parts(notify, look, in_full=in_full, was_over=was_over))), message, look)
    if not look.width:
        return _for_a_pipe(message, look)
    return _box(message, look)


def _line_parts(notify: Notify, look: Look, *, in_full: bool, was_over: bool) -> list[str]:
    message = notify.message
    mark = "" if in_full or (message.status == "resolved" and not was_over) else "changed:"
    parts = [clock_time(message.at, message.at), _head(message, look), mark, plain(message.title)]
    since = f"since {clock_time(message.since, message.at)}"
    if message.status == "resolved" and not was_over:
        since = f"{since}, for {_length(message.at - message.since)}"
    broken = next((plain(line.text) for line in message.lines if line.role is Role.FIRST_BROKEN), "")
    parts += ["·" if look.unicode else "-", since]
    if broken and in_full and message.status != "resolved":
        parts += ["·" if look.unicode else "-", broken]
    if message.plan is not None and not in_full:
        parts += ["·" if look.unicode else "-", _plan_state(message)]
    return [part for part in parts if part]


def _plan_state(message: Message) -> str:
    """Where the plan stands: the last of its lines, which is what most edits are about."""
    lines = [line for line in message.lines if line.role is Role.PLAN]
    name = f"plan {message.plan.plan_id}" if message.plan is not None else "plan"
    return f"{name}: {plain(lines[-1].text)}" if lines else name


def _length(length: timedelta) -> str:
    """
    Of what took hours the seconds say nothing.

    >>> [_length(timedelta(seconds=seconds)) for seconds in (5.9, 390, 7265, 180_000)]
    ['5s', '6m30s', '2h1m', '2d2h']
    """
    seconds = max(int(length.total_seconds()), 0)
    return format_duration(timedelta(seconds=seconds - seconds % 60 if seconds >= 3600 else seconds))


def _head(message: Message, look: Look) -> str:
    """``🔴 CRITICAL · prod-eu ·``"""
    dot = "·" if look.unicode else "-"
    icon = f"{icon_of(message)} " if look.unicode else ""
    where = f" {dot} {plain(message.cluster)}" if message.cluster else ""
    return f"{icon}{word_of(message)}{where} {dot}"


def _for_a_pipe(message: Message, look: Look) -> str:
    """One fact a line, unwrapped, so that grep and less are at home."""
    first = f"{clock_time(message.at, message.at)} {_head(message, look)} {plain(message.title)}"
    since = f"since {clock_time(message.since, message.at)}"
    width = max((len(plain(line.label)) for line in message.lines), default=0)
    rows = [f"  {plain(line.label):<{width}}  {plain(line.text)}" for line in message.lines]
    return "\n".join([f"{first} {'·' if look.unicode else '-'} {since}", *rows])


def _box(message: Message, look: Look) -> str:
    width = max(min(look.width, WIDEST), 24)
    narrow = width < NARROW
    shown: list[RenderableType] = [Text(f"{_head(message, look)} {plain(message.title)}", style="bold")]
    lines = Table.grid(padding=(0, 1, 0, 0), expand=True)
    # What is to be copied must not be wrapped inside a border.
    below = [line for line in message.lines if line.role in _TO_COPY and len(plain(line.text)) > width - 26]
    beside = [line for line in message.lines if line not in below]
    if narrow:
        lines.add_column(overflow="fold")
        for line in beside:
            lines.add_row(Text.assemble((plain(line.label), "bold"), " ", Text(plain(line.text), style=_style(line))))
    else:
        label_width = max((cell_len(plain(line.label)) for line in beside), default=0)
        lines.add_column(width=min(label_width, 20), overflow="fold", style="bold")
        lines.add_column(ratio=1, overflow="fold")
        for line in beside:
            lines.add_row(_literal(line.label), Text(plain(line.text), style=_style(line)))
    if beside:
        shown.append(lines)
    foot = f"since {clock_time(message.since, message.at)} UTC {'·' if look.unicode else '-'} now "
    panel = Panel(
        Group(*shown),
        box=ROUNDED if look.unicode else ASCII,
        border_style=_colour(message),
        subtitle=Text(foot + clock_time(message.at, message.at)),
        subtitle_align="right",
        width=width,
        padding=(0, 1),
    )
    return "\n".join([_printed(panel, look, width), *(f"  {plain(line.label)}: {plain(line.text)}" for line in below)])


def _literal(text: str) -> Text:
    """A `Text` is shown as it is; a `str` would be read as rich's markup."""
    return Text(plain(text))


def _style(line: Line) -> str:
    return {Role.COMMAND: "cyan", Role.LINK: "cyan", Role.NOTE: "dim"}.get(line.role, "")


def _colour(message: Message) -> str:
    if message.status == "resolved":
        return "green" if message.end_reason == "recovered" else "white"
    return {"critical": "red", "warning": "yellow", "info": "blue"}[message.severity.value]


def _styled(text: Text, message: Message, look: Look) -> str:
    """One line, whatever its length: the terminal wraps it, and copying keeps it whole."""
    if not look.colour:
        return text.plain
    text.stylize(_colour(message))
    return _printed(text, look, sys.maxsize >> 32)


def _printed(shown: RenderableType, look: Look, width: int) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=look.colour,
        color_system="standard" if look.colour else None,
        no_color=not look.colour,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
        _environ={},
    )
    console.print(shown, soft_wrap=isinstance(shown, Text))
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip("\n").split("\n"))
