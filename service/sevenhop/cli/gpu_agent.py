"""`sevenhop gpu-agent`: runs on each GPU node, reads its GPUs and sends what it sees to the service."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sevenhop.cli.output import UsageError, to_json


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "gpu-agent",
        help="on a GPU node: read its GPUs and send what they say",
        description=(
            "Reads GPUs (NVML), the driver's XIDs, which container holds which GPU (the kubelet's Pod Resources API) "
            "and what those containers use (cgroup v2); sends changes at once and a summary every 15 s. What is "
            "missing is said once, and everything else goes on."
        ),
    )
    parser.add_argument(
        "--service", default=os.environ.get("SEVENHOP_SERVICE", ""), metavar="URL",
        help="where sevenhop run listens, such as https://sevenhop.sevenhop:8443; default: SEVENHOP_SERVICE",
    )  # fmt: skip
    parser.add_argument("--once", action="store_true", help="read once, print it as JSON, send nothing")
    parser.add_argument(
        "--node", default=os.environ.get("NODE_NAME", ""), help="name of the Kubernetes node; default: NODE_NAME"
    )
    parser.add_argument("--token", default="", metavar="FILE", help="service-account token; default: the pod's own")
    parser.add_argument("--ca", default="", metavar="FILE", help="whom to trust as the service; default: the system's")
    parser.add_argument(
        "--pod-resources", default="", metavar="SOCKET", help="of the kubelet; default: its usual place"
    )
    parser.add_argument("--kmsg", default="", metavar="FILE", help="kernel log; default: /dev/kmsg")
    parser.add_argument(
        "--cgroups", default="", metavar="DIR", help="cgroup v2 tree of the node; default: /sys/fs/cgroup"
    )
    parser.add_argument(
        "--container-logs", default="", metavar="DIR",
        help="folder whose file names tell containers' ids; default: /var/log/containers",
    )  # fmt: skip
    parser.add_argument("--listen", default="", metavar="HOST:PORT", help="also serve /healthz and /metrics there")
    parser.add_argument("--check", type=float, default=2.0, metavar="SECONDS", help="between two readings; default: 2")
    parser.add_argument("--summary", type=float, default=15.0, metavar="SECONDS", help="between summaries; default: 15")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")


def run(args: argparse.Namespace) -> int:
    if not args.node:
        raise UsageError("which node this is, is not known: set NODE_NAME (downward API: spec.nodeName), or --node")
    if not args.once:
        parts = urlsplit(args.service)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("--service (or SEVENHOP_SERVICE) must be an address such as https://sevenhop:8443")
    if args.check <= 0 or args.summary <= 0:
        raise UsageError("--check and --summary must be more than 0")
    _listen(args)
    logging.basicConfig(
        level=args.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    return asyncio.run(_once(args) if args.once else _serve(args))


async def _serve(args: argparse.Namespace) -> int:
    from sevenhop.agent import status

    agent = _build(args)
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    host, port = _listen(args)
    runner = await status.serve(host, port, agent.counts) if port else None
    log = logging.getLogger("sevenhop.agent")
    log.info("reading the GPUs of %s for %s", args.node, args.service)
    if args.service.startswith("http:"):
        log.warning("the service is called without TLS: whoever listens in between can take the token")
    running = asyncio.create_task(agent.run())
    stopped = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait([running, stopped], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
    finally:
        running.cancel()
        stopped.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        if runner is not None:
            await runner.cleanup()
    return 0


async def _once(args: argparse.Namespace) -> int:
    from sevenhop.agent.buffer import Buffer

    buffer = Buffer()
    agent = _build(args, buffer)
    try:
        await agent.check()
        await asyncio.sleep(min(1.0, args.check))  # activity is told between two readings
        await agent.check()
    finally:
        await agent.close()
    print(to_json(buffer.next_batch(2**30)))
    return 0


def _build(args: argparse.Namespace, buffer: Any = None) -> Any:
    from datetime import timedelta

    from sevenhop.agent.agent import Agent
    from sevenhop.agent.buffer import Buffer
    from sevenhop.agent.cgroups import CGROUPS, CONTAINER_LOGS, Cgroups
    from sevenhop.agent.kmsg import KMSG
    from sevenhop.agent.pod_resources import SOCKET, PodResources
    from sevenhop.agent.sampler import Sampler
    from sevenhop.agent.sender import TOKEN, Sender
    from sevenhop.runtime.clock import Clock
    from sevenhop.version import __version__

    clock = Clock()
    buffer = Buffer() if buffer is None else buffer
    sender = Sender(
        args.service or "http://nowhere.invalid",
        args.node,
        buffer,
        clock,
        token=Path(args.token) if args.token else TOKEN,
        ca=Path(args.ca) if args.ca else None,
        version=__version__,
    )
    summary = timedelta(seconds=0.0 if args.once else args.summary)
    return Agent(
        Sampler(args.node, int(clock().timestamp() * 1000), summary),
        sender,
        buffer,
        clock,
        pod_resources=PodResources(Path(args.pod_resources) if args.pod_resources else SOCKET),
        cgroups=Cgroups(
            Path(args.cgroups) if args.cgroups else CGROUPS,
            Path(args.container_logs) if args.container_logs else CONTAINER_LOGS,
        ),
        kmsg=Path(args.kmsg) if args.kmsg else KMSG,
        check_s=args.check,
    )


def _listen(args: argparse.Namespace) -> tuple[str, int]:
    if not args.listen:
        return "", 0
    from sevenhop.web.listen import parse_listen

    try:
        return parse_listen(args.listen)
    except ValueError as error:
        raise UsageError(f"--listen: {error}") from None
