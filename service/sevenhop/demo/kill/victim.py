"""
The service that is killed: what `sevenhop run` runs, in fast time.

``python -m sevenhop.demo.kill.victim FILE`` reads a `Given` as JSON and runs until it is ended.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from sevenhop.app import build_embedded, build_engine, build_rulebook
from sevenhop.demo.kill.clock import SharedClock
from sevenhop.runtime.control import Control
from sevenhop.runtime.deciding import Deciding
from sevenhop.runtime.front import ServiceFront
from sevenhop.settings import load_settings
from sevenhop.sources.kubernetes.api import Access, ApiServer
from sevenhop.sources.kubernetes.source import KubernetesSource
from sevenhop.stores.sqlite import SqliteStore


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        api: Base URL of the API server.
        settings: As in ``sevenhop.yaml``.
        begins, zero_s, speed: See `SharedClock`.
    """

    api: str
    settings: dict[str, Any]
    begins: datetime
    zero_s: float
    speed: float


async def serve(given: Given) -> None:
    clock = SharedClock(given.begins, given.zero_s, given.speed)
    settings = load_settings(None, environ={}, **given.settings)
    rulebook = build_rulebook(settings)
    if rulebook.problems:
        sys.exit(f"Error: the shipped rules have problems: {rulebook.problems[0]}")
    settings.state.mkdir(parents=True, exist_ok=True)
    store = SqliteStore(settings.state)
    try:
        async with ApiServer(Access(base_url=given.api)) as api:
            engine = build_engine(settings, rulebook, settings.cluster)
            embedded = build_embedded(settings, engine, store, clock, api=api)
            decisions = Deciding(ServiceFront(engine, embedded), None, clock, takes_peers=True, via="terminal")
            control = Control(engine, embedded.emit_stored, clock, dict, posts=decisions.routes())
            await control.start(settings.state)
            await embedded.run([KubernetesSource(api, clock=clock)])
    finally:
        store.close()


if __name__ == "__main__":
    asyncio.run(serve(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Given)))
