"""
From a change at the API server to bytes at the channel, over loopback: two processes, the real source and outbox.

A pod crashes, its component fails, a rule with ``for: 0s`` fires, ``group_wait`` is 0s, a webhook is told; meanwhile
500 other changes a second go on.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from bench.figures import Figure, Result, percentile
from bench.service import Server, api_server, running_service, until_listed
from sevenhop.core.facts.table import FACTS
from sevenhop.rulebook.load import Rulebook, load_rulebook
from sevenhop.rulebook.shipped import shipped_rules

RATE = 500
EVERY_MS = 100


def measure(*, quick: bool) -> list[Result]:
    """200 changes, a tenth of a second apart; 50 when `quick`."""
    changes = 50 if quick else 200
    with tempfile.TemporaryDirectory() as name, api_server(nodes=1000, deployments=500, replicas=8) as server:
        return asyncio.run(_measure(server, Path(name), changes))


async def _measure(server: Server, folder: Path, changes: int) -> list[Result]:
    async with running_service(server, folder, _rulebook(folder)) as service:
        await until_listed(service, 60)
        await asyncio.sleep(2)  # the first steps after a start are not what is measured
        service.pauses_ms.clear()
        service.own_pauses_ms.clear()
        ticks = asyncio.create_task(service.watch_pauses())
        question = {"rate": RATE, "changes": changes, "every_ms": EVERY_MS}
        answer = await asyncio.to_thread(server.ask, question)
        ticks.cancel()
    return _figures(answer, service.pauses_ms, service.own_pauses_ms)


def _figures(answer: dict[str, Any], pauses_ms: list[float], own_pauses_ms: list[float]) -> list[Result]:
    latencies = [each for each in answer["latencies_ms"] if each is not None]
    if len(latencies) != len(answer["latencies_ms"]):
        raise RuntimeError(f"{len(answer['latencies_ms']) - len(latencies)} changes were never told of")
    note = f"{len(latencies)} changes, {answer['rate']:.0f} others a second"
    return [
        Figure(bench="latency", what="change to bytes at the webhook, p50", value=percentile(latencies, 50), unit="ms",
               note=note),
        Figure(bench="latency", what="change to bytes at the webhook, p99", value=percentile(latencies, 99), unit="ms",
               aim=100, better="less"),
        Figure(bench="latency", what="pause of the loop, longest, by the clock", value=max(pauses_ms), unit="ms",
               aim=10, better="less",
               note=f"p99 {percentile(pauses_ms, 99):.1f} ms, {_long(pauses_ms)} over 10 ms; others use the CPU too"),
        Figure(bench="latency", what="pause of the loop, longest, our own CPU time", value=max(own_pauses_ms),
               unit="ms", aim=10, better="less",
               note=f"p99 {percentile(own_pauses_ms, 99):.1f} ms, {_long(own_pauses_ms)} over 10 ms"),
    ]  # fmt: skip


def _long(pauses_ms: list[float]) -> int:
    return sum(pause > 10 for pause in pauses_ms)


def _rulebook(folder: Path) -> Rulebook:
    """The shipped rules, and one that fires at once."""
    book = load_rulebook([shipped_rules(), fires_at_once(folder)], FACTS)
    if book.problems:
        raise ValueError("; ".join(map(str, book.problems)))
    return book


def fires_at_once(folder: Path) -> Path:
    """Writes a rule of which nothing waits; where it is."""
    place = folder / "pod"
    place.mkdir()
    rule = {
        "id": "bench-fails",
        "status": "experimental",
        "subject": "component",
        "expr": "component.failing > 0",
        "for": "0s",
        "severity": "warning",
        "annotations": {"summary": "{{ workload }} fails"},
        "description": "For the benchmark: fires as soon as one pod of a component crashes.",
        "false_positives": ["none"],
        "triage": "none",
    }
    (place / "bench-fails.yaml").write_text(json.dumps(rule))
    return place
