"""kill -9 while plans are carried out and given back, and what the API server remembers of it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from threading import Thread

from sevenhop.cli.cluster import ask_service
from sevenhop.cli.output import UsageError
from tests.e2e import remediation_objects as objects
from tests.e2e.remediation_scenes import DECODE, Waiting
from tests.e2e.remediation_stage import Row, Stage, borrowed, later

ENDED = ("succeeded", "failed", "undone", "superseded", "unknown")
WRITES = 2
"""Of a Deployment for one step: its mark and its number.  Its generation counts changes of both (and of nothing else
here: pkg/registry/apps/deployment/strategy.go compares spec and annotations)."""

PATIENCE_S = 90.0
"""After a kill in the middle of a step the service may have to find out what came of it first."""


@dataclass
class Tally:
    """
    Attributes:
        met: State and stage of the plans, and what the donor looked like, right after each kill.
        wrong: What must not be.
    """

    kills: int = 0
    cycles: int = 0
    met: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        met = ", ".join(f"{what} {count}" for what, count in self.met.most_common())
        ends = ", ".join(f"{what} {count}" for what, count in self.ends.most_common())
        return f"{self.kills} kills, {self.cycles} cycles; met: {met}; plans ended: {ends}; wrong: {self.wrong or 0}"


class Lane:
    """
    One scene in which the same story plays again and again.

    Attributes:
        generation: Of the donor when its present plan was made.
        accepted: Whether the service has said so to what was asked last.
    """

    def __init__(self, here: Waiting) -> None:
        self.here = here
        self.plan = ""
        self.generation = 0
        self.accepted = False
        node = here.node(4)
        here.keeper(node, 1)
        here.plain_donor(replicas=3)
        here.runs(3, "app=summarizer")
        here.llama(1)
        here.waits(1)

    def changes(self) -> int:
        """How often anybody has written to the donor since its present plan was made, see `WRITES`."""
        return int(self.here.deployment()["metadata"]["generation"]) - self.generation

    def looks(self) -> str:
        donor = self.here.deployment()
        pods = self.here.pods("app=summarizer") if borrowed(donor) else []
        marks = f", marked{', steered' if objects.steered(pods) else ''}" if borrowed(donor) else ""
        return f"{donor['spec']['replicas']} replicas{marks}"

    def again(self) -> None:
        """The worker is not wanted, the donor fills the node, and it is wanted again."""
        self.here.ask_for_decode(0)
        later(lambda: not self.here.pods(DECODE), what="the end of the decode worker")
        self.here.runs(3, "app=summarizer")
        self.here.ask_for_decode(1)
        self.here.waits(1)


class Kills:
    def __init__(self, stage: Stage, lanes: list[Lane], rng: Random) -> None:
        self._stage, self._lanes, self._rng = stage, lanes, rng
        self.tally = Tally()

    def play(self, kills: int) -> Tally:
        """Cycles of approve and restore with a kill in each, until there were so many."""
        while self.tally.kills < kills:
            if self.tally.cycles:
                for lane in self._lanes:
                    lane.again()
            self._approve()
            self._restore()
            self.tally.cycles += 1
        return self.tally

    def _approve(self) -> None:
        for lane in self._lanes:
            self._offered(lane)
        self._killed("approve")
        for lane in self._lanes:
            while True:
                state = self._settled(lane, "approve", *ENDED)
                self._judge_applied(lane, state)
                if state == "succeeded":
                    break
                self._offered(lane, but=lane.plan)
                self._decide(lane, "approve")

    def _restore(self) -> None:
        self._killed("restore")
        for lane in self._lanes:
            state = self._settled(lane, "restore", "restored", "unknown")
            self.tally.ends[state] += 1
            donor = lane.here.deployment()
            self._check(lane, "restored", state == "restored", f"it is {state}")
            self._check(lane, "restored", donor["spec"]["replicas"] == 3, lane.looks())
            self._check(lane, "restored", not borrowed(donor), lane.looks())
            self._check(lane, "restored", lane.changes() == 2 * WRITES, f"it was written {lane.changes()} times")
            self._check(lane, "restored", not objects.steered(lane.here.pods("app=summarizer")), "a pod is steered yet")

    def _offered(self, lane: Lane, but: str = "") -> None:
        lane.plan = self._stage.plan(lane.here.namespace, but=but, timeout=60)["plan"]
        lane.generation = int(lane.here.deployment()["metadata"]["generation"])
        lane.accepted = False

    def _judge_applied(self, lane: Lane, state: str) -> None:
        donor = lane.here.deployment()
        if state == "succeeded":
            self._check(lane, state, donor["spec"]["replicas"] == 2, lane.looks())
            self._check(lane, state, lane.plan in borrowed(donor), lane.looks())
            self._check(lane, state, lane.changes() == WRITES, f"it was written {lane.changes()} times")
            return
        self.tally.ends[state] += 1
        later(lambda: not borrowed(lane.here.deployment()), timeout=PATIENCE_S, what=f"no mark after {state}")
        self._check(lane, state, donor["spec"]["replicas"] == 3, lane.looks())
        # Nothing, only the mark and off again, or all of it and back.
        self._check(lane, state, lane.changes() in (0, WRITES, 2 * WRITES), f"it was written {lane.changes()} times")

    def _killed(self, verb: str) -> None:
        """Ask for all lanes at once, kill at some moment after that, and start again."""
        aim = self._rng.choice(("by time", "at the first write", "API server hangs"))
        before = self._lanes[0].looks()
        for lane in self._lanes:
            lane.accepted = False
        threads = [Thread(target=self._decide, args=(lane, verb), daemon=True) for lane in self._lanes]
        for thread in threads:
            thread.start()
        if aim == "at the first write":
            _wait_for_change(self._lanes[0], before)
        else:
            time.sleep(self._rng.choice((self._rng.uniform(0, 0.1), self._rng.uniform(0, 0.4))))
        hangs = aim == "API server hangs"
        if hangs:  # what was sent is done, or not, after the one who asked is dead
            self._stage.cluster.pause("kube-apiserver")
            time.sleep(0.2)
        self._stage.service.kill()
        if hangs:
            self._stage.cluster.resume("kube-apiserver")
        for thread in threads:
            thread.join(15)
        for lane in self._lanes:
            self.tally.met[f"{verb} ({aim}): {lane.looks()}"] += 1
        self._stage.service.start()
        self.tally.kills += 1

    def _decide(self, lane: Lane, verb: str) -> None:
        """As a person on the service's host; that it dies meanwhile is what these tests are for."""
        body = {"verb": verb, "plan": lane.plan, "hash": "", "comment": "", "request": ""}
        try:
            answer = ask_service(self._stage.service.state, "POST", "/decide", body, refusals=(409,))
        except (UsageError, ValueError, OSError):
            return
        lane.accepted = lane.accepted or bool(answer and answer["accepted"])

    def _settled(self, lane: Lane, verb: str, *states: str) -> str:
        """Its plan's state once it is one of these; asked again where the kill came before the decision was kept."""
        before = {"approve": "proposed", "restore": "succeeded"}[verb]

        def look() -> str:
            row = self._row(lane)
            state = str(row.get("state", ""))
            if state == before and row["stage"] in ("decision", "lent", "extension"):
                self._check(lane, verb, not lane.accepted, f"{verb} was accepted and forgotten")
                self._decide(lane, verb)
                return ""
            if verb == "approve" and not state:
                self._offered(lane)
            return state if state in states else ""

        try:
            return str(later(look, timeout=PATIENCE_S))
        except TimeoutError:
            history = "\n".join(self._stage.describe(lane.plan)["history"])
            raise TimeoutError(f"plan {lane.plan} does not get {states}; {lane.looks()}:\n{history}") from None

    def _row(self, lane: Lane) -> Row:
        return next((row for row in self._stage.service.rows("plans") if row["plan"] == lane.plan), {})

    def _check(self, lane: Lane, when: str, holds: bool, text: str) -> None:
        if not holds:
            history = "\n".join(self._stage.describe(lane.plan)["history"][-12:])
            self.tally.wrong.append(f"{lane.here.namespace} {when}: {text}\n{history}")


def _wait_for_change(lane: Lane, before: str) -> None:
    """Until the donor looks different: with luck in the middle of what is done to it."""
    ends = time.monotonic() + 3
    while lane.looks() == before and time.monotonic() < ends:
        time.sleep(0.001)
