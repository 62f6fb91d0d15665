"""
`python -m docs.render` (`make docs`): writes docs/reference from the code.

tests/architecture/test_reference.py compares, so a page is never older than what it describes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from docs.rendering import actions, causes, channels, chart, cli, kinds, labels, metrics, plan_states, settings
from sevenhop.core.facts.table import FACTS
from sevenhop.frameworks import reference as frameworks
from sevenhop.frameworks.scaling import reference as scaling
from sevenhop.rulebook import docs as rules
from sevenhop.rulebook import facts_docs, playbook_docs
from sevenhop.rulebook.load import load_rulebook
from sevenhop.rulebook.playbook_load import load_playbooks
from sevenhop.rulebook.shipped import shipped_playbooks, shipped_rules

REFERENCE = Path(__file__).parent / "reference"


def _rules() -> str:
    return rules.render(load_rulebook([shipped_rules()], FACTS).rules)


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings.render,
    "cli.md": cli.render,
    "rules.md": _rules,
    "playbooks.md": lambda: playbook_docs.render(load_playbooks([shipped_playbooks()])),
    "plan-states.md": plan_states.render,
    "facts.md": lambda: facts_docs.render(FACTS),
    "causes.md": causes.render,
    "frameworks.md": frameworks.render,
    "scaling.md": scaling.render,
    "actions.md": actions.render,
    "cluster-role-remediation.yaml": actions.render_role,
    "kinds.md": kinds.render,
    "cluster-role.yaml": kinds.render_role,
    "labels.md": labels.render,
    "channels.md": channels.render,
    "metrics.md": metrics.render,
}
"""File name in docs/reference to what renders it."""

CHART = Path(__file__).parent.parent / "helm" / "sevenhop"
CHART_FILES: dict[str, Callable[[], str]] = {
    "files/cluster-role.yaml": kinds.render_role,
    "files/remediation.yaml": chart.render_remediation,
    "values.schema.json": lambda: chart.render_schema((CHART / "values.schema.json").read_text("utf-8")),
}
"""File of the chart to what renders it; tests/unit/chart compares."""


def main() -> int:
    """Write every page; say which changed."""
    REFERENCE.mkdir(exist_ok=True)
    for name, render in PAGES.items():
        path, text = REFERENCE / name, render()
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(f"wrote docs/reference/{name}")
    for name, render in CHART_FILES.items():
        path, text = CHART / name, render()
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(f"wrote helm/sevenhop/{name}")
    for path in sorted(REFERENCE.iterdir()):
        if path.name not in PAGES:
            path.unlink()
            print(f"removed docs/reference/{path.name}, which nothing renders")
    return 0


if __name__ == "__main__":
    sys.exit(main())
