"""`sevenhop completion bash|zsh|tcsh`"""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "completion",
        help="shell completion for bash, zsh or tcsh",
        description="Prints a script; for bash: sevenhop completion bash "
        "> ~/.local/share/bash-completion/completions/sevenhop",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))


def run(args: argparse.Namespace) -> int:
    import shtab

    from sevenhop.cli.main import build_parser

    print(shtab.complete(build_parser(), shell=args.shell))
    return 0
