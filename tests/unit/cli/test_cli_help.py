"""What `--help` owes a person who does not know the program."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from sevenhop.cli.help import EXAMPLES
from sevenhop.cli.main import COMMANDS, build_parser, main

PARSER = build_parser()


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Of every command, and of those below it, without those that only have others below."""
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not below:
        yield parser
    for action in below:
        for choice in action.choices.values():
            yield from parsers(choice)


each = pytest.mark.parametrize("parser", list(parsers(PARSER)), ids=lambda p: p.prog)
each_example = pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])


@each
def test_every_argument_is_explained(parser: argparse.ArgumentParser) -> None:
    """No command leaves anybody to guess what an argument is."""
    assert parser.description
    assert [action.dest for action in parser._actions if not action.help] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_of_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Help ends with lines to copy, and the parser that is built for one command alone shows them too."""
    with pytest.raises(SystemExit):
        build_parser(name).parse_args([name, "--help"])

    out = capsys.readouterr().out
    examples = out.partition("\nexamples:\n")[2].splitlines()
    assert [line.strip() for line in examples] == list(EXAMPLES[name])
    assert any(f"sevenhop {name}" in line for line in examples)


@each_example
def test_examples_are_understood(line: str) -> None:
    """What is shown is what the parser takes."""
    command = line.rpartition("| ")[2].partition(" > ")[0]

    words = shlex.split(command)

    assert words[0] == "sevenhop"
    assert PARSER.parse_args(words[1:])


def test_exit_codes_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Who writes a script around it finds them without the reference."""
    with pytest.raises(SystemExit):
        build_parser("-").parse_args(["--help"])

    words = capsys.readouterr().out.split()
    assert all(code in words for code in ("0", "1", "2", "3", "4", "5", "130"))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        pytest.param("get podz", "get: WHAT cannot be podz; did you mean pods?", id="a word that is nearly right"),
        pytest.param("plans", "COMMAND cannot be plans; did you mean get plans?", id="what get lists"),
        pytest.param("explian x", "COMMAND cannot be explian; did you mean explain?", id="a command"),
        pytest.param("demo nosuch", "demo: story cannot be nosuch; there are shortage, surge, no-donor", id="a word"),
        pytest.param("get pods -o jsn", "get: -o/--output cannot be jsn; did you mean json?", id="a format"),
        pytest.param("run --confg x", "run: nothing takes --confg x; did you mean --config?", id="an option"),
        pytest.param("rules list --all", "rules list: nothing takes --all; see sevenhop rules list --help", id="below"),
        pytest.param("silence add a=b", "are required: -c/--comment; see sevenhop silence add --help", id="missing"),
        pytest.param("silence add 'a=~(' --for 5m -c x", "MATCHER: ", id="a matcher"),
        pytest.param("silence add a=b --for 0s -c x", "--for: a silence needs a length", id="no length"),
    ],
)
def test_a_wrong_call_is_one_line_with_the_fix(
    call: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong with a call, exit code 2 and what to write instead."""
    monkeypatch.setenv("SEVENHOP__STATE", str(tmp_path))
    try:
        code = main(shlex.split(call))
    except SystemExit as end:
        code = int(str(end.code))

    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert said in err
    assert len(err.splitlines()) == 1
