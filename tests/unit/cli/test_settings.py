"""Settings: one tree, all problems at once, no secret shown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sevenhop.app import desk_of
from sevenhop.settings import IncidentSettings, Settings, SettingsError, load_settings, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1h30m", 5400), ("200ms", 0.2), ("0s", 0), ("1d", 86400), ("1.5h", 5400)],
)
def test_durations(text: str, seconds: float) -> None:
    """A duration carries its unit."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["180", "", "5 m", "m5", "-5m", "5min"])
def test_a_duration_without_a_plain_unit_is_refused(text: str) -> None:
    """180 of what?"""
    with pytest.raises(ValueError, match="expected a duration such as 90s"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["36526d", "999999999d", "9" * 400 + "h"])
def test_a_duration_that_no_date_can_take_is_refused(tmp_path: Path, text: str) -> None:
    """As a setting that is wrong, with its line: later it would end whatever adds it to a date."""
    file = tmp_path / "sevenhop.yaml"
    file.write_text(f"incidents: {{repeat_interval: {text}}}\n")

    with pytest.raises(SettingsError, match=r"sevenhop\.yaml:1: incidents\.repeat_interval: .*too long"):
        load_settings(file, {})


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

    assert sorted(line.partition(" ")[0] for line in caught.value.problems) == [f"{file}:1:", f"{file}:2:"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("cluster: a\nstate: b\ncluster: c\n", "3: 'cluster' appears twice", id="a key twice"),
        pytest.param(
            "receivers:\n  team:\n    type: slak\n",
            "2: receivers.team: there is no type slak; did you mean slack?",
            id="a type that is none",
        ),
        pytest.param("receivers:\n  team: {channel: C1}\n", "2: receivers.team: type is required", id="no type"),
        pytest.param(
            "receivers:\n  team:\n    type: slack\n    chanel: C1\n",
            "4: receivers.team.chanel: unknown key; did you mean channel?",
            id="a key of a receiver",
        ),
        pytest.param(
            "cluster: a\nroute:\n  routes:\n  - receiver: nobody\n",
            "4: route: no receiver named 'nobody'; there are console",
            id="a route to nobody",
        ),
        pytest.param("route:\n  matchers: ['tier=~(']\n", "2: route.matchers: ", id="a matcher that is none"),
        pytest.param(
            "policy: {tiers: {a: gold}}\n", "1: policy.tiers.a: expected one of critical, standard", id="choice"
        ),
        pytest.param("kubernetes: no\n", "1: kubernetes: expected keys below it", id="a section that is none"),
        pytest.param("- a\n", "1: expected sections such as `receivers:`, got a list", id="no mapping"),
        pytest.param("runtime:\n  role: worker\n", "2: runtime.role worker needs redis.url", id="what a role needs"),
    ],
)
def test_a_problem_names_its_line_and_the_fix(text: str, said: str, tmp_path: Path) -> None:
    """Whoever mends it jumps there."""
    file = tmp_path / "sevenhop.yaml"
    file.write_text(text)

    with pytest.raises(SettingsError) as caught:
        load_settings(file, {})

    assert any(f"{file}:{said}" in line for line in caught.value.problems), caught.value.problems


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        pytest.param("NOSUCH", "1", "unknown key", id="unknown"),
        pytest.param("INCIDENTS__GROUP_WAIT", "5", "expected a duration", id="wrong value"),
        pytest.param("RULES", "[a", "expected a list or a mapping", id="not YAML"),
        pytest.param("RECEIVERS__TEAM__TOKEN", "xoxb-secret", "type is required", id="half a receiver"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, said: str, tmp_path: Path) -> None:
    """The file is not to blame for what the environment says; its value, perhaps a token, is not shown."""
    file = tmp_path / "sevenhop.yaml"
    file.write_text("cluster: a\nincidents: {group_wait: 5s}\n")

    with pytest.raises(SettingsError) as caught:
        load_settings(file, {f"SEVENHOP__{name}": value})

    (problem,) = caught.value.problems
    assert problem.startswith(f"environment SEVENHOP__{name}: ")
    assert said in problem
    assert "secret" not in problem


def test_anchors_are_merged(tmp_path: Path) -> None:
    """What stands in a section itself counts more than what ``<<`` brings."""
    file = tmp_path / "sevenhop.yaml"
    file.write_text(
        "receivers:\n  a: &chat {type: slack, channel: C0000000001, token: t}\n  b: {<<: *chat, channel: C0000000002}\n"
    )

    receivers = load_settings(file, {}).receivers

    assert [receivers["a"].channel, receivers["b"].channel] == ["C0000000001", "C0000000002"]  # type: ignore[union-attr]


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


@pytest.mark.parametrize("name", sorted(IncidentSettings.model_fields))
def test_what_is_set_of_incidents_is_what_the_desk_goes_by(name: str) -> None:
    """No key is taken and then forgotten."""
    value = {"link": "https://runbooks.example", "flap_limit": 7}.get(name, timedelta(seconds=77))
    desk = desk_of(Settings.model_validate({"incidents": {name: value}}))
    assert getattr(desk, name) == value
