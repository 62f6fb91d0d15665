"""Plays one story from beginning to end on a page."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sevenhop.core.remediation.audit import verify_lines
from sevenhop.core.words import counted
from sevenhop.demo.cast import PLAYBOOK
from sevenhop.demo.choices import SILENT, Choose, scripted
from sevenhop.demo.deciding import Deciding
from sevenhop.demo.narrator import Narrator, Tally
from sevenhop.demo.page import Page
from sevenhop.demo.stage import Stage, StageError, open_stage
from sevenhop.demo.story import BEGINS, STORIES, Step, Story
from sevenhop.demo.telling import Teller
from sevenhop.version import __version__

_ASKS = "{mode: approve, approvers: [slack-group:S0123]}"

Rows = list[tuple[str, str]]


async def play(story: Story, page: Page, *, speed: float, choose: Choose | None = None) -> Tally:
    """
    Tell a story.

    Args:
        speed: Seconds of the story in one real second.
        choose: What the reader does where people are asked; None lets nobody answer.

    Raises:
        StageError: A part of ours failed, or the story ended otherwise than it should; in one line.
        BrokenPipeError: Whoever read the page has gone.
    """
    page.title(
        f"sevenhop {__version__} demo: simulated cluster prod-eu, clock ×{speed:g}, faster where nothing happens"
    )
    page.line(
        "The cluster is simulated; what watches it, tells you, asks you and changes it is what runs in production. "
        "Nothing leaves this machine."
    )
    page.line(story.about)
    page.line()
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sevenhop-demo-") as folder, _quiet_logs():
        async with open_stage(story.world(), BEGINS, Path(folder), page.stream) as stage:
            narrator = Narrator(story, stage.engine, page)
            stage.embedded.observers.append(narrator.heard)
            narrator.opening(stage.clock(), time.monotonic() - began_s)
            teller = Teller(page, stage, narrator, speed)
            moral = await _tell(story, stage, narrator, teller, choose or scripted(SILENT))
            trail = _trail(stage)
    page.line()
    page.title(moral)
    _close(story, page, [*narrator.closing(), *trail])
    return narrator.tally


async def _tell(story: Story, stage: Stage, narrator: Narrator, teller: Teller, choose: Choose) -> str:
    await _happen(story.opening, stage, teller)
    await teller.until(BEGINS + story.told)
    moral = story.moral
    if story.decision is not None:
        moral = await Deciding(story.decision, stage, narrator, teller).play(choose)
    else:
        await _happen(story.then, stage, teller)
        await teller.until(BEGINS + story.ends)
        case = narrator.case()
        if case is not None:
            teller.page.at(stage.clock(), f"Plan {case.id}: {'; '.join(narrator.plan_lines(case.plan)[:4])}.")
    return moral


async def _happen(steps: Sequence[Step], stage: Stage, teller: Teller) -> None:
    for step in steps:
        await teller.until(BEGINS + step.at)
        teller.page.at(stage.clock(), step.says)
        for action in step.actions:
            stage.act(action)


def _trail(stage: Stage) -> Rows:
    """
    What the audit trail holds, and that a change of it would show.

    Raises:
        StageError: It is broken, or does not notice a change.
    """
    lines, head = list(stage.state.audit_lines()), stage.state.audit_head()
    if not lines:
        return []
    problems = verify_lines(lines, head)
    if problems:
        raise StageError(f"the audit trail is broken: {problems[0]}")
    found = verify_lines(_with_another_byte(lines), head)
    if not found:
        raise StageError("a changed audit record went unnoticed")
    return [("Audit", f"{counted(len(lines), 'record')}, chain ok; with one byte of a copy changed: {found[0]}")]


def _with_another_byte(lines: Sequence[bytes]) -> list[bytes]:
    """A copy in which one record's time differs by a digit."""
    number = len(lines) // 2
    line = lines[number]
    place = line.index(b"T") + 1  # of the hour, in "at"
    other = b"2" if line[place : place + 1] != b"2" else b"1"
    return [*lines[:number], line[:place] + other + line[place + 1 :], *lines[number + 1 :]]


def _close(story: Story, page: Page, rows: Rows) -> None:
    others = " | ".join(name for name in STORIES if name != story.name)
    next_steps = [
        ("Your cluster", "sevenhop scan --context NAME (read-only, installs nothing)"),
        ("Watch it", "sevenhop run --context NAME; plans are made and recorded, and nobody is asked (shadow)"),
        ("Let it ask", f"in sevenhop.yaml: remediation: {{playbooks: {{{PLAYBOOK}: {_ASKS}}}}}"),
        ("Ask it why", "sevenhop explain WORKLOAD/COMPONENT; sevenhop explain --why-not says why an alert is silent"),
        ("More stories", f"sevenhop demo {others}"),
        ("Kill it", "sevenhop demo --kill 50: kill -9 at random moments, and what was lost or done twice"),
    ]
    width = max(len(label) for label, _ in (*rows, *next_steps))
    for label, text in rows:
        page.row(label, text, width)
    page.line()
    for label, text in next_steps:
        page.row(label, text, width)


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """What fails is told as a `StageError`; everything else in the log is for operators, not for readers of a story."""
    log = logging.getLogger("sevenhop")
    was = log.disabled, log.propagate
    handler = logging.NullHandler()
    log.addHandler(handler)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.disabled, log.propagate = was
