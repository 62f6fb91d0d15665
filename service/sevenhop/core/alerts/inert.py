"""Which rules cannot fire for want of a source, and what would arm them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.facts.schema import FactSpec


def inert(rule: Rule, available: Collection[str], facts: Mapping[str, FactSpec] | None = None) -> str:
    """
    Why a rule can never fire here; empty if it can.

    Args:
        available: Facts that some source of this installation can make known.
        facts: To name the sources that would arm it.
    """
    if not rule.needs or any(need <= set(available) for need in rule.needs):
        return ""
    ways = [sorted(need - set(available)) for need in rule.needs]
    return "needs " + ", or ".join(dict.fromkeys(" and ".join(_named(name, facts) for name in way) for way in ways))


def _named(name: str, facts: Mapping[str, FactSpec] | None) -> str:
    source = facts[name].source if facts and name in facts else ""
    return f"{name} ({source})" if source else name
