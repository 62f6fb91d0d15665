"""The settings of remediation: what arrives in the core, and what is refused with words that help."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pytest

from sevenhop.cli.main import main
from sevenhop.core.remediation.guards_freeze import Freeze
from sevenhop.core.remediation.playbook import Mode
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.playbooks_of import build_playbooks, remediation_of
from sevenhop.settings import SettingsError, load_settings
from sevenhop.settings_remediation import parse_time_of_day
from tests.unit.rulebook.test_playbook_load import GOOD


def loaded(tmp_path: Path, text: str) -> RemediationSettings:
    path = tmp_path / "sevenhop.yaml"
    path.write_text(text, "utf-8")
    settings = load_settings(path, {})
    return remediation_of(settings, build_playbooks(settings))


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(SettingsError) as error:
        loaded(tmp_path, text)
    return [problem.partition("remediation.")[2] for problem in error.value.problems]


def test_nothing_is_asked_by_default(tmp_path: Path) -> None:
    """
    Every playbook is in shadow, nobody may approve, the switch is off, and the limits are those of the reference.
    """
    found = loaded(tmp_path, "")

    assert {p.mode for p in found.playbooks.values()} == {Mode.SHADOW}
    assert not any(p.approvers for p in found.playbooks.values())
    assert (found.kill_switch, found.freezes) == (False, ())
    assert (found.breaker.most_failures, found.breaker.window) == (3, timedelta(hours=24))
    assert found.guard_limits.verified_within == timedelta(seconds=60)
    assert found.guard_limits.approval_good_for == timedelta(minutes=15)


def test_an_operator_says_otherwise(tmp_path: Path) -> None:
    """
    Mode, approvers and their number are overridden for one playbook; approvers for all fill in where none are named.
    """
    found = loaded(
        tmp_path,
        """\
remediation:
  kill_switch: true
  approvers: [slack-group:S1]
  playbooks:
    free-gpu-capacity: {mode: approve, approvals: 2}
    cordon-node: {mode: approve, approvers: [kubernetes:ann]}
    restart-pod: {mode: off, approvers: []}
  breaker: {most_failures: 5, window: 6h}
  verified_within: 30s
  approval_good_for: 5m
""",
    )
    by_id = found.playbooks

    assert [(i, str(p.mode), p.approvers, p.approvals) for i, p in sorted(by_id.items())] == [
        ("cordon-node", "approve", ("kubernetes:ann",), 1),
        ("free-gpu-capacity", "approve", ("slack-group:S1",), 2),
        ("restart-device-plugin", "shadow", ("slack-group:S1",), 1),
        ("restart-pod", "off", (), 1),
    ]
    assert found.kill_switch
    assert (found.breaker.most_failures, found.breaker.window) == (5, timedelta(hours=6))
    assert found.guard_limits.verified_within == timedelta(seconds=30)
    assert found.guard_limits.approval_good_for == timedelta(minutes=5)


def test_approvers_of_a_file_stay(tmp_path: Path) -> None:
    """
    A playbook that names its approvers keeps them, whoever is named for the others.
    """
    (tmp_path / "lend-gpus.yaml").write_text(GOOD, "utf-8")
    found = loaded(tmp_path, f"playbooks: [{tmp_path / 'lend-gpus.yaml'}]\nremediation: {{approvers: [slack:U7]}}\n")

    assert list(found.playbooks) == ["lend-gpus"]
    assert found.playbooks["lend-gpus"].approvers == ("slack-group:S1", "kubernetes:ann@corp")


def test_freeze_windows_arrive(tmp_path: Path) -> None:
    """
    Both forms; a time without quotes too, which YAML reads as a number.
    """
    found = loaded(
        tmp_path,
        """\
remediation:
  freeze:
    - {name: nights, days: [fri, mon, mon], from: 22:00, to: 06:30}
    - {name: year end, start: 2026-12-24T00:00:00Z, end: "2027-01-02T00:00:00+01:00"}
""",
    )

    assert found.freezes[0] == Freeze(name="nights", weekdays=(0, 4), since=time(22), until=time(6, 30))
    assert found.freezes[1].start == datetime(2026, 12, 24, tzinfo=UTC)
    assert found.freezes[1].end == datetime(2027, 1, 1, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("playbooks: {free-gpu: {mode: shadow}}", "did you mean free-gpu-capacity?"),
        ("playbooks: {xyz: {mode: shadow}}", "there is no playbook xyz; there are cordon-node, free-gpu-capacity"),
        ("playbooks: {restart-pod: {mode: approve}}", "playbooks.restart-pod: mode approve needs approvers"),
        (
            "playbooks: {restart-pod: {mode: approve, approvals: 2, approvers: [slack:U1]}}",
            "playbooks.restart-pod: 2 people must agree, and 1 may",
        ),
        ("playbooks: {restart-pod: {mode: aprove}}", "playbooks.restart-pod.mode: expected one of off, shadow"),
        ("playbooks: {restart-pod: {approvals: 3}}", "playbooks.restart-pod.approvals: expected one of 1 or 2"),
        ("approvers: [ann]", "approvers.0: expected an id such as slack:U0123"),
        ("approvers: [slak:U1]", "approvers.0: nobody verifies 'slak'; did you mean slack?"),
        ("aprovers: []", "aprovers: unknown key; did you mean approvers?"),
        ("freeze: [{name: x}]", "freeze.0: give start and end, or days with from and to"),
        ("freeze: [{name: x, days: [mon], start: 2026-12-24T00:00:00Z}]", "freeze.0: give start and end, or days"),
        ("freeze: [{name: x, start: 2026-12-24T00:00:00Z}]", "freeze.0: start and end go together"),
        (
            "freeze: [{name: x, start: 2026-12-24T00:00:00, end: 2026-12-25T00:00:00Z}]",
            "freeze.0: start and end need a time zone",
        ),
        (
            "freeze: [{name: x, start: 2026-12-25T00:00:00Z, end: 2026-12-25T00:00:00Z}]",
            "freeze.0: end should be later than start",
        ),
        ("freeze: [{name: x, days: [monday]}]", "freeze.0.days.0: expected one of mon"),
        ("freeze: [{name: x, days: [mon], from: '25:00'}]", "freeze.0.from: expected a time of day in UTC such as"),
        ("freeze: [{name: '', days: [mon]}]", "freeze.0.name: String should have at least 1 character"),
        ("breaker: {most_failures: 0}", "breaker.most_failures: must be greater than or equal to 1"),
        ("verified_within: 60", "verified_within: expected a duration such as 90s"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, expected: str) -> None:
    """
    One problem, with the key that it is about and what to write instead.
    """
    found = problems(tmp_path, f"remediation:\n  {text}\n")

    assert len(found) == 1, found
    assert expected in f"{found[0]}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("00:00", time(0)), ("9:05", time(9, 5)), ("23:59", time(23, 59)), ("24:00", time(0)), (1320, time(22))],
)
def test_times_of_day(value: object, expected: time) -> None:
    """
    Hours and minutes, as people and as YAML write them.
    """
    assert parse_time_of_day(value) == expected


@pytest.mark.parametrize("value", ["", "22", "22:60", "24:01", "-1:00", "22:00:00", True, -5, 99999, None])
def test_no_times_of_day(value: object) -> None:
    """
    Everything else is refused.
    """
    with pytest.raises(ValueError, match="time of day"):
        parse_time_of_day(value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("remediation: {playbooks: {nope: {mode: shadow}}}", "remediation.playbooks.nope: there is no playbook nope"),
        ("remediation: {playbooks: {restart-pod: {mode: approve}}}", "mode approve needs approvers"),
        ("playbooks: [PLACE/broken.yaml]", "broken.yaml:1: playbook-missing-key goal is required"),
    ],
)
def test_what_is_wrong_with_playbooks_is_said_before_a_cluster_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str, said: str
) -> None:
    """One line with the place, exit code 2; no server is needed to hear it, and no playbook is left out in silence."""
    (tmp_path / "broken.yaml").write_text("id: broken\nsteps: [scale]\n")
    config = tmp_path / "sevenhop.yaml"
    config.write_text(settings.replace("PLACE", str(tmp_path)))

    assert main(["run", "--config", str(config), "--kubeconfig", str(tmp_path / "none")]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "something of ours" not in err
