"""The model that a command line names by its place: ``vllm serve MODEL``, ``trtllm-serve --port 8000 MODEL``."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

_POSITIONAL = ("serve", "api_server")
_SUBCOMMANDS = ("serve", "api_server", "v2", "disaggregated_mpi_worker", "mm_embedding_serve")

_SWITCH = re.compile(
    r"^--?(?:(?:enable|disable|no|use|skip|return|calculate|headless|async)(?:[-_].*)?|trust[-_]remote[-_]code"
    r"|enforce[-_]eager|language[-_]model[-_]only|data[-_]parallel[-_](?:hybrid|external)[-_]lb)$"
)
"""Flags that take no value, in front of a model."""

_REDIRECTION = re.compile(r"^\d*[<>]")

_LISTS = re.compile(
    r"^--(?:served[-_]model[-_]name|lora[-_]modules|allowed[-_]\w+|middleware|api[-_]key|cuda[-_]graph[-_]sizes)$"
)


def positional(words: Sequence[str]) -> str:
    """The model in ``vllm serve MODEL``, ``trtllm-serve MODEL``, ``lmdeploy serve api_server MODEL``."""
    for at, word in enumerate(words):
        base = posixpath.basename(word)
        if base in (*_POSITIONAL, "trtllm-serve"):
            following = words[at + 1] if at + 1 < len(words) else ""
            if following and not following.startswith("-") and following not in _SUBCOMMANDS:
                return following
            if following.startswith("-"):
                return _behind_flags(words[at + 1 :])
    if words and not words[0].startswith("-") and "/" in words[0] and not words[0].startswith("/"):
        return words[0]  # only arguments: the image's entry point is `vllm serve`
    behind = _behind_flags(words) if words and words[0].startswith("-") else ""
    return behind if "/" in behind else ""


def _behind_flags(words: Sequence[str]) -> str:
    """The model in ``vllm serve --port 8000 MODEL``, where flags come first; empty if none stands there."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            return words[at] if at < len(words) else ""
        if _REDIRECTION.match(word):
            return ""
        if not word.startswith("-"):
            if re.match(r"^[\d.,]+$", word):  # one more value of a list
                continue
            return word
        if "=" in word:
            continue
        if _LISTS.match(word):
            while at < len(words) and not words[at].startswith("-"):
                at += 1
        elif not _SWITCH.match(word) or words[at : at + 1] in (["true"], ["false"], ["True"], ["False"]):
            at += at < len(words) and (words[at].lstrip("-") == "" or not re.match(r"^-{1,2}[A-Za-z]", words[at]))
    return ""
