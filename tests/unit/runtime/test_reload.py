"""Rules change while the service runs: a good rulebook is taken, a broken one is said and not taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.facts.table import FACTS
from sevenhop.rulebook.load import load_rulebook
from sevenhop.runtime import reload as reload_module
from sevenhop.runtime.reload import Reloader
from sevenhop.settings import Settings
from tests.builders import node
from tests.unit.runtime.harness import Plant, Script, quick_clock, running, until

RULE = """\
id: {id}
status: experimental
subject: node
expr: "{expr}"
for: 0s
keep_firing_for: 0s
severity: critical
annotations: {{summary: "{{{{ node }}}} is not ready"}}
description: A node that should be there is not, and what ran on it is lost.
false_positives: [A reboot.]
triage: Look at it.
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    (folder / "discovery").mkdir(parents=True)
    write(folder, "node-gone")
    return folder


def write(folder: Path, rule_id: str, expr: str = "!node.ready") -> None:
    (folder / "discovery" / f"{rule_id}.yaml").write_text(RULE.format(id=rule_id, expr=expr))


@asynccontextmanager
async def reloading(
    tmp_path: Path, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Plant, Script]]:
    monkeypatch.setattr(reload_module, "LOOK_EVERY_S", 0.01)
    rulebook = load_rulebook([rules], FACTS)
    settings, slack = Settings(rules=[rules]), Script()
    late = Late()
    async with running(tmp_path / "state", {"slack": slack}, rulebook.rules, clock=quick_clock(), more=[late]) as plant:
        late.reloader = Reloader(settings, rulebook, plant.embedded)
        yield plant, slack


class Late:
    """A reloader needs the runtime that runs it."""

    reloader: Reloader | None = None

    async def run(self, emit: object) -> None:
        await until(lambda: self.reloader is not None)
        assert self.reloader is not None
        await self.reloader.run(emit)  # type: ignore[arg-type]


async def test_a_new_rule_holds_without_a_restart(tmp_path: Path, rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is already wrong fires under the new rule too."""
    async with reloading(tmp_path, rules, monkeypatch) as (plant, slack):
        plant.told.synced(node("n1", ready=False))
        await until(lambda: len(slack.messages) == 1)

        write(rules, "node-gone-too")

        await until(lambda: set(plant.engine.alerts.rules) == {"node-gone", "node-gone-too"})
        await until(lambda: any("node-gone-too" in n.causes for n in slack.messages))


async def test_a_broken_rulebook_leaves_the_earlier_one_in_force(
    tmp_path: Path, rules: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The problem is logged with file and line, is a fact about ourselves, and ends when the file is mended."""
    async with reloading(tmp_path, rules, monkeypatch) as (plant, slack):
        plant.told.synced(node("n1"))
        write(rules, "node-gone", expr="!node.raedy")
        await until(lambda: plant.engine.inventory.state.objects.details.get("rulebook") == "1 problems in the files")

        plant.told.node("n1", ready=False)
        await until(lambda: len(slack.messages) == 1)

        write(rules, "node-gone")
        await until(lambda: plant.engine.inventory.state.objects.details.get("rulebook") == "")

    said = [r.message for r in caplog.records if "rulebook rejected" in r.message]
    assert len(said) == 1
    assert "node-gone.yaml:4" in said[0]
    assert "node.ready" in said[0]  # the suggestion


async def test_a_rule_that_is_removed_ends_its_alerts(
    tmp_path: Path, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says that the rule went, not that all is well."""
    write(rules, "other", expr="node.ready && !node.ready")
    async with reloading(tmp_path, rules, monkeypatch) as (plant, slack):
        plant.told.synced(node("n1", ready=False))
        await until(lambda: len(slack.messages) == 1)

        (rules / "discovery" / "node-gone.yaml").unlink()

        await until(lambda: slack.messages[-1].message.status == "resolved")
    assert slack.messages[-1].message.end_reason == "rule_removed"


async def test_new_rules_hold_in_what_is_built_while_they_are_taken_over(
    rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that a worker takes over meanwhile must not go on with the earlier ones."""
    monkeypatch.setattr(reload_module, "LOOK_EVERY_S", 0.01)
    seen: list[set[str]] = []

    class Runtime:
        async def reload(self, _rules: Iterable[Rule]) -> None:
            seen.append({rule.id for rule in reloader.rulebook.rules})

        def now(self) -> datetime:
            return datetime(2026, 11, 30, tzinfo=UTC)

    async def emit(_events: object) -> None:
        """Nobody is told."""

    reloader = Reloader(Settings(rules=[rules]), load_rulebook([rules], FACTS), Runtime())
    running = asyncio.create_task(reloader.run(emit))
    try:
        write(rules, "node-gone-too")
        await until(lambda: bool(seen))
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert seen == [{"node-gone", "node-gone-too"}]
