"""
The command line: finds the command and imports only what that one needs.

Exit codes: 0 done; 1 done, and what was asked about is not well (a rule is wrong, a test failed); 2 the call or an
input is wrong; 3 the cluster cannot be reached or refuses; 4 the state cannot be used; 5 something of ours broke;
130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from sevenhop.cli.help import LinesKept, Parser, complete, unknown_words
from sevenhop.cli.output import UsageError, fail
from sevenhop.version import __version__

TRACEBACK = "SEVENHOP_TRACEBACK"
"""Environment variable that shows where something of ours broke."""

EXIT_BROKEN = 5

EXIT_CODES = " ".join((__doc__ or "").partition("Exit codes:")[2].split()).rstrip(".")

_NONE = "-"

COMMANDS: dict[str, tuple[str, str]] = {
    "scan": ("sevenhop.cli.scan", "look at a cluster once: workloads, hops, what would alert, what cannot be seen"),
    "run": ("sevenhop.cli.run", "watch a cluster and tell people"),
    "demo": ("sevenhop.cli.demo", "the story on a simulated cluster: no cluster, no account"),
    "diagnose": ("sevenhop.cli.diagnose", "diagnose files: the output of kubectl get -o yaml, a support bundle"),
    "get": ("sevenhop.cli.get", "list workloads, pods, nodes, capacity, alerts, incidents"),
    "explain": ("sevenhop.cli.explain", "why an alert fires, or does not"),
    "silence": ("sevenhop.cli.silence", "be quiet on purpose: add, list, expire"),
    "describe": ("sevenhop.cli.describe", "everything about one plan"),
    "approve": ("sevenhop.cli.approve", "agree to exactly one plan"),
    "reject": ("sevenhop.cli.approve", "decline a plan"),
    "runs": ("sevenhop.cli.runs", "plans that were carried out: list, describe, undo, extend, restore"),
    "switch": ("sevenhop.cli.switch", "stop or resume everything that changes the cluster"),
    "audit": ("sevenhop.cli.audit", "what was decided and done: list, verify, export"),
    "report": ("sevenhop.cli.report", "what would have been done in shadow mode"),
    "rules": ("sevenhop.cli.rules", "check, test, list, explain and back-test rules"),
    "playbooks": ("sevenhop.cli.playbooks", "check, test and list playbooks"),
    "record": ("sevenhop.cli.record", "write what the source sees to a file"),
    "replay": ("sevenhop.cli.replay", "run a recording through the rules"),
    "gpu-agent": ("sevenhop.cli.gpu_agent", "on a GPU node: read its GPUs and send what they say"),
    "edge-key": ("sevenhop.cli.edge_key", "the key with which the edge of one cluster signs decisions"),
    "doctor": ("sevenhop.cli.doctor", "what cannot be seen, and what would mend it"),
    "completion": ("sevenhop.cli.completion", "shell completion for bash, zsh or tcsh"),
    "version": ("sevenhop.cli.version", "print the version"),
}


def build_parser(only: str = "") -> argparse.ArgumentParser:
    """The parser with all commands, or with `only` one of them filled in (the others cost an import each)."""
    parser = Parser(
        prog="sevenhop",
        description="Says which of the seven hops of AI inference on Kubernetes broke first, for whom, and what helps.",
        epilog="New here? sevenhop demo. Your own cluster: sevenhop scan (read-only, installs nothing).\n"
        "`sevenhop COMMAND --help` shows examples.\n"
        f"Exit codes: {EXIT_CODES}.",
        formatter_class=LinesKept,
    )
    parser.add_argument("--version", action="version", version=f"sevenhop {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    filled: set[str] = set()
    for name, (module, summary) in COMMANDS.items():
        if only and COMMANDS.get(only, ("", ""))[0] != module:
            commands.add_parser(name, help=summary, add_help=False)
        elif module not in filled:  # one module may have two commands
            filled.add(module)
            import_module(module).add_parser(commands)
    for name in COMMANDS:
        if COMMANDS[name][0] in filled:
            complete(name, commands.choices[name], COMMANDS[name][1])
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except UsageError as error:
        fail(str(error))
        return 2
    except KeyboardInterrupt:  # also while a command's modules are loaded, which takes most of a second
        return 130
    except RecursionError:
        fail("something in the input is nested too deeply to be read")
        return 2
    except BrokenPipeError:
        # The reader (head, less) has gone; that is its right.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        fail(f"{named}{error.strerror or error}")
        return 2
    except Exception as error:  # the last line of defence: a person gets a sentence, not a traceback
        if os.environ.get(TRACEBACK):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        fail(f"something of ours broke ({type(error).__name__} at {where}: {error}); {TRACEBACK}=1 shows all of it")
        return EXIT_BROKEN


def _run(words: Sequence[str]) -> int:
    # `only` may be wrong where an option precedes the command; then all are loaded, a little slower.
    only = words[0] if words and words[0] in COMMANDS else ""
    if not words or words[0] in ("-h", "--help", "--version"):
        only = _NONE  # the names and summaries will do
    parser = build_parser(only)
    args, rest = parser.parse_known_args(words)
    if rest:
        return unknown_words(parser, words, rest)
    return int(import_module(COMMANDS[args.command][0]).run(args))


if __name__ == "__main__":
    sys.exit(main())
