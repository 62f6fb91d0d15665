"""docs/reference/causes.md, rendered from the published causes."""

from __future__ import annotations

from docs.rendering.markdown import code, page, table
from sevenhop.core.hops.cause import Cause, Strength
from sevenhop.core.hops.causes import CAUSES
from sevenhop.core.hops.causes_scheduling import COMPUTED_CAUSES
from sevenhop.core.subject import HOPS

_INTRO = """# Causes

Rendered from `service/sevenhop/core/hops/causes.py` by `make docs`; change the code, not this page.

What `cause` can be in a diagnosis, in a message and in the facts that rules compare with: the one table from a failure
to its hop, category and cause.

**Strength** decides which of several clues is reported. A stronger one always wins, then the earlier hop, then the
order of this table; what is weaker than a cause is reported only where nothing better is known.
"""

_STRENGTHS: dict[Strength, str] = {
    Strength.CAUSE: "says why",
    Strength.GENERIC: "says what happened, not why: killed, a probe that gives up",
    Strength.SYMPTOM: "says which part is wrong, never why: a back-off, an engine that did not start",
    Strength.UNEXPLAINED: "says that something is wrong, never what: an exit code",
    Strength.CONSEQUENCE: "is seen from a later hop: not ready, no endpoints",
}


def render() -> str:
    """The page as Markdown."""
    strengths = table(["strength", "the clue"], [[code(s.name.lower()), text] for s, text in _STRENGTHS.items()])
    rows = [
        [f"[{c.slug}](#{c.slug})", c.hop, code(c.category), code(c.strength.name.lower()), _told_by(c)]
        for hop in HOPS
        for c in _of(hop)
    ]
    overview = table(["cause", "hop", "category", "strength", "told by"], rows)
    parts = [_INTRO, strengths, "## Overview", overview]
    for hop in HOPS:
        causes = _of(hop)
        if causes:
            parts.append(f"## Hop {hop}")
            parts += [part for cause in causes for part in _section(cause)]
    return page(*parts)


def _of(hop: str) -> list[Cause]:
    return [cause for cause in CAUSES.values() if cause.hop == hop]


def _told_by(cause: Cause) -> str:
    return "objects only" if cause.slug in COMPUTED_CAUSES else "texts too"


def _section(cause: Cause) -> list[str]:
    return [f"### {cause.slug}", cause.meaning, "\n".join(f"- {step}" for step in cause.next_steps)]
