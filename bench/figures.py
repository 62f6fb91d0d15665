"""What a benchmark measures, and the table of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True, tag="figure"):
    """
    One measured figure.

    Attributes:
        bench: Name of the benchmark.
        what: What was measured.
        value: The median, where it was measured more than once.
        unit: Of `value` and `aim`.
        aim: Where it should be; None for a figure that only stands beside another.
        better: Whether more or less is better.
        note: In a few words: spread, what else was at work.
    """

    bench: str
    what: str
    value: float
    unit: str
    aim: float | None = None
    better: Literal["more", "less"] = "more"
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How good it is, of the aim: 1 and more is met; None without an aim."""
        if self.aim is None:
            return None
        good, base = (self.value, self.aim) if self.better == "more" else (self.aim, self.value)
        return good / base if base else float("inf")

    @property
    def is_met(self) -> bool:
        """A figure without an aim always is."""
        return self.ratio is None or self.ratio >= 1.0


class Skipped(msgspec.Struct, frozen=True, kw_only=True, tag="skipped"):
    """What was not measured, and why."""

    bench: str
    what: str
    why: str


Result = Figure | Skipped


def median(values: Iterable[float]) -> float:
    """Of at least one value."""
    return statistics.median(values)


def percentile(values: Sequence[float], percent: float) -> float:
    """
    The smallest value that at least `percent` % of the values do not exceed.

    >>> percentile([5, 1, 4, 2, 3], 50), percentile([5, 1, 4, 2, 3], 99)
    (3, 5)
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def table_of(results: Iterable[Figure | Skipped]) -> str:
    """All results as a Markdown table, and below it the aims that are missed and what was skipped, by name."""
    results = list(results)
    figures = [result for result in results if isinstance(result, Figure)]
    rows: list[tuple[str, ...]] = [("bench", "what", "median", "aim", "of the aim", "")]
    rows += [_row(figure) for figure in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    with_aim = [figure for figure in figures if figure.aim is not None]
    missed = [figure for figure in with_aim if not figure.is_met]
    lines += ["", f"{len(with_aim) - len(missed)} of {len(with_aim)} aims are met."]
    lines += [f"- MISSED {f.bench}: {f.what}: {_number(f.value)} {f.unit}, aim {_aim(f)}" for f in missed]
    lines += [f"- SKIPPED {r.bench}: {r.what}: {r.why}" for r in results if isinstance(r, Skipped)]
    return "\n".join(lines)


def _row(figure: Figure) -> tuple[str, ...]:
    ratio = figure.ratio
    return (
        figure.bench,
        figure.what,
        f"{_number(figure.value)} {figure.unit}",
        _aim(figure),
        "" if ratio is None else f"{ratio:.2f} {'met' if figure.is_met else 'MISSED'}",
        figure.note,
    )


def _aim(figure: Figure) -> str:
    if figure.aim is None:
        return ""
    return f"{'≥' if figure.better == 'more' else '<'} {_number(figure.aim)} {figure.unit}"


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
