"""
`make bench`: every benchmark, each in a process of its own, and one table.

    python -m bench [NAME…] [--quick]

Progress goes to the standard error, the table to the standard output; nothing fails because something is slow.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.figures import Figure, Result, Skipped, table_of

NAMES = (
    "lines", "rules", "plan", "gpu", "gpu_scaled", "agent", "latency", "peers", "scaled_latency", "scaled", "failover",
    "restore", "large", "diagnose",
)  # fmt: skip
"""In this order: the latency of ours and of the peers are measured right after one another."""

_WITHIN_S = 480


def main() -> int:
    """0 if everything was measured or skipped by name; 1 if a benchmark broke."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Medians and ratios against the aims.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="less of everything, in under a minute")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark named {unknown[0]!r}; there are {', '.join(NAMES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what runs is ended too
    results: list[Result] = []
    broken = 0
    for name in args.names or NAMES:
        begin = time.monotonic()
        sys.stderr.write(f"{name} … ")
        sys.stderr.flush()
        found = measure_in_process(name, quick=args.quick)
        results += found
        broken += any(isinstance(each, Skipped) and each.what == name for each in found)
        sys.stderr.write(f"{time.monotonic() - begin:.0f} s\n")
    sys.stdout.write(f"{machine()}\n\n{table_of(results)}\n")
    return 1 if broken else 0


def measure_in_process(name: str, *, quick: bool) -> list[Result]:
    """One benchmark; one that breaks is a result too, and does not end the others."""
    command = [sys.executable, "-m", "bench.one", name, *(["--quick"] if quick else [])]
    # A group of its own: what a benchmark that hangs has started ends with it.
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            said, _ = process.communicate(timeout=_WITHIN_S)
        except subprocess.TimeoutExpired:
            return [Skipped(bench=name, what=name, why=f"not done within {_WITHIN_S} s")]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        return [Skipped(bench=name, what=name, why=f"broke with exit code {process.returncode}; see above")]
    return msgspec.json.decode(said, type=list[Figure | Skipped])


def machine() -> str:
    """What the figures were measured on."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    load = os.getloadavg()[0]
    day = datetime.now(tz=UTC).date()
    return f"{day}, {os.cpu_count()} × {model}, Python {platform.python_version()}, load {load:.1f} at the end"


if __name__ == "__main__":
    sys.exit(main())
