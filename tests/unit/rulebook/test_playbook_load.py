"""Files to playbooks: every problem at once, with its line."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sevenhop.core.facts.table import FACTS
from sevenhop.core.remediation.action import ACTION_NAMES, Action, name_of
from sevenhop.core.remediation.playbook import Goal, Mode
from sevenhop.rulebook.load import load_texts
from sevenhop.rulebook.playbook_load import load_playbook_texts, load_playbooks
from tests.unit.rulebook.test_load import GOOD as RULE
from tests.unit.rulebook.test_load import PATH as RULE_PATH

GOOD = """\
id: lend-gpus
title: Lend GPUs
mode: approve
steps: [steer, scale]
goal: beneficiary-ready
approvers: [slack-group:S1, kubernetes:ann@corp]
approvals: 2
lease: 1h
expires: 10m
remind_after: 4m
description: Lowers a workload of a lower tier for a time, and gives the replicas back.
costs: [Fewer replicas.]
not_for: [A rollout.]
"""
PATH = "playbooks/lend-gpus.yaml"


def problems(text: str, path: str = PATH) -> list[str]:
    return [str(problem) for problem in load_playbook_texts({path: text}).problems]


def edited(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_a_playbook_as_the_core_sees_it() -> None:
    """
    What is written arrives, durations as durations; what is not has the reference's defaults.
    """
    book = load_playbook_texts({PATH: GOOD})
    playbook = book.playbook("lend-gpus")

    assert book.problems == ()
    assert playbook is not None
    assert (playbook.mode, playbook.steps, playbook.goal) == (Mode.APPROVE, ("steer", "scale"), Goal.BENEFICIARY_READY)
    assert (playbook.approvers, playbook.approvals) == (("slack-group:S1", "kubernetes:ann@corp"), 2)
    assert (playbook.lease, playbook.expires) == (timedelta(hours=1), timedelta(minutes=10))
    assert (playbook.cooldown, playbook.most_replicas, playbook.most_concurrent) == (timedelta(minutes=30), 2, 1)
    assert book.playbook("other") is None


def test_names_of_actions_are_those_of_the_core() -> None:
    """
    What steps may name is the tag of each kind of action, no more and no fewer.
    """
    tags = [str(kind.__struct_config__.tag) for kind in Action.__args__]

    assert sorted(ACTION_NAMES) == sorted(tags)
    assert name_of.__doc__


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (edited("scale]", "scael]"), ":4: playbook-unknown-action there is no action 'scael'; did you mean scale?"),
        (edited("scale]", "xyz]"), ":4: playbook-unknown-action there is no action 'xyz'; there are scale, steer, "),
        (edited("[steer, scale]", "[scale, scale]"), ":4: playbook-repeated-step scale stands there twice"),
        (edited("[steer, scale]", "[scale, steer]"), ":4: playbook-step-order steer comes before scale"),
        (
            edited("[steer, scale]", "[steer]").replace("lease: 1h", "lease: 0s"),
            ":4: playbook-one-change exactly one of scale, evict-pod, cordon",
        ),
        (edited("[steer, scale]", "[scale, cordon]"), ":4: playbook-one-change"),
        (edited("beneficiary-ready", "node-cordoned"), ":5: playbook-goal node-cordoned is not what scale brings"),
        (edited("beneficiary-ready", "ready"), ":5: playbook-bad-value goal: expected one of beneficiary-ready"),
        (edited("lease: 1h\n", ""), ": playbook-lease what scale takes is lent: say for how long, such as 2h"),
        (edited("remind_after: 4m", "remind_after: 10m"), ":10: playbook-reminder"),
        (edited("expires: 10m", "expires: 25h"), ":9: playbook-too-long expires: at most 24h"),
        (edited("expires: 10m", "expires: 0s"), ":9: playbook-no-time expires: expected more than 0s"),
        (edited("expires: 10m", "expires: 600"), ":9: playbook-bad-value expires: expected a duration such as 90s"),
        (edited("approvals: 2", "approvals: 3"), ":7: playbook-bad-value approvals: Input should be 1 or 2, got 3"),
        (
            edited("slack-group:S1", "slak:S1"),
            ":6: playbook-bad-value approvers.0: nobody verifies 'slak'; did you mean",
        ),
        (edited("slack-group:S1", "ann"), ":6: playbook-bad-value approvers.0: expected an id such as slack:U0123"),
        (edited("[slack-group:S1, kubernetes:ann@corp]", "[]"), ":6: playbook-nobody-approves mode approve needs"),
        (edited("slack-group:S1, ", ""), ":6: playbook-nobody-approves 2 people must agree, and 1 may"),
        (
            edited("approvals", "aprovals"),
            ":7: playbook-unknown-key aprovals is not used here; did you mean approvals?",
        ),
        (edited("mode: approve", "mode: aprove"), ":3: playbook-bad-value mode: expected one of off, shadow, approve"),
        (edited("title: Lend GPUs\n", ""), ": playbook-missing-key title is required"),
        (edited("id: lend-gpus", "id: other"), ":1: playbook-id-not-file-name other should equal the file's name"),
        (
            GOOD + "most_gpus: 0\n",
            ":14: playbook-bad-value most_gpus: Input should be greater than or equal to 1, got 0",
        ),
        (GOOD + "most_gpus: '8'\n", ":14: playbook-wrong-type most_gpus: Input should be a valid integer, got '8'"),
        (GOOD + "title: again\n", ":14: yaml-duplicate-key 'title' appears twice"),
    ],
    ids=lambda value: value.split(" ")[1] if isinstance(value, str) and value.startswith(":") else "",
)
def test_a_problem_is_told_with_its_line(text: str, expected: str) -> None:
    """
    One line each: the place, the code, the value, the wish, and a suggestion.
    """
    found = problems(text)

    assert len(found) == 1, found
    assert found[0].startswith(PATH)
    assert expected.lstrip(":") in found[0]
    assert not expected[1].isdigit() or found[0].startswith(PATH + expected.split(" ")[0])


def test_what_lends_nothing_has_no_lease() -> None:
    """
    A lease beside a step that takes nothing is a promise that nobody can keep.
    """
    text = edited("[steer, scale]", "[evict-pod]").replace("beneficiary-ready", "owner-ready")

    assert [p.split(" ")[1] for p in problems(text)] == ["playbook-lease"]
    assert problems(text.replace("lease: 1h\n", "")) == []
    assert [p.split(" ")[1] for p in problems(text.replace("[evict-pod]", "[steer, evict-pod]"))] == [
        "playbook-step-order",
        "playbook-lease",
    ]


def test_all_problems_at_once() -> None:
    """
    Every finding of a file is told, in the order of its lines.
    """
    text = edited("scale]", "scael]").replace("approvers: [slack-group:S1, kubernetes:ann@corp]\n", "")
    found = problems(text.replace("remind_after: 4m", "remind_after: 0s"))

    assert [p.split(" ")[1] for p in found] == [
        "playbook-nobody-approves",
        "playbook-unknown-action",
        "playbook-reminder",
    ]


@pytest.mark.parametrize("mode", ["shadow", "off", '"off"'])
def test_what_asks_nobody_needs_no_approvers(mode: str) -> None:
    """
    Shadow and off load without approvers, and `off` means off without quotes too, though YAML reads it as false.
    """
    text = edited("mode: approve", f"mode: {mode}").replace("[slack-group:S1, kubernetes:ann@corp]", "[]")
    book = load_playbook_texts({PATH: text})

    assert [str(p) for p in book.problems] == []
    assert book.playbooks[0].mode == mode.strip('"')


def test_two_files_with_one_id() -> None:
    """
    The second is a problem that names the first.
    """
    book = load_playbook_texts({PATH: GOOD, "more/lend-gpus.yaml": GOOD})

    assert [str(p) for p in book.problems] == [
        f"{PATH}:1: playbook-duplicate-id lend-gpus is also in more/lend-gpus.yaml"
    ]
    assert len(book.playbooks) == 1


def test_files_and_folders(tmp_path: Path) -> None:
    """
    Folders are searched, tests are not playbooks, and what is not there is a problem.
    """
    (tmp_path / "lend-gpus.yaml").write_text(GOOD, "utf-8")
    (tmp_path / "lend-gpus.test.yaml").write_text("x: 1", "utf-8")
    (tmp_path / "none").mkdir()
    book = load_playbooks([tmp_path, tmp_path / "none", tmp_path / "gone.yaml"])

    assert [p.id for p in book.playbooks] == ["lend-gpus"]
    assert [p.code for p in book.problems] == ["file-unreadable", "playbook-none"]


def test_a_rule_names_a_playbook_that_is_there() -> None:
    """
    A misspelt playbook is a problem of the rule; unchecked where playbooks are not known.
    """
    rule = RULE.replace("severity:", "playbook: lend-gpu\nseverity:")

    def told(playbooks: set[str] | None) -> list[str]:
        return [str(p) for p in load_texts({RULE_PATH: rule}, FACTS, playbooks).problems]

    assert told({"lend-gpus"}) == [
        f"{RULE_PATH}:9: rule-unknown-playbook there is no playbook lend-gpu; did you mean lend-gpus?"
    ]
    assert told(set()) == [f"{RULE_PATH}:9: rule-unknown-playbook there is no playbook lend-gpu; there are none"]
    assert told({"lend-gpu"}) == told(None) == []


def test_a_playbook_with_problems_still_has_its_name() -> None:
    """
    A rule is not wrong for the problems of the playbook that it names.
    """
    book = load_playbook_texts({PATH: edited("scale]", "scael]")})

    assert book.playbooks == ()
    assert book.names == {"lend-gpus"}
