"""
What every command's help has in the same way (a sentence, what `-o` takes, examples to copy), and what a call that is
wrong is answered with.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from sevenhop.cli.output import fail

EXAMPLES: dict[str, tuple[str, ...]] = {
    "scan": ("sevenhop scan", "sevenhop scan --context prod-eu -n chat", "sevenhop scan -o json"),
    "run": ("sevenhop run --config sevenhop.yaml", "sevenhop run --context prod-eu --log-format json"),
    "demo": ("sevenhop demo", "sevenhop demo --yes", "sevenhop demo surge"),
    "diagnose": (
        "kubectl get pods,nodes,events,replicasets,deployments -A -o json | sevenhop diagnose -f -",
        "sevenhop diagnose -f bundle.tar.gz -n chat",
        'sevenhop diagnose -f objects.yaml --what-if "delete docs/summarizer-7d9"',
    ),
    "get": (
        "sevenhop get incidents",
        "sevenhop get pods -n chat -o wide",
        "sevenhop get capacity --gpu H100 --sort reclaimable",
    ),
    "explain": (
        "sevenhop explain llama-70b/decode",
        "sevenhop explain llama-70b/decode --why-not",
        "sevenhop explain llama-70b/decode@04:12",
    ),
    "silence": (
        'sevenhop silence add workload=llama-70b tier!=batch --for 2h -c "load test"',
        "sevenhop silence list",
        "sevenhop silence expire 33207d01",
    ),
    "describe": ("sevenhop describe plan d56302b6",),
    "approve": ("sevenhop get plans", 'sevenhop approve d56302b6 -m "summarizer can spare one"'),
    "reject": ('sevenhop reject d56302b6 -m "the batch run ends in ten minutes"',),
    "runs": ("sevenhop runs list", "sevenhop runs extend d56302b6", "sevenhop runs restore d56302b6"),
    "switch": ("sevenhop switch stop", "sevenhop switch status", "sevenhop switch resume"),
    "audit": ("sevenhop audit list", "sevenhop audit export > audit.jsonl", "sevenhop audit verify audit.jsonl"),
    "report": ("sevenhop report shadow",),
    "rules": (
        "sevenhop rules check rules",
        "sevenhop rules test rules/pod/some-rule.test.yaml",
        "sevenhop rules explain component-short-of-gpus",
        "sevenhop rules backtest night.sevenhop.gz rules",
    ),
    "playbooks": ("sevenhop playbooks check playbooks", "sevenhop playbooks test", "sevenhop playbooks list -o wide"),
    "record": ("sevenhop record night.sevenhop.gz --for 8h",),
    "replay": ("sevenhop replay night.sevenhop.gz", "sevenhop replay night.sevenhop.gz --rules rules"),
    "gpu-agent": ("sevenhop gpu-agent --once", "sevenhop gpu-agent --service https://sevenhop.sevenhop:8443"),
    "edge-key": ("sevenhop edge-key prod-eu --config workers.yaml",),
    "doctor": ("sevenhop doctor", "sevenhop doctor -o json"),
    "completion": ("sevenhop completion bash > ~/.local/share/bash-completion/completions/sevenhop",),
    "version": ("sevenhop version -o json",),
}
"""By command, lines that can be typed as they are; the first is the one that most people want."""

_SHARED = {
    "output": "for people, or for programs; default: %(default)s",
    "log_level": "default: %(default)s",
}
"""Help of options that mean the same wherever they stand, for commands that say nothing of their own."""


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with a call, and the nearest of what may stand there."""

    def error(self, message: str) -> NoReturn:
        hint = "" if "did you mean" in message or "there are" in message else f"; see {self.prog} --help"
        fail(f"{_words_after_name(self)}{message.removeprefix('argument ')}{hint}")
        self.exit(2)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        known = [str(choice) for choice in action.choices or ()]
        if known and value not in known:
            listed = [f"get {value}"] if action.dest == "command" and _is_listed(str(value)) else []
            near = listed or get_close_matches(str(value), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            name = "/".join(action.option_strings) or action.metavar or action.dest
            raise argparse.ArgumentError(None, f"{name} cannot be {value}; {hint}")


def _is_listed(word: str) -> bool:
    """Whether `get` lists that; asked only once a call is wrong, for the import costs time."""
    from sevenhop.cli.get import COLUMNS

    return word in COLUMNS


class LinesKept(argparse.HelpFormatter):
    """Wraps a text line by line: examples stay lines of their own."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        # An example is not wrapped: what is copied has to work.
        lines = (
            line if line.startswith(" ") else super(LinesKept, self)._fill_text(line, width, indent)
            for line in text.split("\n")
        )
        return "\n".join(lines)


def complete(name: str, parser: argparse.ArgumentParser, summary: str) -> None:
    """Add to the help of one command, and of those below it, what its module leaves to this one."""
    examples = EXAMPLES.get(name, ())
    if examples:
        parser.epilog = "\n".join(("examples:", *(f"  {line}" for line in examples)))
    parser.description = parser.description or _sentence(summary)
    for each in (parser, *_below(parser)):
        each.formatter_class = LinesKept
        for action in each._actions:  # noqa: SLF001 - argparse has no public way to list them
            if action.help is None and action.dest in _SHARED:
                action.help = _SHARED[action.dest]


def _below(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for choice in action._choices_actions:  # noqa: SLF001 - the only place where helps are kept
                below: argparse.ArgumentParser = action.choices[choice.dest]
                below.description = below.description or _sentence(choice.help or "")
                yield below


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""


def unknown_words(parser: argparse.ArgumentParser, words: Sequence[str], rest: Sequence[str]) -> int:
    """Say which words of a call nobody takes, and the nearest option of the command; returns the exit code."""
    for word in words:
        inner = next((a for a in parser._actions if isinstance(a, argparse._SubParsersAction)), None)  # noqa: SLF001
        if inner is None:
            break
        parser = inner.choices.get(word, parser)
    known = [name for action in parser._actions for name in action.option_strings]  # noqa: SLF001
    near = get_close_matches(rest[0].partition("=")[0], known, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; see {parser.prog} --help"
    fail(f"{_words_after_name(parser)}nothing takes {' '.join(rest)}{hint}")
    return 2


def _words_after_name(parser: argparse.ArgumentParser) -> str:
    """``get: `` of ``sevenhop get``; empty for the program itself."""
    words = parser.prog.partition(" ")[2]
    return f"{words}: " if words else ""
