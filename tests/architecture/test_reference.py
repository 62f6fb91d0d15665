"""docs/reference is what the code says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.render import PAGES, REFERENCE
from sevenhop.core.objects.kinds import KINDS


@pytest.mark.parametrize("name", PAGES)
def test_page_is_current(name: str) -> None:
    """
    A page says what the code says now.
    """
    path = REFERENCE / name

    assert path.exists(), "run make docs"
    assert PAGES[name]() == path.read_text("utf-8"), "run make docs"


def test_no_page_is_left_over() -> None:
    """
    What nothing renders is not in the folder: it would grow old unseen.
    """
    assert [p.name for p in REFERENCE.iterdir() if p.name not in PAGES] == [], "run make docs"


def granted() -> set[tuple[str, str, str]]:
    role: dict[str, Any] = yaml.safe_load(Path(REFERENCE / "cluster-role.yaml").read_text("utf-8"))
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_role_grants_exactly_what_is_watched() -> None:
    """
    A permission nobody needs is as much a failure as a missing one.
    """
    needed = {(kind.group, kind.plural, verb) for kind in KINDS.values() for verb in ("list", "watch")}

    assert needed == granted()


def test_the_role_reads_no_secrets_and_writes_nothing() -> None:
    """
    What SECURITY.md promises: no Secrets, no ConfigMaps, no verb that changes anything.
    """
    assert {verb for _, _, verb in granted()} == {"list", "watch"}
    assert {resource for _, resource, _ in granted()} & {"secrets", "configmaps", "*"} == set()
