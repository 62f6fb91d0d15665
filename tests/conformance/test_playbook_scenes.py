"""Every shipped playbook from the alert on: played through the core, the guards and the executor, and held to it."""

from __future__ import annotations

import functools

import pytest
import yaml

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.facts.table import FACTS
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.rehearsal.play import play
from sevenhop.rulebook.load import TEST_SUFFIX, load_rulebook
from sevenhop.rulebook.playbook_load import load_playbooks
from sevenhop.rulebook.playbook_scene import PlaybookScene
from sevenhop.rulebook.playbook_timeline import PlaybookTestFile
from sevenhop.rulebook.shipped import shipped_playbooks, shipped_rules

BOOK = load_playbooks([shipped_playbooks()])
SCENES = {
    playbook.id: PlaybookTestFile.model_validate(
        yaml.safe_load((shipped_playbooks() / (playbook.id + TEST_SUFFIX)).read_text("utf-8"))
    ).scenes
    for playbook in BOOK.playbooks
}
ALL = [
    pytest.param(playbook, scene, id=f"{playbook.id}: {scene.name}")
    for playbook in BOOK.playbooks
    for scene in SCENES[playbook.id]
]


@functools.cache
def rules() -> tuple[Rule, ...]:
    return tuple(load_rulebook([shipped_rules()], FACTS).rules)


@pytest.mark.parametrize(("playbook", "scene"), ALL)
def test_a_scene_goes_as_told(playbook: Playbook, scene: PlaybookScene) -> None:
    """Alert, plan, decision, steps, goal and end come at the seconds that are told, and otherwise not."""
    assert [f"{scene.expect[i].at}: {text}" for i, text in play(playbook, scene, rules())] == []


@pytest.mark.parametrize("playbook", BOOK.playbooks, ids=lambda p: p.id)
def test_both_sides_are_told(playbook: Playbook) -> None:
    """In one scene a plan is offered and its goal is reached; in another nothing is offered."""
    words = [[str(e.plan) for e in scene.expect if e.plan is not None] for scene in SCENES[playbook.id]]
    assert any(w[0] == "none" and w.index("none") < w.index("proposed") < w.index("succeeded") for w in words
               if {"none", "proposed", "succeeded"} <= set(w))  # fmt: skip
    assert any(set(w) == {"none"} for w in words)


@pytest.mark.parametrize("playbook", BOOK.playbooks, ids=lambda p: p.id)
def test_the_second_before_it_is_offered_is_told(playbook: Playbook) -> None:
    """In some scene nothing fires at one moment, and at the next that is looked at the plan is there."""
    pairs = [pair for scene in SCENES[playbook.id] for pair in zip(scene.expect, scene.expect[1:], strict=False)]
    assert any(early.fires == [] and late.fires and str(late.plan) == "proposed" for early, late in pairs)
