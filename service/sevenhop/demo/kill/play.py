"""Kills the service again and again while it helps and gives back, and counts what was lost and what was done twice."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import yaml

from sevenhop.core.remediation.audit import verify_lines
from sevenhop.core.words import counted
from sevenhop.demo.cast import PLAYBOOK
from sevenhop.demo.kill.clock import SharedClock
from sevenhop.demo.kill.counting import Seen, doubled_of, lost_of
from sevenhop.demo.kill.slack import CHANNEL, LocalSlack
from sevenhop.demo.kill.trouble import Caller, Cluster, Rounds, user
from sevenhop.demo.kill.victim import Given
from sevenhop.demo.page import Page
from sevenhop.demo.stage import StageError, open_cluster
from sevenhop.demo.story import BEGINS
from sevenhop.demo.world import crowded
from sevenhop.rulebook.shipped import shipped_playbooks
from sevenhop.simulation.faults import Call, Fault, Refusal
from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.stores.sqlite import SqliteStore
from sevenhop.version import __version__

SPEED = 20.0
"""Virtual seconds in a real one.  Faster, and a start alone would take longer than people and guards wait."""

KILL_S = 5.0
"""Real seconds that one kill takes, with the start before it, on a machine that has something else to do."""

_START_WITHIN_S = 60.0

_LONGEST_S = 12.0
"""What cannot be aimed at within so long is killed where it is."""

_END_WITHIN_S = 120.0


class Aim(StrEnum):
    """Where the service is when it is killed."""

    START = "while it starts"
    ANYWHERE = "at a random moment"
    YES = "as a yes comes in"
    PATCH_BEFORE = "before a patch is taken"
    PATCH_AFTER = "after a patch, before its answer"
    POST_BEFORE = "before a message is taken"
    POST_AFTER = "after a message, before its answer"


_OFTEN = {
    Aim.START: 1,
    Aim.ANYWHERE: 3,
    Aim.YES: 1,
    Aim.PATCH_BEFORE: 2,
    Aim.PATCH_AFTER: 2,
    Aim.POST_BEFORE: 1,
    Aim.POST_AFTER: 1,
}


class _Trap(Fault):
    """Lets go of a call for good once it was met: whoever sent it is killed."""

    def __init__(self, server: ApiServerSimulation, met: asyncio.Event, *, late: bool) -> None:
        super().__init__(verbs=("patch",), times=None)
        self._server = server
        self._met = met
        self._late = late

    @property
    def is_late(self) -> bool:
        return self._late

    def applies(self, call: Call) -> bool:
        patches = [path for method, path in self._server.requests if method == "PATCH"]
        return super().applies(call) and "dryRun" not in patches[-1]

    async def before(self, call: Call) -> Refusal | None:  # noqa: ARG002
        self._met.set()
        await asyncio.sleep(_LONGEST_S)
        return None

    async def after(self, call: Call) -> None:  # noqa: ARG002
        self._met.set()
        await asyncio.sleep(_LONGEST_S)


async def play(page: Page, kills: int, *, seed: int = 7, speed: float = SPEED) -> bool:
    """
    Kill `kills` times, let the rest end in peace, and count; whether nothing was lost or done twice.

    Raises:
        StageError: It does not come to an end.
    """
    page.title(f"sevenhop {__version__} demo --kill {kills}: clock ×{speed:g}, about {_minutes(kills)}")
    page.line(
        "The service runs as a process of its own on the simulated cluster: it finds a lost decode worker, asks, hears "
        "yes, frees GPUs, gives them back, and again. Meanwhile it gets kill -9, aimed at its weakest moments."
    )
    page.line()
    with tempfile.TemporaryDirectory(prefix="sevenhop-demo-") as folder:
        async with _open_scene(Path(folder), speed) as scene:
            seen = await scene.play(page, kills, random.Random(seed))  # noqa: S311  a story, no secret
    _tell(page, seen)
    return not lost_of(seen) and not doubled_of(seen)


class _Scene:
    def __init__(self, folder: Path, cluster: Cluster, slack: LocalSlack, given: Given) -> None:
        self._state = folder / "state"
        self._log = folder / "service.log"
        self._given = folder / "given.json"
        self._given.write_bytes(msgspec.json.encode(given))
        self._cluster = cluster
        self._slack = slack
        self._caller = Caller(self._state)
        self._rounds = Rounds(cluster, self._caller, lambda: not slack.open_ones())
        self._process: asyncio.subprocess.Process | None = None

    async def play(self, page: Page, kills: int, rng: random.Random) -> Seen:
        met: Counter[str] = Counter()
        rounds = asyncio.create_task(self._rounds.run())
        try:
            for number in range(kills):
                await self._start()
                (aim,) = rng.choices(list(_OFTEN), list(_OFTEN.values()))
                met[await self._wait_for(aim, rng)] += 1
                await self._kill()
                _progress(page, number + 1, kills, self._rounds.done)
            await self._start()
            self._rounds.stop()
            try:
                async with asyncio.timeout(_END_WITHIN_S):
                    await rounds
            except TimeoutError:
                raise StageError(f"no end within {_END_WITHIN_S:g} s; {await self._where()}") from None
        finally:
            rounds.cancel()
            await self._kill()
        return self._seen(met)

    # The process

    async def _start(self) -> None:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "sevenhop.demo.kill.victim", str(self._given), stdout=log, stderr=log
            )

    async def _kill(self) -> None:
        process = self._process
        if process is None:
            return
        if process.returncode is not None:
            raise StageError(f"the service ended by itself: {self._tail()}")
        process.kill()
        await process.wait()
        self._process = None

    async def _until_heard(self) -> None:
        ends_s = time.monotonic() + _START_WITHIN_S
        while await self._caller.plans() is None:
            if self._process is None or self._process.returncode is not None or time.monotonic() > ends_s:
                raise StageError(f"the service does not start: {self._tail()}")
            await asyncio.sleep(0.03)

    async def _wait_for(self, aim: Aim, rng: random.Random) -> Aim:
        """Until the moment has come; gives the one that was met."""
        if aim is Aim.START:
            await asyncio.sleep(rng.uniform(0.1, 1.2))
            return aim
        met = asyncio.Event()
        await self._until_heard()
        with self._armed(aim, met):
            if aim is Aim.ANYWHERE:
                await asyncio.sleep(rng.uniform(0.0, 3.0))
                return aim
            try:
                async with asyncio.timeout(_LONGEST_S):
                    await met.wait()
            except TimeoutError:
                return Aim.ANYWHERE
            if aim is Aim.YES:
                await asyncio.sleep(rng.uniform(0.0, 0.02))
        return aim

    @contextlib.contextmanager
    def _armed(self, aim: Aim, met: asyncio.Event) -> Any:
        server = self._cluster.simulated.server
        faults, trap = server.faults, _Trap(server, met, late=aim is Aim.PATCH_AFTER)
        if aim in (Aim.PATCH_BEFORE, Aim.PATCH_AFTER):
            faults.add(trap)
        when = {Aim.POST_BEFORE: "before", Aim.POST_AFTER: "after"}.get(aim)
        self._slack.on_call = lambda moment: met.set() if moment == when else None
        self._rounds.on_approve = met.set if aim is Aim.YES else lambda: None
        try:
            yield
        finally:
            if aim in (Aim.PATCH_BEFORE, Aim.PATCH_AFTER):
                faults.remove(trap)
            self._slack.on_call = lambda _: None
            self._rounds.on_approve = lambda: None

    # The end

    async def _where(self) -> str:
        plans = [f"{row['plan']} {row['state']}/{row['stage']}" for row in await self._caller.plans() or ()]
        return f"plans {plans[:5]}, open messages {self._slack.open_ones()[:5]}, {self._tail()}"

    def _tail(self) -> str:
        """The last lines of its log that name an error, or simply the last."""
        lines = [line.strip(" |+-") for line in self._log.read_text(errors="replace").splitlines()]
        return " / ".join([line for line in lines if "Error: " in line][-2:] or lines[-3:])

    def _seen(self, kills: Counter[str]) -> Seen:
        store = SqliteStore(self._state)
        try:
            lines = list(store.audit_lines())
            problems = tuple(str(problem) for problem in verify_lines(lines, store.audit_head()))
        finally:
            store.close()
        return Seen(
            kills=kills,
            rounds=self._rounds.done,
            approved=frozenset(self._rounds.approved),
            ends=dict(self._rounds.ends),
            numbers=tuple(self._cluster.numbers),
            messages=len(self._slack.bodies),
            posted_twice=self._slack.posted_twice,
            open_messages=tuple(self._slack.open_ones()),
            audit=len(lines),
            audit_problems=problems,
        )


@asynccontextmanager
async def _open_scene(folder: Path, speed: float) -> AsyncIterator[_Scene]:
    simulated = open_cluster(crowded(), BEGINS)
    slack = LocalSlack()
    async with simulated.server.serve() as url, slack.serve() as slack_url:
        zero_s = time.time()
        clock = SharedClock(BEGINS, zero_s, speed)
        cluster = Cluster(simulated, clock)
        settings = _settings(folder, slack_url)
        given = Given(api=url, settings=settings, begins=BEGINS, zero_s=zero_s, speed=speed)
        running = asyncio.create_task(cluster.run())
        try:
            yield _Scene(folder, cluster, slack, given)
        finally:
            running.cancel()


def _settings(folder: Path, slack_url: str) -> dict[str, Any]:
    """Those of production, but for one playbook that may do the same again at once."""
    playbook = yaml.safe_load((shipped_playbooks() / f"{PLAYBOOK}.yaml").read_text("utf-8"))
    playbook |= {
        "cooldown": "1s",
        "most_runs_per_day": 10_000,
        "remind_after": "14m",
        "mode": "approve",
        "approvers": [f"unix:{user()}"],
    }
    others = [
        each for each in shipped_playbooks().glob("*.yaml") if each.name.count(".") == 1 and each.stem != PLAYBOOK
    ]
    file = folder / "playbooks" / f"{PLAYBOOK}.yaml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(playbook))
    return {
        "cluster": "prod-eu",
        "state": str(folder / "state"),
        "playbooks": [str(file), *map(str, others)],
        "remediation": {"breaker": {"most_failures": 10_000}},
        # Each loss is an incident of its own, with a message of its own.
        "incidents": {"flap_limit": 10_000, "reopen_within": "0s"},
        "receivers": {"slack": {"type": "slack", "token": "xoxb-demo", "channel": CHANNEL, "base_url": slack_url}},
    }


def _minutes(kills: int) -> str:
    return f"{max(1, round(kills * KILL_S / 60))} min" if kills > 10 else "a minute"


def _progress(page: Page, number: int, kills: int, rounds: int) -> None:
    if page.is_live:
        width = 20
        done = round(width * number / kills)
        page.bar(f"[{'#' * done}{'.' * (width - done)}] {number}/{kills} kills, {rounds} rounds")
    elif number % 10 == 0 or number == kills:
        page.line(f"{number}/{kills} kills, {rounds} rounds")


def _tell(page: Page, seen: Seen) -> None:
    lost, doubled = lost_of(seen), doubled_of(seen)
    page.line()
    page.title(f"{seen.kills.total()} × kill -9: lost {len(lost)}, done twice {len(doubled)}")
    rows = [
        ("Killed", ", ".join(f"{count} {aim}" for aim, count in sorted(seen.kills.items()))),
        ("Meanwhile", f"{counted(seen.rounds, 'lost worker')}, {counted(len(seen.approved), 'plan')} approved"),
        ("Plans", ", ".join(f"{count} {end}" for end, count in sorted(Counter(seen.ends.values()).items()))),
        ("Patches", f"the donor's replicas were changed {len(seen.numbers) - 1} times, and stand where they were"),
        ("Messages", f"{seen.messages} posted, all of them over at the end"),
        ("Audit", f"{counted(seen.audit, 'record')}, chain ok"),
    ]
    if not seen.cuts:
        rows.append(("But", "no plan got as far as a patch: on a machine that is this busy, it proves little"))
    if lost or doubled:
        rows = [*rows[:3], *(("Lost", each) for each in lost), *(("Twice", each) for each in doubled)]
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        page.row(label, text, width)
