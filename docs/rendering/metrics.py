"""docs/reference/metrics.md: there are none yet."""

from __future__ import annotations

from docs.rendering.markdown import page


def render() -> str:
    """The page as Markdown."""
    return page(
        "# Metrics",
        "This version serves no metrics. `sevenhop doctor -o json` has the numbers that there are: kinds that cannot "
        "be seen, rules that are broken, what waits in the outbox.",
    )
