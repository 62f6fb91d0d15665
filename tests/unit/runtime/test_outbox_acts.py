"""Steps in the cluster through the outbox: done once, permitted at the moment, and their answers never lost."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from sevenhop.actions.errors import RetryableActError, UncertainActError
from sevenhop.core.effects import CLUSTER, Act, Reply
from sevenhop.core.engine import Step
from sevenhop.core.events import Decided, Event, StepDone, StepResult, Verb
from sevenhop.core.remediation.permit import GuardName, Permit, Purpose, Refusal
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.acting import MOST_ATTEMPTS, MOST_ATTEMPTS_TO_GIVE_BACK, Acting
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.embedded import Embedded
from sevenhop.runtime.outbox import Outbox
from sevenhop.stores.sqlite import SqliteStore
from tests.unit.actions import scene
from tests.unit.actions.scene import DEPLOYMENT, NOON, KilledError, act, cluster, leave
from tests.unit.runtime.harness import Heard, Script, until

SWITCH = Refusal(GuardName.KILL_SWITCH, "the switch is on since 12:00 (dana); turn it off first")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path)
    yield opened
    opened.close()


def put(store: SqliteStore, *acts: Act) -> None:
    store.commit([], acts, now=NOON.timestamp())


def permitting(asked: list[str] | None = None) -> Callable[[Act, datetime], Permit | Refusal]:
    def permit(step: Act, _: datetime) -> Permit:
        if asked is not None:
            asked.append(str(step.purpose))
        return leave(step, seconds=3600)

    return permit


def switched_off(but: frozenset[Purpose] = frozenset()) -> Callable[[Act, datetime], Permit | Refusal]:
    return lambda step, _: leave(step, seconds=3600) if step.purpose in but else SWITCH


class Says:
    """An executor that answers by a script."""

    def __init__(self, *answers: Exception | StepResult) -> None:
        self._answers = list(answers)
        self.calls: list[tuple[str, bool]] = []

    async def deliver(self, step: Act, *, uncertain: bool, permit: Permit) -> StepDone:
        self.calls.append((str(step.purpose), uncertain))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return StepDone(at=NOON, effect_id=step.id, result=answer, detail="as told")


@asynccontextmanager
async def acting(
    store: SqliteStore,
    executor: Any,
    permit: Callable[[Act, datetime], Permit | Refusal] | None = None,
    *,
    hear: Callable[[list[Event]], Any] | None = None,
    speed: float = 1000.0,
) -> AsyncIterator[Heard]:
    """An outbox with hands at work; leaving it stops it, whatever it is doing."""
    clock, heard = Clock(NOON, speed), Heard()
    outbox = Outbox(store, {}, clock, Acting(executor, permit or permitting(), clock))
    outbox.start_with(hear or heard.take)
    task = asyncio.create_task(outbox.run())
    try:
        yield heard
    finally:
        task.cancel()
        await asyncio.wait([task])


def done_of(heard: Sequence[Event]) -> list[StepDone]:
    return [event for event in heard if isinstance(event, StepDone)]


async def test_a_step_is_done_and_its_answer_kept_until_it_is_taken_in(store: SqliteStore) -> None:
    """What came of it outlives the process until the engine's own step is stored."""
    async with cluster() as c:
        step = act(*scene.deployment(c))
        put(store, step)
        async with acting(store, c.executor()[0]) as heard:
            await until(lambda: done_of(heard) != [])

        (done,) = done_of(heard)
        assert (done.effect_id, done.result, store.waiting()[0]) == (step.id, StepResult.DONE, 0)
        assert store.answers() == [done]
        put(store, step)  # asked for again, as after a restart
        assert store.waiting()[0] == 0
        store.commit([], heard=[step.id], now=NOON.timestamp())
        assert store.answers() == []


@pytest.mark.parametrize("where", ["in the executor", "before finish", "after finish", "while it is told"])
async def test_killed_at_each_point(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next process does what is left, and the engine hears of it; the donor is scaled once."""

    async def die(_: list[Event]) -> None:
        raise KilledError

    def die_instead(*_: object, **__: object) -> None:
        raise KilledError

    async with cluster() as c:
        step = act(*scene.deployment(c))
        store = SqliteStore(tmp_path)
        put(store, step)
        finish = store.finish_step

        def die_after(*given: Any, **named: Any) -> None:
            finish(*given, **named)
            raise KilledError

        if where == "before finish":
            monkeypatch.setattr(store, "finish_step", die_instead)
        if where == "after finish":
            monkeypatch.setattr(store, "finish_step", die_after)
        executor, mortal = c.executor(dies_after=2 if where == "in the executor" else None)
        clock = Clock(NOON, 1000)
        outbox = Outbox(store, {}, clock, Acting(executor, permitting(), clock))
        outbox.start_with(_only_steps(die))
        with pytest.raises(BaseExceptionGroup):
            await asyncio.wait_for(outbox.run(), 30)
        store.close()
        assert mortal.writes

        again = SqliteStore(tmp_path)
        put(again, step)  # the engine asks for what it has no answer to
        async with acting(again, c.executor()[0]) as heard:
            await until(lambda: done_of(heard) != [])
            await until(lambda: again.waiting()[0] == 0)
        again.close()

        assert [done.result for done in done_of(heard)] == [StepResult.DONE]
        assert c.get(DEPLOYMENT, "donor")["spec"]["replicas"] == 3
        versions = [change for change in c.store.changes_since(DEPLOYMENT, 0) if change.type == "MODIFIED"]
        assert len(versions) == 2  # the mark, and the number


def _only_steps(then: Callable[[list[Event]], Any]) -> Callable[[list[Event]], Any]:
    async def take(events: list[Event]) -> None:
        if any(isinstance(event, StepDone) for event in events):
            await then(events)

    return take


async def test_a_switch_that_is_turned_while_a_step_waits_counts(store: SqliteStore) -> None:
    """The permit is asked for when the step's turn comes; a refusal asks nothing of the cluster."""
    async with cluster() as c:
        put(store, act(*scene.deployment(c)))
        async with acting(store, c.executor()[0], switched_off()) as heard:
            await until(lambda: done_of(heard) != [])

        (done,) = done_of(heard)
        assert (done.result, done.detail) == (StepResult.REFUSED, f"kill-switch: {SWITCH.text}")
        assert c.server.requests == []


@pytest.mark.parametrize(
    ("dies_after", "result", "replicas"),
    [
        pytest.param(1, StepResult.REFUSED, 4, id="what had begun is taken back"),
        pytest.param(3, StepResult.DONE, 3, id="what was done is told as done"),
    ],
)
async def test_a_switch_that_is_turned_while_we_are_down(
    store: SqliteStore, dies_after: int, result: StepResult, replicas: int
) -> None:
    """A crash in the middle and a switch that is on: nothing stays half done, and nothing more is done."""
    async with cluster() as c:
        step = act(*scene.deployment(c))
        executor, _ = c.executor(dies_after=dies_after)
        with pytest.raises(KilledError):
            await executor.deliver(step, uncertain=False, permit=leave(step))
        put(store, step)
        parcel = store.first(CLUSTER)
        assert parcel is not None
        store.begin_sending(parcel.seq)
        permit = switched_off(but=frozenset({Purpose.READ_BACK, Purpose.UNDO}))
        async with acting(store, c.executor()[0], permit) as heard:
            await until(lambda: done_of(heard) != [])

        (done,) = done_of(heard)
        assert (done.result, c.get(DEPLOYMENT, "donor")["spec"]["replicas"]) == (result, replicas)
        assert c.annotations(DEPLOYMENT, "donor") == {} or result is StepResult.DONE


@pytest.mark.parametrize(
    ("purpose", "refusal"),
    [
        pytest.param(Purpose.APPLY, Refusal(GuardName.FRESH, "Pod: not_synced"), id="not listed yet"),
        pytest.param(Purpose.RESTORE, Refusal(GuardName.UNCHANGED, "the donor is not there"), id="what is owed"),
    ],
)
async def test_after_a_start_a_step_waits_until_things_are_seen(
    store: SqliteStore, purpose: Purpose, refusal: Refusal
) -> None:
    """The first list takes seconds, and a step that waited through a restart is not given up for that."""
    async with cluster() as c:
        put(store, act(*scene.deployment(c), purpose=purpose))
    answers: list[Refusal] = [refusal, refusal]

    def permit(step: Act, _: datetime) -> Permit | Refusal:
        return answers.pop() if answers else leave(step, seconds=3600)

    async with acting(store, says := Says(StepResult.DONE), permit) as heard:
        await until(lambda: done_of(heard) != [])

    assert (says.calls, done_of(heard)[0].result) == ([(str(purpose), False)], StepResult.DONE)


@pytest.mark.parametrize(
    "refusal", [SWITCH, Refusal(GuardName.MODE, "shadow"), Refusal(GuardName.OPT_OUT, "its owner says no")], ids=str
)
async def test_what_does_not_pass_by_itself_is_refused_at_once(store: SqliteStore, refusal: Refusal) -> None:
    """Lending for longer is not tried on behind a switch: let go within seconds it would take what was refused."""
    async with cluster() as c:
        put(store, act(*scene.deployment(c), purpose=Purpose.EXTEND))
    answers = [refusal]

    def permit(step: Act, _: datetime) -> Permit | Refusal:
        return answers.pop() if answers else leave(step, seconds=3600)

    async with acting(store, says := Says(StepResult.DONE), permit) as heard:
        await until(lambda: done_of(heard) != [])

    assert (says.calls, done_of(heard)[0].result) == ([], StepResult.REFUSED)


@pytest.mark.parametrize("purpose", [Purpose.UNDO, Purpose.RESTORE, Purpose.EXTEND])
async def test_a_step_that_was_overtaken_keeps_nothing(store: SqliteStore, purpose: Purpose) -> None:
    """The plan waits for another step by now: the old one is refused at once, and the new one is done."""
    async with cluster() as c:
        old = act(*scene.deployment(c), purpose=purpose, number=1)
        new = act(*scene.deployment(c), purpose=Purpose.RESTORE, number=2)
        put(store, old, new)
    overtaken = Refusal(GuardName.APPROVED, "that is not what the plan waits for now")

    def permit(step: Act, _: datetime) -> Permit | Refusal:
        return overtaken if step.id == old.id else leave(step, seconds=3600)

    async with acting(store, says := Says(StepResult.DONE), permit, speed=1) as heard:
        await until(lambda: len(done_of(heard)) == 2)

    assert [done.result for done in done_of(heard)] == [StepResult.REFUSED, StepResult.DONE]
    assert says.calls == [("restore", False)]


async def test_what_is_never_seen_is_refused_in_the_end(store: SqliteStore) -> None:
    """With the guard's own words."""
    async with cluster() as c:
        put(store, act(*scene.deployment(c)))
    fresh = Refusal(GuardName.FRESH, "Pod cannot be seen now: forbidden")
    async with acting(store, says := Says(StepResult.DONE), lambda *_: fresh, speed=1e6) as heard:
        await until(lambda: done_of(heard) != [])

    (done,) = done_of(heard)
    assert (says.calls, done.result, fresh.text in done.detail) == ([], StepResult.REFUSED, True)


async def test_steps_keep_their_order(store: SqliteStore) -> None:
    """One after the other: an undo never overtakes the apply, and nobody's place is taken by a newer revision."""
    async with cluster() as c:
        steps = [act(*scene.deployment(c), purpose=p, number=n) for n, p in enumerate((Purpose.APPLY, Purpose.UNDO))]
        put(store, *steps)
        says = Says(RetryableActError("busy", 1.0), StepResult.DONE)
        async with acting(store, says) as heard:
            await until(lambda: len(done_of(heard)) == 2)

    assert says.calls == [("apply", False), ("apply", False), ("undo", False)]
    assert [done.effect_id for done in done_of(heard)] == [step.id for step in steps]


async def test_a_step_that_is_stuck_keeps_no_other_plan(store: SqliteStore) -> None:
    """One donor's webhook is down for an hour; what another plan gives back goes on meanwhile."""
    async with cluster() as c:
        stuck = act(*scene.deployment(c), purpose=Purpose.RESTORE)
        other = act(*scene.ray(c), purpose=Purpose.UNDO)
        put(store, stuck, other)
        says = Says(RetryableActError("webhook down", 3600.0), StepResult.DONE)
        async with acting(store, says, speed=1) as heard:
            await until(lambda: done_of(heard) != [])

    assert [done.effect_id for done in done_of(heard)] == [other.id]
    assert says.calls == [("restore", False), ("undo", False)]


async def test_an_uncertain_step_is_delivered_as_uncertain(store: SqliteStore) -> None:
    """From then on, whatever follows."""
    async with cluster() as c:
        put(store, act(*scene.deployment(c)))
    says = Says(UncertainActError("lost"), RetryableActError("busy"), StepResult.DONE)
    async with acting(store, says) as heard:
        await until(lambda: done_of(heard) != [])

    assert says.calls == [("apply", False), ("apply", True), ("apply", True)]


@pytest.mark.parametrize(
    ("error", "purpose", "attempts", "result"),
    [
        pytest.param(RetryableActError("down"), Purpose.APPLY, MOST_ATTEMPTS, StepResult.REFUSED, id="surely not"),
        pytest.param(UncertainActError("lost"), Purpose.APPLY, MOST_ATTEMPTS, StepResult.UNKNOWN, id="perhaps"),
        pytest.param(
            RetryableActError("down"),
            Purpose.RESTORE,
            MOST_ATTEMPTS_TO_GIVE_BACK,
            StepResult.REFUSED,
            id="what is owed is tried for longer",
        ),
    ],
)
async def test_it_is_given_up_one_day(
    store: SqliteStore, error: Exception, purpose: Purpose, attempts: int, result: StepResult
) -> None:
    """People hear of it, with what is known, instead of a step that waits for ever and holds up the next."""
    async with cluster() as c:
        put(store, act(*scene.deployment(c), purpose=purpose))
    says = Says(error)
    async with acting(store, says, speed=1e6) as heard:
        await until(lambda: done_of(heard) != [])

    (done,) = done_of(heard)
    assert (len(says.calls), done.result) == (attempts, result)
    assert "given up" in done.detail


async def test_a_fault_of_ours_in_the_middle_is_looked_at_again(store: SqliteStore) -> None:
    """An exception that nobody thought of leaves the step uncertain, and the outbox goes on."""
    async with cluster() as c:
        put(store, act(*scene.deployment(c)))
    says = Says(ValueError("oops"), StepResult.DONE)
    async with acting(store, says) as heard:
        await until(lambda: done_of(heard) != [])

    assert says.calls == [("apply", False), ("apply", True)]


async def test_a_step_that_cannot_be_read_is_told_as_unknown(store: SqliteStore) -> None:
    """It may have been begun: a person must look, and the next step is not held up."""
    async with cluster() as c:
        first = act(*scene.deployment(c))
        put(store, first, act(*scene.deployment(c), number=2))
    with sqlite3.connect(store.path) as db:
        db.execute("update outbox set effect = ? where id = ?", (b"{", first.id))
    async with acting(store, Says(StepResult.DONE)) as heard:
        await until(lambda: len(done_of(heard)) == 2)

    assert [done.result for done in done_of(heard)] == [StepResult.UNKNOWN, StepResult.DONE]
    assert [done.effect_id for done in store.answers()].count(first.id) == 1


def test_no_receiver_takes_the_name_of_the_cluster(store: SqliteStore) -> None:
    """Steps would go to Slack."""
    with pytest.raises(ValueError, match="choose another"):
        Outbox(store, {CLUSTER: Script()}, Clock(NOON, 1.0))


# The runtime around it ------------------------------------------------------------------------------------------------


class Brain:
    """An engine that answers whoever asks, and takes answers of steps in; `broken` lets it fail on those."""

    class desk:  # noqa: N801  an attribute of the real one
        @staticmethod
        def may_have_forgotten(_: datetime) -> bool:
            return False

    def __init__(self, *, broken: bool = False) -> None:
        self.heard: list[StepDone] = []
        self._broken = broken

    def handle(self, events: Sequence[Event], _: datetime) -> Step:
        steps = [event for event in events if isinstance(event, StepDone)]
        if steps and self._broken:
            raise RuntimeError("the process ends here")
        self.heard += steps
        asked = [event for event in events if isinstance(event, Decided)]
        return Step(replies=tuple(Reply(request_id=e.request_id, accepted=True, text=str(e.verb)) for e in asked))


@asynccontextmanager
async def process(
    store: SqliteStore, brain: Brain, executor: Any
) -> AsyncIterator[tuple[Embedded, asyncio.Task[None]]]:
    clock = Clock(NOON, 1000)
    outbox = Outbox(store, {}, clock, Acting(executor, permitting(), clock))
    embedded = Embedded(brain, store, outbox, clock)  # type: ignore[arg-type]
    task = asyncio.create_task(embedded.run([]))
    try:
        yield embedded, task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()


async def test_an_answer_that_the_engine_could_not_take_in_is_told_again(store: SqliteStore) -> None:
    """The engine fails on it, the next process tells it again; taken in, it is told no more."""
    async with cluster() as c:
        put(store, act(*scene.deployment(c)))
        async with process(store, Brain(broken=True), c.executor()[0]) as (_, task):
            await asyncio.wait([task], timeout=30)
            assert task.done()
        (kept,) = store.answers()
        writes = len(c.server.requests)
        async with process(store, brain := Brain(), c.executor()[0]):
            await until(lambda: brain.heard != [])
            await until(lambda: store.answers() == [])
        async with process(store, third := Brain(), c.executor()[0]):
            await asyncio.sleep(0.02)

        assert (brain.heard, third.heard, len(c.server.requests)) == ([kept], [], writes)


def decided(request_id: str) -> Decided:
    return Decided(
        at=NOON, request_id=request_id, person=Person(id="unix:root"), verb=Verb.APPROVE, plan_id="p", via="terminal"
    )


async def test_who_asks_is_answered_once_it_is_stored(store: SqliteStore) -> None:
    """Each by the request's id, the same request twice as well, and who has gone is no trouble."""
    async with process(store, Brain(), Says(StepResult.DONE)) as (embedded, _):
        gone = asyncio.create_task(embedded.ask(decided("gone")))
        await asyncio.sleep(0)
        gone.cancel()
        first, again, other = await asyncio.gather(*(embedded.ask(decided(name)) for name in ("a", "a", "b")))

    assert (first.request_id, again.request_id, other.request_id) == ("a", "a", "b")
    assert first.accepted
    assert embedded._questions == {}


async def test_a_permit_is_not_kept_for_later(store: SqliteStore) -> None:
    """Each attempt asks anew."""
    asked: list[str] = []
    async with cluster() as c:
        put(store, act(*scene.deployment(c)))
    says = Says(RetryableActError("busy"), RetryableActError("busy"), StepResult.DONE)
    async with acting(store, says, permitting(asked)) as heard:
        await until(lambda: done_of(heard) != [])

    assert asked == ["apply"] * 3
