"""Logs as JSON: one line, one object, and what it is about."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from sevenhop.telemetry.logs import FIELDS, about, logging_as
from tests.builders import node
from tests.unit.runtime.harness import Script, running, until


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_object_with_what_it_is_about() -> None:
    """Time with zone, level, logger, message, cluster, and the fields of the call; line breaks stay inside."""
    stream = io.StringIO()
    with logging_as("json", "info", stream) as name:
        name("prod-eu")
        logging.getLogger("sevenhop.x").warning("two\nlines of %s", "it", extra=about(incident="a-1", plan=""))

    (line,) = lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning", "logger": "sevenhop.x", "message": "two\nlines of it", "cluster": "prod-eu",
        "incident": "a-1",
    }  # fmt: skip


def test_text_stays_text() -> None:
    """What a call is about adds nothing there: the message says it."""
    stream = io.StringIO()
    with logging_as("text", "info", stream):
        logging.getLogger("sevenhop.x").info("hello", extra=about(incident="a-1"))

    assert stream.getvalue().endswith("INFO sevenhop.x: hello\n")


def test_what_was_set_before_is_set_again() -> None:
    """Afterwards the process logs as it did."""
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    with logging_as("json", "debug", io.StringIO()):
        assert root.level == logging.DEBUG
    assert (root.level, root.handlers) == before


@pytest.mark.parametrize("field", ["message", "body", "token", "environment"])
def test_only_what_is_listed_can_be_a_field(field: str) -> None:
    """So that no message of a person's and no environment comes in by the way."""
    assert field not in FIELDS
    with pytest.raises(ValueError, match=field):
        about(**{field: "x"})


def test_an_error_keeps_its_traceback_in_its_line() -> None:
    """A collector that reads line by line gets it whole."""
    stream = io.StringIO()
    with logging_as("json", "info", stream):
        try:
            raise LookupError("gone")
        except LookupError as error:
            logging.getLogger("sevenhop").critical("ended", exc_info=error)

    (line,) = lines(stream)
    assert "LookupError: gone" in line["traceback"]


async def test_all_lines_of_one_incident_can_be_found(tmp_path: Path) -> None:
    """What the runtime says of alerts and messages names rule, subject, incident, receiver and reason."""
    stream = io.StringIO()
    with logging_as("json", "info", stream):
        async with running(tmp_path, {"slack": (slack := Script())}) as plant:
            plant.told.synced(node("n1"))
            plant.told.node("n1", ready=False)
            await until(lambda: len(slack.messages) == 1 and plant.embedded.is_idle)

    said = [line for line in lines(stream) if line["logger"] == "sevenhop.runtime"]
    alert = next(line for line in said if line.get("rule") == "node-gone")
    told = next(line for line in said if line.get("receiver") == "slack")
    assert alert["subject"] == "node:n1"
    assert (told["incident"], told["reason"]) == (slack.messages[0].incident, "first_firing")
