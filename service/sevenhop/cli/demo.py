"""`sevenhop demo`: the story on a simulated cluster; no cluster, no account."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING, Any

from sevenhop.cli.output import UsageError, fail

if TYPE_CHECKING:
    from sevenhop.demo.page import Page

EXIT_BROKEN = 5
DEFAULT_SPEED = 20.0
_STORIES = ("shortage", "surge")  # those of demo/story.py, which the help should not have to import


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="the story on a simulated cluster: no cluster, no account",
        description=(
            "Tells a story on a simulated cluster inside this process, in under a minute. The source, rules, incidents "
            "and messages are those of production; nothing leaves this machine."
        ),
    )
    parser.add_argument("-y", "--yes", action="store_true", help="do not stop for the reader")
    parser.add_argument(
        "--speed",
        type=float,
        default=DEFAULT_SPEED,
        metavar="N",
        help="seconds of the story in one real second; default: %(default)g",
    )
    parser.add_argument("--story", choices=_STORIES, default=_STORIES[0], help="default: %(default)s")


def run(args: argparse.Namespace) -> int:
    if not 0 < args.speed < float("inf"):
        raise UsageError(f"--speed {args.speed:g}: must be more than 0, such as 20")
    from sevenhop.demo.page import Page
    from sevenhop.demo.play import play
    from sevenhop.demo.stage import StageError
    from sevenhop.demo.story import STORIES

    page = Page(sys.stdout)

    async def ask() -> None:
        await _ask(page)

    stops = not args.yes and sys.stdin.isatty() and page.is_live
    try:
        asyncio.run(play(STORIES[args.story], page, speed=args.speed, ask=ask if stops else None))
    except StageError as error:
        fail(f"the demo itself failed: {error}")
        return EXIT_BROKEN
    return 0


async def _ask(page: Page) -> None:
    """Wait for Enter, or the end of the input; the loop goes on, so that no watch falls silent."""
    page.ask("          That is the message. Press Enter to go on. ")
    loop = asyncio.get_running_loop()
    answered = asyncio.Event()
    number = sys.stdin.fileno()

    def read() -> None:
        sys.stdin.readline()
        answered.set()

    loop.add_reader(number, read)
    try:
        await answered.wait()
    finally:
        loop.remove_reader(number)
