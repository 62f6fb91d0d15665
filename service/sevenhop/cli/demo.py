"""`sevenhop demo`: a story on a simulated cluster; no cluster, no account."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sevenhop.cli.output import UsageError, fail

if TYPE_CHECKING:
    from sevenhop.demo.choices import Choice, Choose
    from sevenhop.demo.page import Page

EXIT_FOUND = 1
"""Something was lost or done twice."""

EXIT_BROKEN = 5
MOST_KILLS = 1000
DEFAULT_SPEED = 20.0
_STORIES = ("shortage", "surge", "no-donor")  # those of demo/story.py, which the help should not have to import


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="a story on a simulated cluster: no cluster, no account",
        description=(
            "Tells a story on a simulated cluster inside this process, in under 90 seconds. What watches, tells, asks "
            "and changes is what runs in production; nothing leaves this machine. In a terminal you decide; in a pipe "
            "nobody does, unless --yes or --no says so."
        ),
    )
    parser.add_argument("story", nargs="?", choices=_STORIES, default=_STORIES[0], help="default: %(default)s")
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument("-y", "--yes", action="store_true", help="do not ask: try what must fail, then approve")
    answers.add_argument("-n", "--no", action="store_true", help="do not ask: reject")
    parser.add_argument(
        "--speed",
        type=float,
        default=DEFAULT_SPEED,
        metavar="N",
        help="seconds of the story in one real second; default: %(default)g",
    )

    parser.add_argument(
        "--kill",
        type=int,
        metavar="N",
        help="instead of a story: kill -9 the service N times while it works, and count what was lost or done twice",
    )


def run(args: argparse.Namespace) -> int:
    if args.kill is not None:
        return _kill(args)
    if not 0 < args.speed < float("inf"):
        raise UsageError(f"--speed {args.speed:g}: must be more than 0, such as 20")
    from sevenhop.demo.page import Page
    from sevenhop.demo.play import play
    from sevenhop.demo.stage import StageError
    from sevenhop.demo.story import STORIES

    page = Page(sys.stdout)
    try:
        asyncio.run(play(STORIES[args.story], page, speed=args.speed, choose=_choose(args, page)))
    except StageError as error:
        fail(f"the demo itself failed: {error}")
        return EXIT_BROKEN
    return 0


def _kill(args: argparse.Namespace) -> int:
    if not 1 <= args.kill <= MOST_KILLS:
        raise UsageError(f"--kill {args.kill}: must be from 1 to {MOST_KILLS}")
    from sevenhop.demo.kill.play import play
    from sevenhop.demo.page import Page
    from sevenhop.demo.stage import StageError

    try:
        is_good = asyncio.run(play(Page(sys.stdout), args.kill))
    except StageError as error:
        fail(f"the demo itself failed: {error}")
        return EXIT_BROKEN
    return 0 if is_good else EXIT_FOUND


def _choose(args: argparse.Namespace, page: Page) -> Choose | None:
    from sevenhop.demo.choices import NO, YES, scripted

    if args.yes or args.no:
        return scripted(YES if args.yes else NO)
    if not (sys.stdin.isatty() and page.is_live):
        return None

    async def choose(open_now: Sequence[Choice]) -> Choice:
        return await _ask(page, open_now)

    return choose


async def _ask(page: Page, open_now: Sequence[Choice]) -> Choice:
    """Wait for one of the keys; the end of the input is nobody's answer."""
    from sevenhop.demo.choices import Choice, prompt
    from sevenhop.demo.page import INDENT

    keys = {choice.value: choice for choice in open_now}
    while True:
        page.ask(f"{INDENT}{prompt(open_now)}")
        line = await _line()
        if not line:
            page.line()
            return Choice.NEITHER
        chosen = keys.get(line.strip().lower()[:1])
        if chosen is not None:
            return chosen


async def _line() -> str:
    """One line of the input; the loop goes on meanwhile, so that no watch falls silent."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[str] = loop.create_future()
    number = sys.stdin.fileno()

    def read() -> None:
        if not answered.done():
            answered.set_result(sys.stdin.readline())

    loop.add_reader(number, read)
    try:
        return await answered
    finally:
        loop.remove_reader(number)
