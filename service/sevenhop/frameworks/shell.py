"""
Command lines of containers as words: ``sh -c`` scripts, here-documents and variables included.

Not a shell: nothing is evaluated beyond literal variables, and what cannot be parsed is split at blanks.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence

_SHELLS = frozenset(("sh", "bash", "dash", "ash", "zsh"))
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?\n[ \t]*\2[ \t]*(?=\n|$)", re.DOTALL)
_VARIABLE = re.compile(r"\$\((\w+)\)|\$\{(\w+)(?::?[-=]([^}]*))?\}|\$(\w+)")
_ASSIGNMENT = re.compile(r"^([A-Za-z_]\w*)=([^$`]*)$", re.DOTALL)
_PUNCTUATION = ";&|()\n"
_MOST_FILLED_IN = 65_536
"""Characters in one text: a pod of the largest size would else become terabytes."""

_LONGEST_VALUE = 1_000
"""Of a script's own variable: one that doubles itself line by line stays small."""

_WRAPPER_WORDS = 8
"""How far into a command a shell may stand behind others: ``tini -- bash -c``, ``numactl --cpunodebind=0 sh -c``."""


def commands(command: Sequence[str], args: Sequence[str], env: Mapping[str, str]) -> list[list[str]]:
    """
    The commands that a container runs, each as its words, in order.

    A script of ``sh -c`` is taken apart; words after it (which it sees as ``$@``) are added to its last command.
    Variables with a literal value, also one that the script gives them, are filled in; ``$(NAME)``,
    ``${NAME:-default}`` and ``$NAME`` are understood.

    >>> commands(["sh", "-c"], ["ray start; vllm serve $M --port 1"], {"M": "org/x"})
    [['ray', 'start'], ['vllm', 'serve', 'org/x', '--port', '1']]
    """
    words = [*command, *args]
    script_at = _script_at(words)
    if script_at is None:
        return [[substitute(word, env) for word in words]] if words else []
    found = _with_assignments(split_script(substitute(words[script_at], env)))
    rest = [substitute(word, env) for word in words[script_at + 1 :]]
    if found:
        found[-1] += rest
    elif rest:
        found = [rest]
    return found


def _script_at(words: Sequence[str]) -> int | None:
    shell = next((at for at, word in enumerate(words[:_WRAPPER_WORDS]) if posixpath.basename(word) in _SHELLS), None)
    if shell is None:
        return None
    takes_a_word = False
    for at, word in enumerate(words[shell + 1 :], shell + 1):
        if takes_a_word:  # ``-o pipefail``
            takes_a_word = False
        elif not word.startswith("-"):
            return None  # a script file
        elif not word.startswith("--") and "c" in word:
            return at + 1 if at + 1 < len(words) else None
        else:
            takes_a_word = not word.startswith("--") and word.endswith("o")
    return None


def _with_assignments(lines: list[list[str]]) -> list[list[str]]:
    """``NAME=value`` and ``export NAME=value`` on their own, filled in where a later command uses them."""
    known: dict[str, str] = {}
    found = []
    for line in lines:
        words = [substitute(word, known) for word in line] if known else line
        said = [_ASSIGNMENT.match(word) for word in (words[1:] if words[0] == "export" else words)]
        if all(said):
            known.update((match[1], match[2][:_LONGEST_VALUE]) for match in said if match)
        found.append(words)
    return found


def split_script(script: str) -> list[list[str]]:
    """The commands of a script; here-documents and comments are dropped, control words are words like any other."""
    script = _HEREDOC.sub(r"\3", script.replace("\\\n", " ").replace("\r", ""))
    script = "\n".join(line for line in script.split("\n") if not line.lstrip().startswith("#"))
    lexer = shlex.shlex(script, posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace = " \t"
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word and all(c in _PUNCTUATION for c in word):
                found.append([])
            else:
                found[-1].append(word)
    except ValueError:  # a quote that never closes
        found = [line.split() for line in re.split(r"[;\n]|&&|\|\|", script)]
    return [words for words in found if words]


def substitute(text: str, env: Mapping[str, str]) -> str:
    """Fill in variables whose value is literally known; others, and what would be too long, stay as written."""
    room = _MOST_FILLED_IN

    def value(match: re.Match[str]) -> str:
        nonlocal room
        name = match.group(1) or match.group(2) or match.group(4)
        found = env.get(name, match.group(3) if match.group(3) is not None else match.group(0))
        room -= len(found)
        return found if room >= 0 else match.group(0)

    return _VARIABLE.sub(value, text) if "$" in text else text
