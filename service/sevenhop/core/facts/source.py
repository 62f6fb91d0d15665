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
        doc="The source's clock minus ours; of many agents, the one that differs most.",
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
    _row(
        name="source.rulebook_problems",
        type=FactType.INT,
        unit="problems",
        doc="Of the rulebook's files as they are now; with any, the earlier rulebook stays in force.",
        source="our own rulebook",
        not_applicable=0,
    ),
    _row(
        name="source.rules_broken",
        type=FactType.INT,
        unit="rules",
        doc="Rules whose expression fails although every fact is there; their alerts are frozen.",
        source="our own rulebook",
        not_applicable=0,
    ),
    _row(
        name="source.outbox_stuck",
        type=FactType.BOOL,
        doc="Messages wait, and the last attempt to deliver one failed.",
        source="our own outbox",
        not_applicable=False,
    ),
)


RULEBOOK = "rulebook"
OUTBOX = "outbox"
"""Sources that are parts of ourselves: in any state but `SYNCED` they have a problem, which their detail tells."""


NO_TIME = Unknown(UnknownReason.NO_SOURCE, "no source tells its time")


def derive(
    kind: str,
    state: SyncState,
    *,
    detail: str = "",
    unreadable: int = 0,
    rules_broken: int = 0,
    clock_skew_s: float | Unknown = NO_TIME,
) -> Facts:
    """
    Facts of one kind's source, or of a part of ourselves.

    Args:
        detail: Of the state; of a rulebook with problems it begins with their number.
        unreadable: Objects of the kind that we could not decode.
        rules_broken: Rules whose expression fails although every fact is there.
    """
    healthy = state in (SyncState.SYNCED, SyncState.ABSENT)
    ours = kind in (RULEBOOK, OUTBOX)
    fresh: bool | Unknown = healthy or ours
    if state is SyncState.NOT_SYNCED and not ours:
        fresh = Unknown(UnknownReason.NOT_SYNCED)
    elif state is SyncState.NO_SOURCE:
        fresh = Unknown(UnknownReason.NO_SOURCE)
    return {
        "source.fresh": fresh,
        "source.lag_s": 0.0,
        "source.clock_skew_s": clock_skew_s,
        "source.unreadable": unreadable,
        "source.forbidden": state is SyncState.FORBIDDEN,
        "source.rulebook_problems": 0 if healthy or kind != RULEBOOK else _leading_number(detail),
        "source.rules_broken": rules_broken if kind == RULEBOOK else 0,
        "source.outbox_stuck": kind == OUTBOX and not healthy,
    }


def _leading_number(text: str) -> int:
    word = text.split(" ", 1)[0]
    return int(word) if word.isdecimal() else 1
