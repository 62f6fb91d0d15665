"""One benchmark in a process of its own: its results as JSON on the standard output."""

from __future__ import annotations

import argparse
import importlib
import sys

import msgspec

from bench.__main__ import NAMES


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    results = importlib.import_module(f"bench.{args.name}").measure(quick=args.quick)
    sys.stdout.buffer.write(msgspec.json.encode(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
