"""Files to rules: every problem at once, with its line, and a rulebook that survives a bad edit."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sevenhop.core.alerts.rule import SeverityPolicy, Verdict
from sevenhop.core.facts.table import FACTS
from sevenhop.core.subject import Hop, SubjectKind
from sevenhop.rulebook.load import load_rulebook, load_texts, reload_rulebook
from sevenhop.rulebook.schema import format_duration, parse_duration

GOOD = """\
id: too-few
status: stable
subject: component
expr: |
  component.waiting > 0 &&
  component.ready < component.desired
since: component.waiting.since
for: 2m
severity: by_tier
cause: pool
annotations:
  summary: "{{ workload }} waits for {{ component.waiting.gpus }}"
description: A part of a model has fewer replicas than it should have, for want of room.
false_positives: [A planned scale-up.]
triage: |
  1. Look at the pool.
"""
PATH = "rules/scheduling/too-few.yaml"


def problems(text: str, path: str = PATH) -> list[str]:
    return [str(problem) for problem in load_texts({path: text}, FACTS).problems]


def test_a_rule_as_the_core_sees_it() -> None:
    """
    All of the file arrives, durations as durations, and drops and shown facts are derived.
    """
    rule = load_texts({PATH: GOOD}, FACTS).rules[0]

    assert (rule.id, rule.hop, rule.subject, rule.cause) == (
        "too-few",
        Hop.SCHEDULING,
        SubjectKind.COMPONENT,
        SubjectKind.POOL,
    )
    assert (rule.hold, rule.keep_firing) == (timedelta(minutes=2), timedelta(0))
    assert rule.severity is SeverityPolicy.BY_TIER
    assert rule.drops == ("component.intended_zero",)
    assert rule.reads == {"component.waiting", "component.ready", "component.desired", "component.intended_zero"}
    assert rule.shows == {"component.waiting.gpus", "component.ready", "component.min"}


@pytest.mark.parametrize(
    ("drops", "verdict"),
    [("", Verdict.FALSE), ("drops: []", Verdict.TRUE), ("drops: [component.rolling]", Verdict.FALSE)],
    ids=["by default", "none", "its own"],
)
def test_drops_silence_a_rule(drops: str, verdict: Verdict) -> None:
    """
    What is not meant to run is not alerted, unless the rule says otherwise.
    """
    rule = load_texts({PATH: GOOD + drops}, FACTS).rules[0]
    facts = {"component.waiting": 1, "component.ready": 0, "component.desired": 1}

    found = rule.evaluate({**facts, "component.intended_zero": True, "component.rolling": True})

    assert found.verdict is verdict


def test_a_comment_at_the_end_does_not_swallow_the_drops() -> None:
    """
    CEL's comments end with the line.
    """
    text = GOOD.replace("component.desired\n", "component.desired // for want of room\n")
    rule = load_texts({PATH: text}, FACTS).rules[0]

    assert "component.intended_zero" in rule.reads


def edited(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


ADD = "triage: |"
"""A place to put another key in front of."""


@pytest.mark.parametrize(
    ("old", "new", "line", "code", "says"),
    [
        pytest.param("severity:", "severty:", 9, "rule-unknown-key", "did you mean severity?", id="misspelt key"),
        pytest.param("severity: by_tier", "", 1, "rule-missing-key", "severity is required", id="missing key"),
        pytest.param("for: 2m", "for: 120", 8, "rule-bad-value", "such as 90s, 5m or 12h, got 120", id="no unit"),
        pytest.param("for: 2m", "for: -5m", 8, "rule-bad-value", "got '-5m'", id="negative duration"),
        pytest.param("for: 2m", "for: 2m\nfor: 3m", 9, "yaml-duplicate-key", "'for' appears twice", id="key twice"),
        pytest.param("stable", "stabel", 2, "rule-bad-value", "got 'stabel'; did you mean stable?", id="misspelt word"),
        pytest.param("id: too-few", "id: few", 1, "rule-id-not-file-name", "file's name, too-few", id="file name"),
        pytest.param("id: too-few", "id: Too_Few", 1, "rule-bad-value", "got 'Too_Few'", id="no kebab-case"),
        pytest.param(".since", "", 7, "rule-since-not-a-time", "expected a timestamp", id="since is no time"),
        pytest.param(".since", ".sinc", 7, "rule-unknown-fact", "mean component.waiting.since?", id="since unknown"),
        pytest.param(".ready <", ".redy <", 6, "expr-unknown-fact", "mean component.ready?", id="line in a block"),
        pytest.param(".waiting.gpus", ".wait.gpus", 12, "rule-template", "mean component.waiting.gpus?", id="template"),
        pytest.param(
            "{{ component.waiting.gpus }}",
            "{{ count(component.waiting.gups, 'GPU') }}",
            12,
            "rule-template",
            "mean component.waiting.gpus?",
            id="a misspelt count",
        ),
        pytest.param(
            "{{ component.waiting.gpus }}",
            "{{ count(component.waiting.gpus) }}",
            12,
            "rule-template",
            "written count(fact, 'pod')",
            id="a count without its noun",
        ),
        pytest.param(
            "{{ component.waiting.gpus }}",
            "{{ count(workload, 'pod') }}",
            12,
            "rule-template",
            "workload is no whole number",
            id="a count of a label",
        ),
        pytest.param("gpus }}", "gpus }", 12, "rule-template", "{{ without }}", id="open braces"),
        pytest.param("summary:", "sumary:", 11, "rule-missing-key", "annotations.summary", id="no summary"),
        pytest.param("[A planned scale-up.]", "[]", 14, "rule-bad-value", "false_positives", id="empty list"),
        pytest.param("[A planned scale-up.]", "x", 14, "rule-wrong-type", "valid list, got 'x'", id="no list"),
        pytest.param(ADD, f"enabled: maybe\n{ADD}", 15, "rule-wrong-type", "got 'maybe'", id="no boolean"),
        pytest.param(ADD, f"drops: [component.ready]\n{ADD}", 15, "rule-unknown-fact", "not a Boolean", id="drop"),
        pytest.param("by_tier", "!!python/name:os.system x", 9, "yaml-tag", "python/name", id="python in YAML"),
        pytest.param("pool", "!mine {a: b}", 10, "yaml-tag", "!mine", id="tag of somebody else"),
        pytest.param(GOOD, "- a\n- b\n", 1, "rule-wrong-type", "valid dictionary", id="a list"),
        pytest.param(GOOD, "", 1, "yaml-empty", "the file is empty", id="empty"),
        pytest.param(GOOD, "id: [a\n", 1, "yaml-syntax", "expected ',' or ']'", id="broken YAML"),
        pytest.param(GOOD, "a: &x [*x]\n", 1, "yaml-syntax", "contains itself", id="anchor in itself"),
        pytest.param(GOOD, "id: a\n---\nid: b\n", 2, "yaml-syntax", "another document", id="two documents"),
    ],
)
def test_problems(old: str, new: str, line: int, code: str, says: str) -> None:
    """
    Each mistake is told with file, line, code and what to write instead.
    """
    found = problems(edited(old, new))

    assert [said for said in found if said.startswith(f"{PATH}:{line}: {code} ") and says in said], found


def test_all_problems_at_once() -> None:
    """
    A misspelt key, a bad duration and a bad expression need one look.
    """
    text = edited("severity:", "severty:").replace("for: 2m", "for: 2").replace("component.ready <", "component.redy <")

    codes = {said.split(" ")[1] for said in problems(text)}

    assert codes == {"rule-unknown-key", "rule-missing-key", "rule-bad-value", "expr-unknown-fact"}


def test_aliases_cannot_grow_without_bound() -> None:
    """
    A small file that unfolds to millions of values is refused.
    """
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]

    assert any("yaml-syntax more than" in said for said in problems("\n".join(lines)))


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("rules/sceduling/too-few.yaml", "did you mean scheduling?"),
        ("too-few.yaml", "rule-folder-not-hop"),
    ],
)
def test_the_folder_names_the_hop(path: str, code: str) -> None:
    """
    A rule in a folder that is no hop is refused.
    """
    assert [code in said for said in problems(GOOD, path)] == [True]


def test_one_id_once() -> None:
    """
    The second file of an id is refused, and names the first.
    """
    book = load_texts({PATH: GOOD, "rules/pod/too-few.yaml": GOOD}, FACTS)

    assert [str(p) for p in book.problems] == [f"{PATH}:1: rule-duplicate-id too-few is also in rules/pod/too-few.yaml"]


def test_a_bad_file_does_not_spoil_the_others() -> None:
    """
    Rules without a problem are loaded.
    """
    book = load_texts({PATH: GOOD, "rules/pod/x.yaml": "id: x"}, FACTS)

    assert [r.id for r in book.rules] == ["too-few"]
    assert book.problems


def written(folder: Path, text: str) -> Path:
    path = folder / "scheduling" / "too-few.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return folder


def test_a_reload_with_a_problem_keeps_the_old_rulebook(tmp_path: Path) -> None:
    """
    The rules of before stay in force, and the problems are told.
    """
    old = load_rulebook([written(tmp_path, GOOD)], FACTS)

    kept = reload_rulebook(old, [written(tmp_path, edited("for: 2m", "for: x"))], FACTS)
    mended = reload_rulebook(kept, [written(tmp_path, edited("for: 2m", "for: 3m"))], FACTS)

    assert (kept.rules, len(kept.problems)) == (old.rules, 1)
    assert (mended.rules[0].hold, mended.problems) == (timedelta(minutes=3), ())


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        pytest.param("for: 2m", "for: 120s", True, id="another way to write it"),
        pytest.param("Look at the pool", "Look twice", True, id="words"),
        pytest.param("severity: by_tier", "severity: warning", True, id="severity"),
        pytest.param("for: 2m", "for: 3m", False, id="for"),
        pytest.param("for: 2m", "for: 2m\nkeep_firing_for: 1m", False, id="keep"),
        pytest.param("for: 2m", "for: 2m\ndrops: []", False, id="drops"),
        pytest.param("> 0", "> 1", False, id="expr"),
        pytest.param("since: component.waiting.since\n", "", False, id="since"),
    ],
)
def test_the_digest_is_over_what_decides(old: str, new: str, same: bool) -> None:
    """
    Alerts survive new words, and not another condition or clock.
    """
    before = load_texts({PATH: GOOD}, FACTS)
    after = load_texts({PATH: edited(old, new)}, FACTS)

    assert (before.rules[0].digest == after.rules[0].digest) is same


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """
    Not there, not text, nothing in it: a problem each, never an exception.
    """
    (tmp_path / "pod").mkdir()
    (tmp_path / "pod" / "x.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "none").mkdir()

    book = load_rulebook([tmp_path / "pod", tmp_path / "none", tmp_path / "gone.yaml"], FACTS)

    assert {p.code for p in book.problems} == {"file-not-utf8", "rule-none", "file-unreadable"}


@pytest.mark.parametrize("text", ["0s", "90s", "1h30m", "2d", "500ms", "1h0.5s"])
def test_durations_come_back(text: str) -> None:
    """
    What is written is what is read.
    """
    assert parse_duration(format_duration(parse_duration(text))) == parse_duration(text)


@pytest.mark.parametrize("bad", ["5", "5 m", "m", "", "1h 30m", "-1s", "5M", 5, None, True, "9" * 400 + "d"])
def test_a_duration_needs_its_unit(bad: object) -> None:
    """
    180 of what?
    """
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(bad)
