"""docs/reference/labels.md, rendered from the table of labels."""

from __future__ import annotations

from docs.rendering.markdown import code, page, table
from sevenhop.core.facts.schema import LABELS
from sevenhop.core.incidents.labels import ABOUT_THE_INCIDENT, ALWAYS, OUTWARD
from sevenhop.core.inventory.policy import OWNER, TIER

_INTRO = f"""# Labels

Rendered from `service/sevenhop/core/incidents/labels.py` by `make docs`; change the code, not this page.

Rules, routes and silences say the short name; what leaves (the webhook's body, Slack's metadata) carries the outward
one, so that it can be joined with labels of other systems. Labels marked *always* are there even when they are empty.

`tier` comes from the annotation `{TIER}` on the workload's root or its namespace, else from
[policy](settings.md#policy); `owner` from `{OWNER}` in the same way.
"""


def render() -> str:
    """The page as Markdown."""
    rows = [
        [code(name), code(OUTWARD[name]), "always" if OUTWARD[name] in ALWAYS else "where it is known"]
        for name in LABELS
    ]
    extra = ", ".join(code(name) for name in ABOUT_THE_INCIDENT)
    return page(
        _INTRO,
        table(["in rules, routes, silences", "outside", "present"], rows),
        f"Routes and silences may also match on what is true of the incident: {extra}.",
    )
