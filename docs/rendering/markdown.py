"""The few forms that all pages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """
    A Markdown table; line breaks and bars in cells are made harmless.

    >>> print(table(["a", "b"], [["x|y", 1]]))
    | a | b |
    | --- | --- |
    | x\\|y | 1 |
    """
    lines = [_row(titles), "| " + " | ".join("---" for _ in titles) + " |"]
    return "\n".join([*lines, *(_row(row) for row in rows)])


def code(text: object) -> str:
    """Text as code; "–" where there is none."""
    return f"`{text}`" if str(text) else "–"


def page(*parts: str) -> str:
    """Parts with an empty line between them, ending with a newline."""
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in cells) + " |"
