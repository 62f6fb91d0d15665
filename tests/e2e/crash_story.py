"""
The story of the kill tests: lanes break and mend while the service is killed, and Slack is the judge.

A lane is mended only when Slack shows that it is broken, so every transition has to be seen, whatever was killed.

Lanes of several objects are put up only while the service is dead.  Each kind has a watch of its own, so a service that
runs may see the Deployment want a replica before it sees the pod ready: then the lane was broken for a moment, and a
rule without a hold rightly says so.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.e2e.crash_lanes import Lane, NodeLane, WorkloadLane, put_up_node
from tests.e2e.crash_processes import Cluster, Service, wait_until
from tests.e2e.crash_slack import Slack

LANES = 4


class At(StrEnum):
    """Where a transition was when the service was killed."""

    BEFORE_COMMIT = "before commit"
    PENDING = "committed"
    SENDING = "sending"
    SENT = "sent but not recorded"


AIMED = tuple(At)


def kill_plan(kills: int, rng: random.Random) -> list[At | None]:
    """What each kill aims at: a sixth of them at each state, the others at nothing, at a random moment."""
    plan: list[At | None] = [at for at in AIMED for _ in range(max(kills // 6, 2))]
    plan += [None] * (kills - len(plan))
    rng.shuffle(plan)
    return plan


@dataclass
class _Running:
    """A lane in the story; `wanted` is what Slack should show of it, empty while it is well and was never broken."""

    lane: Lane
    wanted: str = ""
    shown: str = ""

    @property
    def is_told(self) -> bool:
        return self.shown == self.wanted

    @property
    def is_over(self) -> bool:
        return self.is_told and self.wanted == "resolved"


@dataclass
class Tally:
    """
    What came of it.

    Attributes:
        met: Kills that met at least one transition in this state.
        lost: Transitions that Slack was never told.
        duplicated: Posts, or thread replies, beyond the first, and edits that were repeated with other words.
        wrong: Messages that said something false in between: firing after resolved.
    """

    kills: int = 0
    losses_of_state: int = 0
    transitions: int = 0
    met: Counter[At] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        states = ", ".join(f"{self.met[at]} {at}" for at in AIMED)
        return (
            f"{self.kills} kills ({states}), {self.losses_of_state} with the state deleted, "
            f"{self.transitions} transitions: {len(self.lost)} lost, {len(self.duplicated)} duplicated, "
            f"{len(self.wrong)} wrong"
        )


class Story:
    """
    Args:
        lose_every: After every so many kills the state folder is deleted; 0 keeps it, and it is an old one.
        diary: Where to write what happened when, and what lay in the outbox at each kill: the proof of what was found.
    """

    def __init__(
        self,
        cluster: Cluster,
        slack: Slack,
        service: Service,
        rng: random.Random,
        *,
        diary: Path,
        lose_every: int = 0,
    ) -> None:
        self.tally = Tally()
        self._cluster = cluster
        self._slack = slack
        self._service = service
        self._rng = rng
        self.lose_every = lose_every
        self._diary = diary.open("a", buffering=1)
        self._is_old = False
        self._early = 0  # kills that were aimed before the commit
        self._count = 0
        self._over: list[Lane] = []
        put_up_node(cluster)
        WorkloadLane(0).put_up(cluster)  # always well: by it one sees that the service has looked
        self._running = [self._new(WorkloadLane if n % 2 else NodeLane) for n in range(LANES)]

    def play(self, plan: list[At | None]) -> Tally:
        """Kill as planned, then let the story end in peace, and judge."""
        for aim in plan:
            if not self._service.runs:
                self._service.start()
            if aim is not None or self._rng.random() < 0.5:
                self._settle()
            self._kill_at(aim)
            self._count_states()
            self._make_room(WorkloadLane, NodeLane)
            if not self.lose_every and not self._is_old:
                self._is_old = self._service.grow_old()
            if self.lose_every and self.tally.kills % self.lose_every == 0:
                self._service.forget()
                self.tally.losses_of_state += 1
                self._note("lost the state")
        self._service.start()
        self._end()
        self._judge()
        return self.tally

    def _new(self, kind: type[Lane]) -> _Running:
        self._count += 1
        lane = kind(self._count)
        lane.put_up(self._cluster)
        self._note("put up", cause=lane.cause)
        return _Running(lane)

    def _note(self, what: str, **more: object) -> None:
        self._diary.write(json.dumps({"at": time.time(), "kill": self.tally.kills, "what": what, **more}) + "\n")

    # What happens

    def _kill_at(self, aim: At | None) -> None:
        match aim:
            case None:
                for each in self._movable()[: self._rng.randint(0, 2)]:
                    self._move(each)
                time.sleep(self._rng.uniform(0.0, 2.5))
            case At.BEFORE_COMMIT:
                # It races with the service, which may have won; so every other one is sure to come too early for it.
                self._early += 1
                if self._early % 2:
                    self._service.freeze()
                self._move(self._movable()[0])
                time.sleep(self._rng.uniform(0.0, 0.003))
            case At.PENDING:
                # The second one waits behind the first, which is not answered.
                first, second = self._movable()[:2]
                self._move_and_hold(first, after_taking=self._rng.random() < 0.5)
                self._move(second)
                wait_until("a second message", lambda: any(p.state == "pending" for p in self._service.outbox()))
            case At.SENDING | At.SENT:
                self._move_and_hold(self._movable()[0], after_taking=aim is At.SENT)
                time.sleep(self._rng.uniform(0.0, 0.02))
        self._service.kill()
        self.tally.kills += 1
        self._note("killed", aim=aim)

    def _move(self, each: _Running) -> None:
        """Break what was never broken, mend what is."""
        each.wanted = "resolved" if each.wanted else "firing"
        self._note("moves", cause=each.lane.cause, to=each.wanted)
        each.lane.set_well(self._cluster, well=each.wanted == "resolved")
        self.tally.transitions += 1

    def _move_and_hold(self, each: _Running, *, after_taking: bool) -> None:
        self._slack.read()
        held = self._slack.held
        if each.wanted:
            self._slack.hold("chat.update", after_taking=after_taking)
        else:
            # The page itself, or the reply with its details, when the page has arrived.
            others = int(self._rng.random() < 0.3)
            self._slack.hold("chat.postMessage", after_taking=after_taking, after_others=others)
        self._move(each)

        def is_held() -> bool:
            self._slack.read()
            return self._slack.held > held

        wait_until(f"a message about {each.lane.cause}", is_held, detail=self._service.tail)

    # What is seen

    def _look(self) -> None:
        """What Slack shows of each lane."""
        self._slack.read()
        for each in self._running:
            messages = self._slack.of(each.lane.cause)
            each.shown = messages[-1].status if messages else ""

    def _make_room(self, *kinds: type[Lane]) -> None:
        """Put up new lanes for those that are over."""
        self._look()
        for index, each in enumerate(self._running):
            if each.is_over:
                self._over.append(each.lane)
                self._running[index] = self._new(self._rng.choice(kinds))

    def _movable(self) -> list[_Running]:
        """Lanes of which Slack shows what is true, and that are not over, in random order."""
        self._look()
        found = [each for each in self._running if each.is_told and not each.is_over]
        self._rng.shuffle(found)
        return found

    def _settle(self) -> None:
        """Wait until the service has looked, and all was told."""

        def is_told() -> bool:
            self._look()
            return all(each.is_told for each in self._running) and not self._service.outbox()

        def detail() -> str:
            return f"{[(e.lane.cause, e.wanted, e.shown) for e in self._running]} {self._service.tail()}"

        wait_until("a look at the cluster", self._service.is_ready, detail=self._service.tail)
        wait_until("Slack to show what is true", is_told, detail=detail)
        if len(self._movable()) < 2:
            self._make_room(NodeLane)  # one object: it cannot be seen half

    def _count_states(self) -> None:
        """Where each transition was: by the dead service's outbox, and by what Slack took."""
        self._look()
        parcels = self._service.outbox()
        self._note("outbox", parcels=[(p.state, p.identity[0], p.cause, p.status) for p in parcels])
        met = set()
        for parcel in parcels:
            if parcel.state == "pending":
                met.add(At.PENDING)
            else:
                met.add(At.SENT if parcel.identity in self._slack.taken else At.SENDING)
        asked_for = {(parcel.cause, parcel.status) for parcel in parcels}
        for each in self._running:
            if not each.is_told and (each.lane.cause, each.wanted) not in asked_for:
                met.add(At.BEFORE_COMMIT)
        self.tally.met.update(met)

    def _end(self) -> None:
        self._settle()
        for each in [each for each in self._running if each.wanted == "firing"]:
            self._move(each)
        self._settle()
        self._over += [each.lane for each in self._running if each.wanted]

    def _judge(self) -> None:
        for lane in self._over:
            parents = self._slack.of(lane.cause)
            if not parents or parents[-1].status != "resolved":
                self.tally.lost.append(f"{lane.cause}: {[p.status for p in parents]}")
            if len(parents) > 1:
                told = [[body.status for body in parent.bodies] for parent in parents]
                self.tally.duplicated.append(f"{lane.cause}: {told}")
            for parent in parents:
                statuses = [body.status for body in parent.bodies]
                if statuses != sorted(statuses) or statuses[0] != "firing":  # f before r
                    self.tally.wrong.append(f"{lane.cause}: {statuses}")
                said: dict[tuple[str, str], str] = {}
                for body in parent.bodies:
                    if said.setdefault(body.identity, body.content) != body.content:
                        self.tally.duplicated.append(f"{lane.cause}: told twice in other words")
                if len(self._slack.thread_of(parent)) > 1:
                    self.tally.duplicated.append(f"{lane.cause}: {len(self._slack.thread_of(parent))} replies")
