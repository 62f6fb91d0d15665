"""`python -m tests.testbed build | up | down`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from tests.testbed import binaries, build, kafka, nodes, redis
from tests.testbed.cluster import Cluster, ClusterFailed
from tests.testbed.waiting import eventually


def main() -> int:
    """Run one command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.testbed", description=__doc__)
    parser.add_argument("command", choices=["build", "up", "down"])
    command = parser.parse_args().command
    try:
        {"build": build_parts, "up": up, "down": down}[command]()
    except (binaries.BuildFailed, ClusterFailed) as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    return 0


def build_parts() -> None:
    """Build what is not in the cache."""
    for part in binaries.PARTS:
        binaries.ensure(part, say)
    kafka.ensure_jars(say)
    redis.ensure_server(say)


def up() -> None:
    """Start a cluster that stays, with six nodes, and say how to use and end it."""
    record = read_record()
    if record is not None and is_running(record):
        say("a cluster is up already")
    else:
        cluster = Cluster(operator=True, frameworks=None, say=say).start()
        try:
            nodes.add_nodes(
                cluster.client,
                [build.gpu_node(f"gpu-{number:02}") for number in range(4)]
                + [build.cpu_node(f"cpu-{number:02}") for number in range(2)],
            )
            kubeconfig, folder = cluster.kubeconfig(), cluster.folder
            pid = cluster.detach()
        finally:
            cluster.stop()  # ends what did not get as far as detach
        record = {"pid": pid, "started": started(pid), "folder": str(folder)}
        record["kubeconfig"] = str(kubeconfig)
        record_path().write_text(json.dumps(record))
    say(f"export KUBECONFIG={record['kubeconfig']}")
    say("python -m tests.testbed down    # ends it")


def down() -> None:
    """End the cluster that `up` left."""
    record = read_record()
    if record is None:
        say("no cluster is up")
        return
    if is_running(record):
        os.kill(record["pid"], signal.SIGTERM)
        eventually(lambda: not is_running(record), what="the end of the cluster")
    shutil.rmtree(record["folder"], ignore_errors=True)
    record_path().unlink(missing_ok=True)
    say("the cluster is down")


def record_path() -> Path:
    """Where `up` writes down what it started."""
    return binaries.cache_folder() / "up.json"


def read_record() -> dict[str, Any] | None:
    """Return what `up` wrote down, if anything."""
    with contextlib.suppress(FileNotFoundError):
        record: dict[str, Any] = json.loads(record_path().read_text())
        return record
    return None


def is_running(record: dict[str, Any]) -> bool:
    """Is the recorded process there, and not another one that got its number?"""
    return started(record["pid"]) == str(record["started"])


def started(pid: int) -> str:
    """When a process started, in ticks since boot; empty if it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()  # the name before it may contain anything
    return "" if fields[0] == "Z" else fields[19]


def say(line: str) -> None:
    """Write one line for people, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
