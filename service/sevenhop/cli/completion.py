"""`sevenhop completion bash|zsh|tcsh`"""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "completion",
        help="shell completion for bash, zsh or tcsh",
        description="Prints a script that the shell reads.",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell whose script to print")


def run(args: argparse.Namespace) -> int:
    import shtab

    from sevenhop.cli.main import build_parser

    print(shtab.complete(build_parser(), shell=args.shell))
    return 0
