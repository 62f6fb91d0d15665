"""A recording through the core: for `replay`, `explain --from` and `rules backtest`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sevenhop.app import build_engine, build_rulebook
from sevenhop.cli.output import UsageError
from sevenhop.core.alerts.alert import AlertChanged
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.engine import Engine, Step
from sevenhop.core.events import Event
from sevenhop.rulebook.load import Rulebook
from sevenhop.settings import Settings, load_settings
from sevenhop.sources.recording import Recording, RecordingError

_BATCH = timedelta(milliseconds=100)
"""Events so close together are handled as one step, as they would have arrived."""


def steps(engine: Engine, events: Iterable[Event], until: datetime | None = None) -> Iterator[tuple[datetime, Step]]:
    """
    Feed events in their own time; between them, call the engine whenever it wants to be called.

    Args:
        until: Ignore what came later, and let time pass up to there.
    """
    wake: datetime | None = None
    batch: list[Event] = []
    for event in events:
        if until is not None and event.at > until:
            break
        if batch and event.at - batch[0].at > _BATCH:
            yield (step := _fed(engine, batch))
            wake = step[1].next_wake
            batch = []
            while wake is not None and wake < event.at:
                due = engine.handle([], wake)
                yield wake, due
                wake = _later(due.next_wake, wake)
        batch.append(event)
    if batch:
        yield (step := _fed(engine, batch))
        wake = step[1].next_wake
    while until is not None and wake is not None and wake <= until:
        due = engine.handle([], wake)
        yield wake, due
        wake = _later(due.next_wake, wake)


def _fed(engine: Engine, batch: list[Event]) -> tuple[datetime, Step]:
    now = max(event.at for event in batch)
    return now, engine.handle(batch, now)


def _later(wake: datetime | None, than: datetime) -> datetime | None:
    """An engine that wants to be called at once is called once per instant."""
    return wake if wake is None or wake > than else than + timedelta(milliseconds=1)


def open_recording(path: str) -> Recording:
    """
    Raises:
        UsageError: It cannot be read.
    """
    try:
        return Recording(Path(path))
    except RecordingError as error:
        raise UsageError(str(error)) from None


def engine_at(settings: Settings, path: str, at: datetime | None) -> tuple[Engine, datetime]:
    """The engine as it was at a moment of a recording, by default at its end."""
    recording = open_recording(path)
    engine = build_engine(settings, build_rulebook(settings), recording.header.cluster)
    now = datetime.now(tz=UTC) if recording.header.started_at is None else recording.header.started_at
    try:
        for moment, _step in steps(engine, recording, at):
            now = moment
    except RecordingError as error:
        raise UsageError(str(error)) from None
    return engine, at or now


def replay_rules(path: Path, rules: Iterable[Rule]) -> Iterator[AlertChanged]:
    """What these rules would have said, with default settings."""
    recording = open_recording(str(path))
    engine = build_engine(load_settings(None), Rulebook(tuple(rules), ()), recording.header.cluster)
    try:
        for _, step in steps(engine, recording):
            yield from step.changes
    except RecordingError as error:
        raise UsageError(str(error)) from None
