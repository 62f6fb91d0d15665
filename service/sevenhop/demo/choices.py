"""What the reader may do when a plan waits for a decision, and who says so: a script, or a person at a terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import StrEnum


class Choice(StrEnum):
    """The value is the key that stands for it."""

    WRONG_PERSON = "w"
    STALE = "s"
    EXPLAIN = "e"
    APPROVE = "a"
    REJECT = "r"
    NEITHER = ""  # nobody answers

    @property
    def is_final(self) -> bool:
        return self in (Choice.APPROVE, Choice.REJECT, Choice.NEITHER)


WORDS = {
    Choice.WRONG_PERSON: "(w)rong person",
    Choice.STALE: "(s)tale: the donor changes first",
    Choice.EXPLAIN: "(e)xplain",
    Choice.APPROVE: "(a)pprove",
    Choice.REJECT: "(r)eject",
}

Choose = Callable[[Sequence[Choice]], Awaitable[Choice]]
"""The next choice among those that are open; one that is final comes at last."""

YES = (Choice.WRONG_PERSON, Choice.STALE, Choice.APPROVE)
NO = (Choice.WRONG_PERSON, Choice.REJECT)
SILENT = (Choice.NEITHER,)
"""For a pipe: a decision that nobody takes is not a yes."""


def scripted(choices: Sequence[Choice]) -> Choose:
    """One after the other, whatever is open."""
    left: Iterator[Choice] = iter(choices)

    async def choose(_: Sequence[Choice]) -> Choice:
        return next(left, Choice.NEITHER)

    return choose


def prompt(open_now: Sequence[Choice]) -> str:
    """``Try: (w)rong person  (a)pprove  (r)eject > ``"""
    return f"Try: {'  '.join(WORDS[choice] for choice in open_now)} > "
