"""What a desk keeps over a restart, and takes over again."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from sevenhop.core.alerts.alert import Alert, AlertState
from sevenhop.core.effects import Row
from sevenhop.core.incidents import lifecycle
from sevenhop.core.incidents.keeping import (
    BEGAN,
    EPISODES,
    INCIDENTS,
    Episode,
    KeptIncident,
    began_row,
    episode_row,
    incident_row,
    read_row,
    silence_row,
)
from sevenhop.core.incidents.silences import Silence
from sevenhop.core.incidents.state import DeskState
from sevenhop.core.keeping import ALERTS, read_alert


def load(state: DeskState, rows: Iterable[Row]) -> list[str]:
    """
    Take over what was kept, alerts included, into an empty state.

    Returns:
        ``table/key: why`` of rows that could not be read.
    """
    rows = list(rows)
    state.began_empty = not rows
    alerts: dict[str, Alert] = {}
    kept: list[KeptIncident] = []
    problems: list[str] = []
    for row in rows:
        try:
            if row.table == ALERTS and row.value is not None:
                alert = read_alert(row.value)
                if alert.state is AlertState.FIRING:
                    alerts[alert.fingerprint] = alert
                continue
            found = read_row(row)
        except (msgspec.MsgspecError, ValueError) as error:
            problems.append(f"{row.table}/{row.key}: {error}")
            continue
        if isinstance(found, KeptIncident):
            kept.append(found)
        elif isinstance(found, Episode):
            state.episodes[row.key] = found
        elif isinstance(found, Silence):
            state.silences[row.key] = found
        elif isinstance(found, datetime):
            state.began_empty, state.empty_since = True, found
    for each in kept:
        _load_incident(state, each, alerts)
    state.unsettled |= state.members.forget_missing()
    # Firing, and in no incident: the incident's row was damaged.
    for fingerprint, alert in alerts.items():
        state.members.load(alert, state.rules.get(alert.rule_id), (), "")
        state.unsettled.add(fingerprint)
    state.problems += problems
    return problems


def _load_incident(state: DeskState, kept: KeptIncident, alerts: dict[str, Alert]) -> None:
    """Its alerts are taken out of `alerts`."""
    incident = kept.incident
    if incident.is_open and incident.told and alerts.keys().isdisjoint(incident.members):
        # The rows of all its alerts are damaged, or of another version.  That says nothing of the cluster: it
        # stands like one that was read back from a channel, until what it is about is seen.
        incident = replace(incident, alerts=(), symptoms=())
    state.incidents[incident.key] = incident
    for fingerprint in incident.members:
        alert = alerts.pop(fingerprint, None)
        if alert is None:
            state.places.note_end(incident.key, lifecycle.STATE_LOST)
            state.touched.add(incident.key)
            continue
        rule = state.rules.get(alert.rule_id)
        explained = kept.explained.get(fingerprint, ())
        state.members.load(alert, rule, explained, kept.folded.get(fingerprint, ""))
        state.places.join(fingerprint, incident.key, is_cause=fingerprint in incident.alerts)
    state.loaded.append(incident.key)


def changed_rows(state: DeskState) -> list[Row]:
    """Rows that changed since the last call."""
    rows = []
    for table, key in state.dirty:
        if table == INCIDENTS:
            rows.append(incident_row(key, _kept(state, key)))
        elif table == EPISODES:
            rows.append(episode_row(key, state.episodes.get(key)))
        elif table == BEGAN:
            rows += [began_row(state.empty_since)] if state.empty_since is not None else []
        else:
            rows.append(silence_row(key, state.silences.get(key)))
    state.dirty.clear()
    return rows


def _kept(state: DeskState, key: str) -> KeptIncident | None:
    incident = state.incidents.get(key)
    if incident is None:
        return None
    nodes = {fp: state.members.maintained_node(fp) for fp in incident.members}
    return KeptIncident(
        incident=incident,
        explained={fp: state.members.explanation(fp) for fp in incident.symptoms},
        folded={fp: node for fp, node in nodes.items() if node},
    )
