"""`sevenhop version`"""

from __future__ import annotations

import argparse
import platform
from typing import Any

from sevenhop.cli.output import to_json
from sevenhop.version import __version__


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("version", help="print the version")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    if args.output == "json":
        print(to_json({"version": __version__, "python": platform.python_version()}))
    else:
        print(f"sevenhop {__version__} (Python {platform.python_version()})")
    return 0
