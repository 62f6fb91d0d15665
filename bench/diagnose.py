"""`sevenhop diagnose` as people start it: a bundle of 300 objects as JSON, and YAML by the megabyte; start included."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import yaml

from bench.figures import Figure, Result, median
from bench.generate import deployment, node, pod

OBJECTS = 300
YAML_START_S = 0.3
YAML_S_PER_MB = 0.8


def measure(*, quick: bool) -> list[Result]:
    """CPU seconds of the command, which is one process on one core; three runs of each when `quick`."""
    runs = 3 if quick else 7
    items = bundle_objects(OBJECTS)
    with tempfile.TemporaryDirectory() as name:
        as_json, as_yaml = Path(name, "bundle.json"), Path(name, "bundle.yaml")
        document = {"apiVersion": "v1", "kind": "List", "items": items}
        as_json.write_bytes(msgspec.json.encode(document))
        as_yaml.write_text(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False))
        json_s, yaml_s = [_seconds(as_json) for _ in range(runs)], [_seconds(as_yaml) for _ in range(runs)]
        megabytes = as_yaml.stat().st_size / 1e6
    return [
        Figure(bench="diagnose", what=f"{OBJECTS} objects as JSON, start included", value=median(json_s), unit="s",
               aim=0.5, better="less", note=f"best {min(json_s):.2f} s"),
        Figure(bench="diagnose", what=f"the same as YAML, {megabytes:.1f} MB", value=median(yaml_s), unit="s",
               aim=YAML_START_S + YAML_S_PER_MB * megabytes, better="less",
               note=f"best {min(yaml_s):.2f} s; {median(yaml_s) / megabytes:.2f} s per MB"),
    ]  # fmt: skip


def bundle_objects(count: int) -> list[dict[str, Any]]:
    """Twenty nodes, Deployments of ten pods with their ReplicaSets, and pods of which every fifth waits for a node."""
    made = [node(number) for number in range(20)]
    of = 0
    while len(made) < count:
        made += deployment(of, 10, gpus=2)
        made += [
            pod(number, of, gpus=2, node_name=f"node-{number % 20:05}" if number % 5 else "")
            for number in range(of * 10, of * 10 + 10)
        ]
        of += 1
    return made[:count]


def _seconds(path: Path) -> float:
    """CPU seconds of one run, of all its threads, and of the start of the interpreter."""
    command = [sys.executable, "-m", "sevenhop.cli.main", "diagnose", "-f", str(path), "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if not msgspec.json.decode(output)["workloads"]:
        raise RuntimeError("the bundle's workloads were not found")
    return usage.ru_utime + usage.ru_stime
