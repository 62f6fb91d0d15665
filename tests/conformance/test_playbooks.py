"""What every shipped playbook must be; a new one is found by itself."""

from __future__ import annotations

import pytest

from docs.rendering import plan_states
from sevenhop.core.facts.table import FACTS
from sevenhop.core.remediation.guards import GUARDS
from sevenhop.core.remediation.playbook import Mode, Playbook
from sevenhop.core.remediation.states import PlanState
from sevenhop.playbooks_of import build_playbooks, remediation_of
from sevenhop.rulebook.load import load_rulebook
from sevenhop.rulebook.playbook_docs import render
from sevenhop.rulebook.playbook_load import load_playbooks
from sevenhop.rulebook.playbook_testing import run_playbook_tests
from sevenhop.rulebook.shipped import shipped_playbooks, shipped_rules
from sevenhop.rulebook.testing import TestResult
from sevenhop.settings import load_settings
from tests.shared import ROOT

BOOK = load_playbooks([shipped_playbooks()])
REPORT = run_playbook_tests(BOOK, [shipped_playbooks()])


def test_no_shipped_playbook_has_a_problem() -> None:
    """
    Playbooks and their stories load, and none lacks a story.
    """
    assert [str(p) for p in (*BOOK.problems, *REPORT.problems)] == []
    assert {p.id for p in BOOK.playbooks} >= {
        "free-gpu-capacity",
        "restart-pod",
        "cordon-node",
        "restart-device-plugin",
    }


@pytest.mark.parametrize("result", REPORT.results, ids=lambda r: f"{r.rule_id}: {r.name}")
def test_story(result: TestResult) -> None:
    """
    Each story goes as told.
    """
    assert [str(f) for f in result.failures] == []


@pytest.mark.parametrize("playbook", BOOK.playbooks, ids=lambda p: p.id)
def test_shipped_in_shadow(playbook: Playbook) -> None:
    """
    Nothing is asked, and nobody may approve, until an operator says so; in the settings' defaults too.
    """
    settings = load_settings(None, {})
    installed = remediation_of(settings, build_playbooks(settings)).playbooks[playbook.id]

    assert (playbook.mode, playbook.approvers) == (Mode.SHADOW, ())
    assert installed == playbook


def test_rules_name_playbooks_that_are_there() -> None:
    """
    Every shipped rule that names a playbook names a shipped one, and each shipped one is named.
    """
    book = load_rulebook([shipped_rules()], FACTS, BOOK.names)

    assert [str(p) for p in book.problems] == []
    assert {rule.playbook for rule in book.rules if rule.playbook} == BOOK.names


def test_the_reference_is_complete() -> None:
    """
    Every playbook, guard and state is on its page, and the page of playbooks speaks of each of them.
    """
    page, states = render(BOOK), plan_states.render()
    readme = (ROOT / "playbooks" / "README.md").read_text("utf-8")

    for playbook in BOOK.playbooks:
        assert f"## {playbook.id}\n" in page
        assert f"| `{playbook.id}` |" in readme
    assert all(f"| `{guard.name}` |" in page for guard in GUARDS)
    assert all(f"| `{state}` |" in states for state in PlanState)
