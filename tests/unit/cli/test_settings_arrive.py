"""What the settings say arrives in the core: no field is read and forgotten."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sevenhop.app import desk_of, policy_of
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.workloads import Tier
from sevenhop.settings import IncidentSettings, PolicySettings, Settings, SettingsError, load_settings


@pytest.mark.parametrize("name", sorted(IncidentSettings.model_fields))
def test_every_setting_of_incidents_reaches_the_desk(name: str) -> None:
    """Under its own name."""
    value: Any = getattr(IncidentSettings(), name)
    other = {timedelta: timedelta(seconds=7), int: 7, str: "https://runbooks.example"}[type(value)]

    settings = Settings(incidents=IncidentSettings(**{name: other}))

    assert getattr(desk_of(settings), name) == other


def test_without_settings_the_core_has_its_own_defaults() -> None:
    """One default, not two that drift apart."""
    ours = DeskSettings(receivers=("console",))

    assert desk_of(Settings()) == ours
    assert policy_of(Settings()) == Policy()


def test_the_tier_of_what_nobody_names() -> None:
    """A stated default wins over priorities; thresholds of one's own replace ours, whatever their order."""
    stated = policy_of(Settings(policy=PolicySettings(default_tier="batch")))
    own = policy_of(Settings(policy=PolicySettings(priority_tiers={"standard": 500, "critical": 9000})))

    assert stated.tier("prod", "") is Tier.BATCH
    assert [own.tier_of_priority(value) for value in (9000, 8999, 500, 499)] == [
        Tier.CRITICAL,
        Tier.STANDARD,
        Tier.STANDARD,
        Tier.BATCH,
    ]


def test_thresholds_that_leave_nobody_standard_are_refused(tmp_path: Path) -> None:
    """With the field's name, so that it is found."""
    file = tmp_path / "sevenhop.yaml"
    file.write_text("policy: {priority_tiers: {critical: 10, standard: 10}}\n")

    with pytest.raises(SettingsError, match=r"policy\.priority_tiers: critical must ask for a higher priority"):
        load_settings(file, {})
