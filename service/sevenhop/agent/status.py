"""What the agent shows of itself over HTTP: ``/healthz``, and ``/metrics`` for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from sevenhop.agent.agent import Counts


def metrics_text(counts: Counts) -> str:
    """In Prometheus' text format."""
    plain = (
        ("gpus", "gauge", "GPUs and MIG instances in the last reading.", counts.gpus),
        ("readings_total", "counter", "Readings of all GPUs.", counts.readings),
        ("sent_events_total", "counter", "Samples and XIDs that the service took.", counts.sent),
        ("rejected_events_total", "counter", "Samples and XIDs that the service will never take.", counts.rejected),
        ("waiting_events", "gauge", "Samples and XIDs that wait to be sent.", counts.waiting),
        ("malformed_lines_total", "counter", "Kernel lines about XIDs that cannot be read.", counts.malformed_lines),
        ("overwritten_lines_total", "counter", "Times the kernel log was faster than we.", counts.overwritten_lines),
        ("nvml_processes_replaced_total", "counter", "Processes that hung or ended.", counts.replaced_processes),
        ("nvml_processes_abandoned", "gauge", "Processes that the driver holds.", counts.abandoned_processes),
        ("problems", "gauge", "Things that cannot be read or sent now; the log says which.", len(counts.problems)),
    )
    lines = []
    for name, kind, text, value in plain:
        full = f"sevenhop_agent_{name}"
        lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}", f"{full} {value}"]
    full = "sevenhop_agent_dropped_events_total"
    lines += [f"# HELP {full} Let go because the service was away for too long.", f"# TYPE {full} counter"]
    lines += [f'{full}{{sort="{sort}"}} {value}' for sort, value in sorted(counts.dropped.items())]
    return "\n".join(lines) + "\n"


async def serve(host: str, port: int, counts: Callable[[], Counts]) -> web.AppRunner:
    """
    Listen; the caller cleans up.

    Raises:
        OSError: The address is taken.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")  # it answers: its loop runs, whatever the GPUs do

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=metrics_text(counts()), headers={"Content-Type": "text/plain; version=0.0.4"})

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError:
        await runner.cleanup()
        raise
    return runner
