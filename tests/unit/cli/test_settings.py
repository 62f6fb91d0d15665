"""Settings: one tree, all problems at once, no secret shown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sevenhop.settings import SettingsError, load_settings, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1h30m", 5400), ("200ms", 0.2), ("0s", 0), ("1d", 86400)],
)
def test_durations(text: str, seconds: float) -> None:
    """A duration carries its unit."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["180", "", "5 m", "m5", "-5m", "1.5h", "5min"])
def test_a_duration_without_a_plain_unit_is_refused(text: str) -> None:
    """180 of what?"""
    with pytest.raises(ValueError, match="expected a duration such as 90s"):
        parse_duration(text)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    """Defaults, file, environment, command line: the later one wins."""
    file = tmp_path / "sevenhop.yaml"
    file.write_text("cluster: from-file\nincidents: {group_wait: 1s, repeat_interval: 1h}\n")

    settings = load_settings(file, {"SEVENHOP__INCIDENTS__GROUP_WAIT": "2s"}, cluster="from-call")

    assert settings.cluster == "from-call"
    assert settings.incidents.group_wait == timedelta(seconds=2)
    assert settings.incidents.repeat_interval == timedelta(hours=1)


def test_all_problems_at_once_with_their_place(tmp_path: Path) -> None:
    """The file is mended once."""
    file = tmp_path / "sevenhop.yaml"
    file.write_text("clutser: x\nincidents: {group_wait: 5}\n")

    with pytest.raises(SettingsError) as caught:
        load_settings(file, {})

    assert len(caught.value.problems) == 2
    assert all(line.startswith(f"{file}: ") for line in caught.value.problems)


def test_a_route_to_nobody_is_an_error(tmp_path: Path) -> None:
    """A page that has no receiver would be lost."""
    file = tmp_path / "sevenhop.yaml"
    file.write_text("route: {receiver: console, routes: [{matchers: ['tier = critical'], receiver: slcak}]}\n")

    with pytest.raises(SettingsError, match="no receiver named 'slcak'; there are console"):
        load_settings(file, {})


def test_broken_yaml_names_the_line(tmp_path: Path) -> None:
    """One line, no traceback."""
    file = tmp_path / "sevenhop.yaml"
    file.write_text("cluster: x\nincidents: {group_wait: 5s\n")

    with pytest.raises(SettingsError, match=rf"^{file}:\d+: "):
        load_settings(file, {})


def test_no_secret_in_an_error(tmp_path: Path) -> None:
    """A wrong section is named, its token is not."""
    file = tmp_path / "sevenhop.yaml"
    file.write_text("receivers: {a: {type: slack, token: xoxb-very-secret, chanel: C1}}\n")

    with pytest.raises(SettingsError) as caught:
        load_settings(file, {})

    assert "very-secret" not in str(caught.value)
