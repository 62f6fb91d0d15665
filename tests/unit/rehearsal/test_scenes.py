"""Scenes of playbooks: what is told wrong is found, and what cannot be played is said in one line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import yaml

from sevenhop.cli import playbooks as cli
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.facts.table import FACTS
from sevenhop.rehearsal.cluster import SceneError
from sevenhop.rehearsal.play import play
from sevenhop.rulebook.load import load_rulebook
from sevenhop.rulebook.playbook_load import load_playbooks
from sevenhop.rulebook.playbook_scene import PlaybookScene
from sevenhop.rulebook.playbook_testing import run_playbook_test_texts
from sevenhop.rulebook.shipped import shipped_playbooks
from tests.shared import ROOT

BOOK = load_playbooks([shipped_playbooks() / "free-gpu-capacity.yaml"])
RULES: tuple[Rule, ...] = tuple(load_rulebook([ROOT / "rules" / "scheduling"], FACTS).rules)
CLUSTER: dict[str, Any] = {
    "nodes": {"gpu-1": 2, "gpu-2": 2},
    "workloads": {
        "llama": {"replicas": 1, "gpus": 1, "tier": "critical", "loads": "20s"},
        "batch": {"replicas": 3, "gpus": 1, "tier": "batch"},
    },
}
STORY: list[dict[str, Any]] = [
    {"at": "10s", "replicas": {"llama": 2}},
    {"at": "3m", "decide": [{"by": "slack:U1"}]},
]


def _patched(change: dict[str, Any]) -> dict[str, Any]:
    return {"at": "1s", "patch": [{"kind": "Deployment.apps", "name": "batch", "set": change}]}


def scene(expect: list[dict[str, Any]], **more: Any) -> PlaybookScene:
    given = {"name": "a scene", "cluster": CLUSTER, "story": STORY, "expect": expect, **more}
    return PlaybookScene.model_validate(given)


def differences(expect: dict[str, Any], **more: Any) -> list[str]:
    (playbook,) = BOOK.playbooks
    return [text for _, text in play(playbook, scene([expect], **more), RULES)]


def test_a_scene_that_goes_as_told() -> None:
    """Nothing is otherwise, for every key that may be expected."""
    expect = {
        "at": "6m",
        "fires": [],
        "plan": "succeeded",
        "says": "batch 3 → 2",
        "told": "begins with a dry run",
        "replicas": {"batch": 2},
        "ready": {"llama": 2},
        "cordoned": [],
    }
    assert differences(expect) == []


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        pytest.param({"fires": ["component-short-of-gpus"]}, "nothing does", id="fires"),
        pytest.param({"plan": "none"}, "expected the plan to be none, is succeeded", id="plan"),
        pytest.param({"because": "no-donor"}, "expected no plan because no-donor", id="because"),
        pytest.param({"says": "moon"}, "expected 'moon' to be said", id="says"),
        pytest.param({"told": "moon"}, "expected 'moon' to be answered", id="told"),
        pytest.param({"replicas": {"batch": 3}}, "expected 3 replicas of batch, are 2", id="replicas"),
        pytest.param({"ready": {"llama": 1}}, "expected 1 Ready pods of llama, are 2", id="ready"),
        pytest.param({"cordoned": ["gpu-1"]}, "to be cordoned, are []", id="cordoned"),
    ],
)
def test_what_is_told_wrong_is_found(expect: dict[str, Any], said: str) -> None:
    """Each key that may be expected can fail, by itself, in words."""
    (found,) = differences({"at": "6m", **expect})
    assert said in found


def test_why_there_is_none() -> None:
    """Nobody ranks lower: the reason of planning is the one that is compared."""
    batch = {**CLUSTER["workloads"]["batch"], "tier": "critical"}
    cluster = {**CLUSTER, "workloads": {**CLUSTER["workloads"], "batch": batch}}
    assert differences({"at": "4m", "plan": "none", "because": "no-donor"}, cluster=cluster) == []


def test_the_switch_and_a_stranger() -> None:
    """Both are answered as in production, and nothing is changed."""
    stopped = [STORY[0], {"at": "2m30s", "kill_switch": True}, STORY[1]]
    assert differences({"at": "4m", "told": "the kill switch is on", "replicas": {"batch": 3}}, story=stopped) == []
    stranger = [STORY[0], {"at": "3m", "decide": [{"by": "slack:U9"}]}]
    assert differences({"at": "4m", "told": "may not approve", "replicas": {"batch": 3}}, story=stranger) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param({"story": [{"at": "1s", "advertises": {"gpu-9": 1}}]}, "no Node gpu-9", id="no such node"),
        pytest.param(
            {"story": [{"at": "1s", "stuck": [{"workload": "batch", "node": "gpu-9"}]}]}, "no pod of batch", id="no pod"
        ),
        pytest.param(
            {"cluster": {"nodes": {"gpu-1": 1}, "workloads": {"llama": {"replicas": 2}}}}, "not Ready", id="no room"
        ),
        pytest.param({"story": [_patched({"spec": None})]}, "does not work with what was patched", id="without a spec"),
        pytest.param({"story": [_patched({"spec": {"template": 7}})]}, "does not work", id="no template"),
    ],
)
def test_what_cannot_be_played(more: dict[str, Any], said: str) -> None:
    """A scene that is about something that is not there is no scene that passes."""
    with pytest.raises(SceneError, match=said):
        differences({"at": "1m", "plan": "none"}, **more)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param({"samples": [{"at": "1s", "xid": 79}]}, "agents: true", id="samples without agents"),
        pytest.param({"story": [{"at": "1s", "replicas": {"lama": 1}}]}, "no workload lama", id="unknown workload"),
        pytest.param({"cluster": {"nodes": {"a": 1}, "agents": True}}, "called node-1", id="names of nodes"),
        pytest.param({"story": [{"at": "2s"}, {"at": "1s"}]}, "go forward", id="backwards"),
        pytest.param(
            {"story": [{"at": "1s", "patch": [{"kind": "Pot", "name": "x", "set": {}}]}]}, "kind such as", id="kind"
        ),
        pytest.param(
            {"approvers": [], "story": [{"at": "1s", "kill_switch": True}]}, "one of `approvers`", id="nobody"
        ),
        pytest.param({"wherever": 1}, "wherever", id="unknown key"),
    ],
)
def test_what_is_written_wrong_is_refused_when_it_is_read(more: dict[str, Any], said: str) -> None:
    """All before anything is played, and with the word that is wrong."""
    with pytest.raises(ValueError, match=said):
        scene([{"at": "3s"}], **more)


def test_a_failure_names_its_line() -> None:
    """As every problem does: path, line of the expectation, code, words."""
    (playbook,) = BOOK.playbooks
    text = (shipped_playbooks() / "free-gpu-capacity.test.yaml").read_text("utf-8")
    written = yaml.safe_dump(
        {
            "playbook": playbook.id,
            "tests": yaml.safe_load(text)["tests"],
            "scenes": [{"name": "one", "cluster": CLUSTER, "expect": [{"at": "1s", "plan": "proposed"}]}],
        },
        sort_keys=False,
    )
    path = "free-gpu-capacity.test.yaml"
    report = run_playbook_test_texts(BOOK, {path: written}, lambda p, s: play(p, s, RULES))
    (failed,) = [failure for result in report.results for failure in result.failures]
    assert (failed.path, failed.code) == (path, "test-failed")
    assert written.splitlines()[failed.line - 1].strip().startswith("- at: 1s")
    assert "one: at 1s expected the plan to be proposed, is none" in failed.message
    assert all(not result.failures for result in run_playbook_test_texts(BOOK, {path: written}).results)


def test_the_command_plays_with_the_rules_that_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a rule that names the playbook its scenes fail, and the command's exit code says so."""
    path = shipped_playbooks() / "restart-device-plugin.yaml"
    args = argparse.Namespace(verb="test", paths=[path], rules=[tmp_path], verbose=False)
    assert cli.run(args) == 1
    assert "expected ['device-plugin-down'" in capsys.readouterr().out
