"""Hot reload: changed rule files are read again; a broken rulebook is said and not taken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Protocol

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.events import SourceChanged, SyncState
from sevenhop.core.facts.source import RULEBOOK
from sevenhop.core.facts.table import FACTS
from sevenhop.playbooks_of import build_playbooks
from sevenhop.rulebook.load import Rulebook, reload_rulebook, rule_files
from sevenhop.rulebook.shipped import shipped_rules
from sevenhop.runtime.embedded import Emit
from sevenhop.settings import Settings

log = logging.getLogger("sevenhop.rules")

LOOK_EVERY_S = 2.0


class Reloadable(Protocol):
    """A runtime that goes on with other rules."""

    async def reload(self, rules: Iterable[Rule]) -> None: ...

    def now(self) -> datetime: ...


class Reloader:
    """A source like any other: it tells of the rulebook, and hands a changed one to the runtime."""

    def __init__(self, settings: Settings, rulebook: Rulebook, embedded: Reloadable) -> None:
        self._settings = settings
        self._paths = settings.rules or [shipped_rules()]
        self._rulebook = rulebook
        self._embedded = embedded
        self._seen = self._stamp()

    @property
    def rulebook(self) -> Rulebook:
        """The rules that hold."""
        return self._rulebook

    async def run(self, emit: Emit) -> None:
        await emit([self._state(0)])
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            stamp = self._stamp()
            if stamp == self._seen:
                continue
            self._seen = stamp
            loaded = reload_rulebook(self._rulebook, self._paths, FACTS, build_playbooks(self._settings).names)
            for problem in loaded.problems:
                log.error("rulebook rejected, the earlier one stays in force: %s", problem)
            is_other = not loaded.problems and loaded.digest != self._rulebook.digest
            self._rulebook = loaded  # an engine that is built meanwhile has them from its beginning
            if is_other:
                await self._embedded.reload(loaded.rules)
            await emit([self._state(len(loaded.problems))])

    def _stamp(self) -> tuple[tuple[str, float, int], ...]:
        found = []
        for file in rule_files(self._paths):
            try:
                stat = Path(file).stat()
            except OSError:
                continue  # gone between listing and looking: the next look sees it
            found.append((str(file), stat.st_mtime, stat.st_size))
        return tuple(found)

    def _state(self, problems: int) -> SourceChanged:
        now = self._embedded.now()
        if problems:
            return SourceChanged(
                at=now, kind=RULEBOOK, state=SyncState.STALE, detail=f"{problems} problems in the files"
            )
        return SourceChanged(at=now, kind=RULEBOOK, state=SyncState.SYNCED)
