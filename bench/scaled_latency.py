"""
From a change at the API server to bytes at the channel by way of Kafka and Redis, over loopback.

    API server → edge → Kafka → worker → Redis → webhook

The same cluster, rules and changes as in `latency`; the edge and the worker are processes of their own.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.figures import Figure, Result, percentile
from bench.latency import EVERY_MS, RATE, fires_at_once
from bench.scaled_bed import READY_WITHIN_S, Bed, EdgeProcess, bed, or_skipped
from bench.service import Server, api_server, kubeconfig_of
from sevenhop.cli.cluster import ask_service
from sevenhop.rulebook.shipped import shipped_rules
from tests.e2e.scaled_stage import wait_until

SETTLES_S = 5.0
PATIENCE_S = 60.0


def measure(*, quick: bool) -> list[Result]:
    """200 changes, a tenth of a second apart; 50 in a fifth of the cluster when `quick`."""
    nodes, deployments, changes = (200, 100, 50) if quick else (1_000, 500, 200)
    with tempfile.TemporaryDirectory() as name:
        return or_skipped(
            "scaled_latency",
            "change to bytes at the webhook",
            lambda: _measure(Path(name), nodes, deployments, changes),
        )


def _measure(folder: Path, nodes: int, deployments: int, changes: int) -> list[Result]:
    place = fires_at_once(folder)
    with (
        api_server(nodes=nodes, deployments=deployments, replicas=8) as server,
        bed(
            folder,
            rules=[shipped_rules(), place],
            receivers={"hook": {"type": "webhook", "url": server.webhook}},
        ) as at,
    ):
        config = folder / "kubeconfig"
        config.write_text(json.dumps(kubeconfig_of(server.url)))
        with EdgeProcess(folder / "edge", at.settings() | {"kubernetes": {"kubeconfig": str(config)}}) as edge:
            at.start_worker()
            wait_until("listed", lambda: _is_listed(at, deployments), READY_WITHIN_S, edge.tail)
            time.sleep(SETTLES_S)  # the first steps after a start are not what is measured
            return _asked(server, at, changes)


def _asked(server: Server, at: Bed, changes: int) -> list[Result]:
    answer = server.ask({"rate": RATE, "changes": changes, "every_ms": EVERY_MS, "patience_s": PATIENCE_S})
    found = [each for each in answer["latencies_ms"] if each is not None]
    if len(found) != changes:
        raise RuntimeError(f"{changes - len(found)} changes were never told of\n{at.worker.tail()}")
    return [
        Figure(bench="scaled_latency", what="change to bytes at the webhook, p50", value=percentile(found, 50),
               unit="ms", note=f"{changes} changes, {answer['rate']:.0f} others a second"),
        Figure(bench="scaled_latency", what="change to bytes at the webhook, p99", value=percentile(found, 99),
               unit="ms", aim=100, better="less", note=f"longest {max(found):.0f} ms"),
    ]  # fmt: skip


def _is_listed(at: Bed, deployments: int) -> bool:
    rows: Any = ask_service(at.worker.state, "GET", "/get/workloads") or []
    return len(rows) == deployments and at.worker.report().get("lag") == {"0": 0}
