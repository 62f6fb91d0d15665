"""
What is kept over a restart, as rows: alerts that are not inactive, and histories that no list returns.

Rows are JSON, so that a person can read the store.  A row that cannot be read any more is left out and named, never
guessed: the alert then begins anew, the history is unknown until it is covered again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from sevenhop.core.alerts.alert import Alert
from sevenhop.core.effects import Row
from sevenhop.core.inventory.gpu_keeping import KeptGpus, kept_gpus, recall_gpus
from sevenhop.core.inventory.history import Loads, Restarts, SeenGpus
from sevenhop.core.inventory.state import Slot, State
from sevenhop.core.inventory.waiting import Spell

ALERTS = "alerts"
RESTARTS = "restarts"
SEEN_GPUS = "seen_gpus"
LOADS = "loads"
SPELLS = "spells"
SERVED = "served"
AUTOSCALER = "autoscaler"
GPUS = "gpus"
LAST_SEEN = Row("engine", "last_seen", None)
"""Table and key of when the engine last stored anything: what it does not know of begins there."""

_Value = bool | int | float | str | list[int]

# A text and a time look alike in JSON, so times have a place of their own.
_KeptAlert = msgspec.defstruct(
    "_KeptAlert",
    [
        *(
            (field.name, field.type, msgspec.field(default=field.default))
            if field.default is not msgspec.NODEFAULT
            else (field.name, field.type)
            for field in msgspec.structs.fields(Alert)
            if field.name not in ("values", "labels")
        ),
        ("labels", dict[str, str], msgspec.field(default_factory=dict)),
        ("values", dict[str, _Value], msgspec.field(default_factory=dict)),
        ("times", dict[str, datetime], msgspec.field(default_factory=dict)),
    ],
    kw_only=True,
)
_alerts: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_KeptAlert)
_histories: dict[str, msgspec.json.Decoder[Any]] = {
    RESTARTS: msgspec.json.Decoder(tuple[str, Restarts]),
    SEEN_GPUS: msgspec.json.Decoder(SeenGpus),
    LOADS: msgspec.json.Decoder(Loads),
    SPELLS: msgspec.json.Decoder(Spell),
    SERVED: msgspec.json.Decoder(bool),
    GPUS: msgspec.json.Decoder(KeptGpus),
}
_times = msgspec.json.Decoder(datetime)


def alert_row(alert: Alert) -> Row:
    """An inactive alert's row forgets it."""
    key = alert.fingerprint
    if alert.state.value == "inactive":
        return Row(ALERTS, key, None)
    plain = {name: getattr(alert, name) for name in alert.__struct_fields__ if name != "values"}
    values = {name: value for name, value in alert.values.items() if not isinstance(value, datetime)}
    times = {name: value for name, value in alert.values.items() if isinstance(value, datetime)}
    return Row(ALERTS, key, msgspec.json.encode({**plain, "values": values, "times": times}))


def read_alert(value: bytes) -> Alert:
    """
    The inverse of `alert_row`.

    Raises:
        msgspec.MsgspecError: The row is of another version, or damaged.
    """
    kept = _alerts.decode(value)
    plain = {name: getattr(kept, name) for name in Alert.__struct_fields__ if name != "values"}
    return Alert(**plain, values={**kept.values, **kept.times})


def history_rows(state: State) -> Iterator[Row]:
    """Rows of everything in `changed_histories`, which is empty afterwards."""
    changed, state.changed_histories = state.changed_histories, set()
    for table, key in sorted(changed):
        yield Row(table, key, _history(state, table, key))


def load_histories(state: State, rows: Iterable[Row]) -> list[str]:
    """
    Take over what was kept.

    Returns:
        ``table/key: why`` of rows that could not be read.
    """
    problems: list[str] = []
    for row in rows:
        if row.value is None:
            continue
        if row.table == AUTOSCALER:
            state.evidence.seen_autoscaler = True
            continue
        decoder = _histories.get(row.table)
        if decoder is None:
            continue
        try:
            _put(state, row.table, row.key, decoder.decode(row.value))
        except (msgspec.MsgspecError, ValueError) as error:
            problems.append(f"{row.table}/{row.key}: {error}")
    return problems


def read_time(value: bytes) -> datetime:
    """
    Raises:
        msgspec.MsgspecError: Not a time.
    """
    return _times.decode(value)


def _history(state: State, table: str, key: str) -> bytes | None:
    found: Any = None
    if table == RESTARTS:
        namespace, _, name = key.partition("/")
        found = state.restarts.get((namespace, name))
    elif table == SEEN_GPUS:
        found = state.seen_gpus.get(key)
    elif table == LOADS:
        found = state.loads.get(key)
    elif table == SPELLS:
        found = state.spells.get(_slot(key))
    elif table == SERVED:
        namespace, _, name = key.partition("/")
        found = state.served.get((namespace, name))
    elif table == GPUS:
        found = kept_gpus(state.gpus, key)
    elif table == AUTOSCALER:
        found = state.evidence.seen_autoscaler or None
    return None if found is None else msgspec.json.encode(found, order="deterministic")


def _put(state: State, table: str, key: str, found: Any) -> None:
    if table == RESTARTS:
        namespace, _, name = key.partition("/")
        state.restarts[(namespace, name)] = found
    elif table == SEEN_GPUS:
        state.seen_gpus[key] = found
    elif table == LOADS:
        state.loads[key] = found
    elif table == SPELLS:
        state.spells[_slot(key)] = found
    elif table == SERVED:
        namespace, _, name = key.partition("/")
        state.served[(namespace, name)] = found
    elif table == GPUS:
        recall_gpus(state.gpus, key, found)


def _slot(key: str) -> Slot:
    namespace, workload, component = key.split("/", 2)
    return ((namespace, workload), component)
