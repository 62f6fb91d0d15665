"""
Logs as lines of text for people, or as JSON for whoever collects them.

A call names what it is about with `about(...)`; in JSON these become fields of their own, so that all lines of one
incident can be found:

    log.info("incident %s: %s", incident.id, reason, extra=about(incident=incident.id, workload="prod/llama-70b"))
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

Format = Literal["text", "json"]

FIELDS = ("cluster", "namespace", "workload", "component", "incident", "plan", "step", "rule", "subject", "receiver",
          "reason", "revision", "kind")  # fmt: skip
"""What a line may be about; a closed list, so that nothing else (a message, an environment) comes in by `extra`."""

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_KEY = "sevenhop_about"


def about(**fields: object) -> dict[str, dict[str, str | int]]:
    """
    For `extra` of a log call; empty values are left out.

    Raises:
        ValueError: A name that is not in `FIELDS`.

    >>> about(incident="a1-1", plan="")
    {'sevenhop_about': {'incident': 'a1-1'}}
    """
    unknown = sorted(set(fields) - set(FIELDS))
    if unknown:
        raise ValueError(f"not a field of a log line: {', '.join(unknown)}; there are {', '.join(FIELDS)}")
    return {_KEY: {name: v if isinstance(v, int) else str(v) for name, v in fields.items() if v not in ("", None)}}


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and what it is about."""

    def __init__(self, cluster: str = "") -> None:
        super().__init__()
        self.cluster = cluster

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, tz=UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self.cluster:
            line["cluster"] = self.cluster
        line.update(getattr(record, _KEY, {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


@contextmanager
def logging_as(form: Format, level: str, stream: TextIO | None = None) -> Iterator[Callable[[str], None]]:
    """
    Log to `stream` (the standard error) for a while; gives what names the cluster once it is known.

    Where that name stands in no field (text), it is not shown.
    """
    formatter = JsonFormatter() if form == "json" else logging.Formatter(TEXT)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    level_before = root.level
    root.addHandler(handler)
    root.setLevel(level.upper())

    def name(cluster: str) -> None:
        if isinstance(formatter, JsonFormatter):
            formatter.cluster = cluster

    try:
        yield name
    finally:
        root.removeHandler(handler)
        root.setLevel(level_before)
