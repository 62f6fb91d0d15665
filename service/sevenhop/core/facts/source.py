"""Facts about our own sight: one subject per kind that is watched, or source that is configured."""

from __future__ import annotations

from functools import partial

from sevenhop.core.events import SyncState
from sevenhop.core.facts.schema import Facts, FactSpec, FactType, Unknown, UnknownReason
from sevenhop.core.subject import SubjectKind

_row = partial(FactSpec, subject=SubjectKind.SOURCE, source="our own sources")

SPECS: tuple[FactSpec, ...] = (
    _row(
        name="source.fresh",
        type=FactType.BOOL,
        doc="What this source tells is current. A kind that the API server does not serve is fresh: there are none.",
        unknown_when="the first list has not finished (not_synced)",
    ),
    _row(
        name="source.lag_s",
        type=FactType.DOUBLE,
        unit="s",
        doc="How far behind the source was when it last reported itself; 0 while it keeps up.",
        not_applicable=0.0,
    ),
    _row(
        name="source.clock_skew_s",
        type=FactType.DOUBLE,
        unit="s",
        doc="The source's clock minus ours.",
        unknown_when="the source does not tell its time (no_source)",
    ),
    _row(
        name="source.unreadable",
        type=FactType.INT,
        unit="objects",
        doc="Objects of this kind that exist and that we could not decode.",
        not_applicable=0,
    ),
    _row(
        name="source.forbidden",
        type=FactType.BOOL,
        doc="The API server refuses us this kind.",
        not_applicable=False,
    ),
)


def derive(state: SyncState, *, unreadable: int) -> Facts:
    """Facts of one kind's source; `unreadable` counts its objects that we could not decode."""
    fresh: bool | Unknown = state in (SyncState.SYNCED, SyncState.ABSENT)
    if state is SyncState.NOT_SYNCED:
        fresh = Unknown(UnknownReason.NOT_SYNCED)
    elif state is SyncState.NO_SOURCE:
        fresh = Unknown(UnknownReason.NO_SOURCE)
    return {
        "source.fresh": fresh,
        "source.lag_s": 0.0,
        "source.clock_skew_s": Unknown(UnknownReason.NO_SOURCE, "no source tells its time"),
        "source.unreadable": unreadable,
        "source.forbidden": state is SyncState.FORBIDDEN,
    }
