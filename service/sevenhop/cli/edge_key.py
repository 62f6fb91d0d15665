"""`sevenhop edge-key CLUSTER`: the key with which the edge of one cluster signs decisions."""

from __future__ import annotations

import argparse
import os
from typing import Any

from sevenhop.cli.cluster import CONFIG, read_settings
from sevenhop.cli.output import UsageError


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "edge-key",
        help="the key with which the edge of one cluster signs decisions",
        description="Made of the workers' runtime.decision_key; it becomes runtime.decision_key of that edge.",
    )
    parser.add_argument("cluster", metavar="CLUSTER", help="its name, as in `cluster` of the edge's settings")
    parser.add_argument(
        "--config",
        default=os.environ.get(CONFIG, ""),
        metavar="FILE",
        help=f"of the workers; default: {CONFIG}",
    )


def run(args: argparse.Namespace) -> int:
    key = read_settings(args.config).runtime.decision_key.get_secret_value()
    if not key:
        raise UsageError("the settings have no runtime.decision_key; run the command with those of the workers")
    from sevenhop.runtime.scaled.signing import edge_key

    print(edge_key(key, args.cluster))
    return 0
