"""docs/reference/plan-states.md, rendered from the table of states."""

from __future__ import annotations

from docs.rendering.markdown import code, page, table
from sevenhop.core.remediation.guards_breaker import COUNTS
from sevenhop.core.remediation.states import NEXT, PlanState

_INTRO = """# Plan states

Rendered from `service/sevenhop/core/remediation/states.py` by `make docs`; change the code, not this page.

What becomes of a plan. No state is left but by the table; each change is told in the incident's thread and stands in
the audit trail with its reason.
"""

_MEANINGS: dict[PlanState, str] = {
    PlanState.PROPOSED: "people are asked, until it expires",
    PlanState.SHADOWED: "made and recorded; nobody was asked, for the playbook is in mode `shadow`",
    PlanState.APPROVED: "as many people as needed said yes; nothing was changed yet",
    PlanState.REJECTED: "a person said no",
    PlanState.EXPIRED: "nobody decided in time: silence is a no",
    PlanState.SUPERSEDED: "the cluster changed, or a newer plan took its place; nothing was done",
    PlanState.RUNNING: "something was tried or changed, and the goal is being watched",
    PlanState.SUCCEEDED: "the goal was reached; what was lent is lent until the lease ends, or for longer if as many "
    "people agree to that as to the plan",
    PlanState.FAILED: "nothing was changed, or nothing could be undone; the words say which",
    PlanState.UNDONE: "the goal was not reached, and everything is as before",
    PlanState.UNKNOWN: "nobody can tell what was changed: a person must look; what is known is said",
    PlanState.RESTORED: "what was lent was given back",
}


def render() -> str:
    """The page as Markdown."""
    rows = [
        [
            code(state),
            _MEANINGS[state],
            ", ".join(code(after) for after in PlanState if after in NEXT[state]) or "– (the end)",
            "yes" if state.is_open else "no",
            "yes" if state in COUNTS else "no",
        ]
        for state in PlanState
    ]
    titles = ["state", "meaning", "may become", "goes on by itself", "counts for the circuit breaker"]
    return page(_INTRO, table(titles, rows))
