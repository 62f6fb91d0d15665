"""
The field's tools in the same run, over loopback: kopf on the very task of the latency bench, Alertmanager on its half.

What cannot be installed is skipped, by name.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp

from bench.api_server import Webhook
from bench.figures import Figure, Result, Skipped, percentile
from bench.installing import NotInstallableError, alertmanager, kopf
from bench.large import PAGE_BYTES
from bench.latency import EVERY_MS, RATE
from bench.service import api_server

_STARTS_WITHIN_S = 60.0

_CONFIG = """
route:
  receiver: hook
  group_by: ["..."]
  group_wait: 0s
  group_interval: 1s
receivers:
  - name: hook
    webhook_configs:
      - url: {url}
"""


def measure(*, quick: bool) -> list[Result]:
    """Each peer, or why not; 200 changes, 50 when `quick`."""
    changes = 50 if quick else 200
    results: list[Result] = []
    for name, find, run in (("Alertmanager", alertmanager, _alertmanager), ("kopf", kopf, _kopf)):
        try:
            results += run(find(), changes)
        except (NotInstallableError, TimeoutError, RuntimeError) as error:
            results.append(Skipped(bench="peers", what=name, why=str(error) or type(error).__name__))
    return results


def _kopf(python: Path, changes: int) -> list[Result]:
    version = _version([str(python), "-c", "import importlib.metadata as m; print(m.version('kopf'))"])
    operator = Path(__file__).with_name("kopf_operator.py")
    command = [str(python), "-m", "kopf", "run", "--standalone", "--all-namespaces", "--quiet", str(operator)]
    with tempfile.TemporaryDirectory() as name, api_server(nodes=1000, deployments=500, replicas=8) as server:
        ready = Path(name, "ready")
        own = {"SERVER": server.url, "WEBHOOK": server.webhook, "READY": str(ready), "PODS": "4000"}
        with _process(command, {**os.environ, **{f"BENCH_{key}": value for key, value in own.items()}}) as process:
            begin = time.monotonic()
            while not ready.exists():
                if process.poll() is not None:
                    raise RuntimeError(f"kopf ended with {process.returncode}")
                if time.monotonic() > begin + _STARTS_WITHIN_S:
                    raise TimeoutError(f"it had not seen all pods after {_STARTS_WITHIN_S:.0f} s")
                time.sleep(0.2)
            seen_s = time.monotonic() - begin
            answer = server.ask({"rate": RATE, "changes": changes, "every_ms": EVERY_MS})
            resident = _resident_mib(process.pid)
    found = [each for each in answer["latencies_ms"] if each is not None]
    lost = len(answer["latencies_ms"]) - len(found)
    if not found:
        raise RuntimeError("kopf told of no change")
    note = f"kopf {version}, one handler; 4,000 pods seen after {seen_s:.0f} s; {resident:.0f} MiB"
    note += f"; {lost} of {changes} never told" if lost else ""
    return [
        Figure(bench="peers", what=f"kopf: change to bytes at the webhook, {name}", value=percentile(found, percent),
               unit="ms", better="less", note=note)
        for name, percent in (("p50", 50), ("p99", 99))
    ]  # fmt: skip


def _alertmanager(binary: Path, changes: int) -> list[Result]:
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(_alertmanager_in(binary, Path(name), changes))


async def _alertmanager_in(binary: Path, folder: Path, changes: int) -> list[Result]:
    webhook = Webhook()
    port = _free_port()
    async with webhook.serve():
        (folder / "config.yml").write_text(_CONFIG.format(url=webhook.url))
        command = [
            str(binary), f"--config.file={folder / 'config.yml'}", f"--storage.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=", "--log.level=error",
        ]  # fmt: skip
        with _process(command, dict(os.environ), binary.parent) as process:
            sent: dict[int, float] = {}
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
                await _until_ready(session)
                for number in range(changes):
                    sent[number] = time.monotonic()
                    await _send(session, number)
                    await asyncio.sleep(EVERY_MS / 4000)
                await asyncio.sleep(1)
            resident = _resident_mib(process.pid)
    found = [1000 * (webhook.arrived[number] - at) for number, at in sent.items() if number in webhook.arrived]
    if len(found) < changes:
        raise RuntimeError(f"{changes - len(found)} of {changes} alerts never arrived")
    note = f"no rules, no cluster: an alert in, a message out; {resident:.0f} MiB"
    return [
        Figure(bench="peers", what=f"Alertmanager: alert to bytes at the webhook, {name}", unit="ms", better="less",
               value=percentile(found, percent), note=note)
        for name, percent in (("p50", 50), ("p99", 99))
    ]  # fmt: skip


async def _until_ready(session: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(_STARTS_WITHIN_S):
        while True:
            try:
                async with session.get("/-/ready") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass  # not yet listening
            await asyncio.sleep(0.1)


async def _send(session: aiohttp.ClientSession, number: int) -> None:
    alert = {
        "labels": {"alertname": "bench", "inference_workload": f"model-{number:05}"},
        "annotations": {"summary": "fails"},
        "startsAt": datetime.now(tz=UTC).isoformat(),
    }
    async with session.post("/api/v2/alerts", json=[alert]) as answer:
        answer.raise_for_status()


@contextmanager
def _process(
    command: list[str], environment: dict[str, str], folder: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A peer, ended with the block."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, cwd=folder, stdout=quiet, stderr=quiet) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def _version(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / 1024**2


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    print(json.dumps([str(result) for result in measure(quick=True)], indent=1))
