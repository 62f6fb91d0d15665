"""Engines for benchmarks: the product's own, filled from generated objects through the source's own decoding."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from bench.generate import BEGIN
from bench.rulebook import rulebook_of
from sevenhop.app import build_engine
from sevenhop.core.engine import Engine
from sevenhop.core.events import Event, SourceChanged, SyncState
from sevenhop.core.objects.kinds import KINDS
from sevenhop.settings import Settings
from sevenhop.sources.kubernetes.observe import Observations

START = BEGIN
RULES = 100


def new_engine(rules: int = RULES) -> Engine:
    """An empty engine with `rules` rules."""
    return build_engine(Settings(state=Path("unused")), rulebook_of(rules), "bench")


class Feed:
    """What the source keeps for each kind, without the network."""

    def __init__(self) -> None:
        self.kinds = {name: Observations(kind) for name, kind in KINDS.items()}

    def list_all(self, engine: Engine, objects: Iterable[dict[str, Any]], at: datetime = START) -> None:
        """List objects into the engine, every kind, and say that all are synced."""
        engine.handle(self.listed(objects, at), at)

    def listed(self, objects: Iterable[dict[str, Any]], at: datetime = START) -> list[Event]:
        """What a source tells of its first lists: these objects, and that every kind is synced."""
        events: list[Event] = []
        names = {(kind.group, kind.kind): name for name, kind in KINDS.items()}
        for seen in self.kinds.values():
            seen.start_list()
        for obj in objects:
            group = obj["apiVersion"].rpartition("/")[0]
            raw = msgspec.Raw(msgspec.json.encode(obj))
            self.kinds[names[group, obj["kind"]]].listed(raw, at, events)
        for name, seen in self.kinds.items():
            events += seen.finish_list("1", at)
            seen.seq += 1
            events.append(SourceChanged(at=at, epoch=seen.epoch, seq=seen.seq, kind=name, state=SyncState.SYNCED))
        return events
