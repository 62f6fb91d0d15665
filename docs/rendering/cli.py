"""
docs/reference/cli.md, rendered from the argument parser.

Not argparse's own help: that differs between versions of Python and with the width of the terminal.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from docs.rendering.markdown import code, page, table
from sevenhop.cli import main as cli
from sevenhop.cli.help import EXAMPLES

_INTRO = """# Command line

Rendered from the parser by `make docs`; change the code, not this page. `sevenhop COMMAND --help` says the same.

Answers go to the standard output, errors to the standard error in one line with the fix. `-o json` and `-o yaml` are
for programs. Colour and width follow the terminal; in a pipe, or with `NO_COLOR` set, there is no
colour.
"""


def render() -> str:
    """The page as Markdown."""
    parser = cli.build_parser()
    commands = _commands_of(parser)
    rows = [[f"[{name}](#{name})", cli.COMMANDS[name][1]] for name in commands]
    parts = [_INTRO, table(["command", "what it does"], rows), "## Exit codes", _exit_codes()]
    for name, command in commands.items():
        parts += [f"## {name}", *_command(f"sevenhop {name}", command), _examples(name)]
    return page(*parts)


def _exit_codes() -> str:
    """From the docstring of the entry point, where they are decided."""
    paragraph = next(p for p in (cli.__doc__ or "").split("\n\n") if p.startswith("Exit codes:"))
    text = " ".join(paragraph.removeprefix("Exit codes:").split()).rstrip(".")
    found = re.findall(r"(?:^|; )(\d+) ((?:[^;]|;(?! \d))*)", text)
    return table(["code", "meaning"], [[code(number), meaning] for number, meaning in found])


def _examples(name: str) -> str:
    lines = "\n".join(EXAMPLES[name])
    return f"```sh\n{lines}\n```"


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield parser.description or ""
    children = _commands_of(parser)
    if not children:
        yield f"```\n{usage(name, parser)}\n```"
        yield _arguments(parser)
    for child, below in children.items():
        yield f"### {name.removeprefix('sevenhop ')} {child}"
        yield below.description or ""
        yield f"```\n{usage(f'{name} {child}', below)}\n```"
        yield _arguments(below)


def usage(name: str, parser: argparse.ArgumentParser) -> str:
    """One line: what must be given, in order; options that need not be are one word."""
    words = [name]
    for action in _actions(parser):
        if action.option_strings:
            if action.required:
                words.append(f"{action.option_strings[0]} {_metavar(action)}")
        else:
            word = _metavar(action)
            words.append({"*": f"[{word} …]", "+": f"{word} [{word} …]", "?": f"[{word}]"}.get(str(action.nargs), word))
    if any(a.option_strings and not a.required for a in _actions(parser)):
        words.append("[options]")
    return " ".join(words)


def _arguments(parser: argparse.ArgumentParser) -> str:
    rows = []
    for action in _actions(parser):
        names = ", ".join(action.option_strings) or _metavar(action)
        takes = f" {_metavar(action)}" if action.option_strings and action.nargs != 0 else ""
        rows.append([code(names + takes), _meaning(action)])
    return table(["argument", "meaning"], rows) if rows else ""


def _meaning(action: argparse.Action) -> str:
    said = (action.help or "") % vars(action)
    if action.choices is not None and action.metavar is None:
        said = "; ".join(part for part in (said, f"one of {', '.join(map(str, action.choices))}") if part)
    if "default" not in said and isinstance(action.default, str) and action.default:
        said = "; ".join(part for part in (said, f"default {action.default}") if part)
    return said or "–"


def _metavar(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest.upper()


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """All but help and the commands below."""
    return [
        action
        for action in parser._actions  # noqa: SLF001 - argparse has no public way to list them
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)  # noqa: SLF001
    ]


def _below(parser: argparse.ArgumentParser) -> argparse._SubParsersAction[argparse.ArgumentParser] | None:
    return next((a for a in parser._actions if isinstance(a, argparse._SubParsersAction)), None)  # noqa: SLF001


def _commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    below = _below(parser)
    return dict(below.choices) if below is not None else {}
