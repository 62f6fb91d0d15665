"""Facts about Sevenhop itself, as subjects that the self rules look at like at any other."""

from __future__ import annotations

from sevenhop.core.facts.schema import Facts
from sevenhop.core.subject import Subject, SubjectKind

RULEBOOK = Subject(SubjectKind.SOURCE, "", "rulebook")
OUTBOX = Subject(SubjectKind.SOURCE, "", "outbox")

_NOTHING_WRONG: Facts = {
    "source.fresh": True,
    "source.lag_s": 0.0,
    "source.clock_skew_s": 0.0,
    "source.unreadable": 0,
    "source.forbidden": False,
    "source.rulebook_problems": 0,
    "source.rules_broken": 0,
    "source.outbox_stuck": False,
}


def own_facts(*, rulebook_problems: int, rules_broken: int, outbox_stuck: bool) -> dict[Subject, Facts]:
    """
    What `AlertBook.evaluate` is to be told about ourselves.

    Args:
        rulebook_problems: Of the files, at the last load.
        rules_broken: Length of `AlertBook.broken()`.
        outbox_stuck: Something waits and the last attempt failed.
    """
    return {
        RULEBOOK: _NOTHING_WRONG | {"source.rulebook_problems": rulebook_problems, "source.rules_broken": rules_broken},
        OUTBOX: _NOTHING_WRONG | {"source.outbox_stuck": outbox_stuck},
    }
