"""People decide at any worker, on real Kafka and Redis: it reaches the cluster that is meant, once, whoever dies."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sevenhop.cli.output import UsageError
from sevenhop.core.events import Decided, Event, StepDone, StepResult, SwitchSet, Verb
from sevenhop.core.remediation.person import Person as PersonWhoDecides
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.codec import encode
from sevenhop.runtime.scaled.edge_front import EdgeFront
from sevenhop.runtime.scaled.orders import Orders
from sevenhop.runtime.scaled.signing import edge_key, signing_as_edge, signing_as_worker
from sevenhop.runtime.scaled.topics import prepare, topics_of
from tests.e2e.scaled_people import KEY, ME, Person, allow_plans, shortage
from tests.e2e.scaled_stage import ROOT, Stage, WorkerProcess, stage, wait_until
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CLUSTERS = ("lab", "prod-ap", "prod-eu", "prod-us")
KILLED_AFTER_S = (0.0, 0.01, 0.03, 0.06)
"""After the command began: before its record is there, while it is handled, and after it was stored."""

ROUNDS = int(os.environ.get("SEVENHOP_DECISION_ROUNDS", "3"))


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two workers, four clusters that are short of GPUs, and a plan in each."""
    folder = tmp_path_factory.mktemp("decisions")
    with Redis() as redis, Kafka(1) as kafka, stage(folder, kafka, redis, "decisions", CLUSTERS) as made:
        allow_plans(made, folder)
        made.add_worker()
        made.add_worker()
        for edge in made.edges.values():
            edge.tell(shortage(edge.feed))
        wait_until("served", lambda: both_work(made), 120, made.logs)
        wait_until("plans", lambda: all(Person(made.workers[0]).open_plans(name) for name in CLUSTERS), 60, made.logs)
        yield made


def both_work(at: Stage) -> bool:
    return at.served() and all(worker.partitions() for worker in at.workers)


def has(worker: WorkerProcess, cluster: str) -> bool:
    return any(cluster in row["clusters"] for row in worker.report().get("partitions", {}).values())


def owner(at: Stage, cluster: str) -> WorkerProcess:
    [found] = [worker for worker in at.workers if has(worker, cluster)]
    return found


def stranger(at: Stage, cluster: str) -> Person:
    """Somebody at a worker that does not have the cluster."""
    found = [worker for worker in at.workers if not has(worker, cluster) and worker.partitions()]
    return Person(found[0])


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_silence_reaches_its_cluster_from_the_wrong_worker(at: Stage, cluster: str) -> None:
    """It is in force there once the command returns, nowhere else, and can be ended from there as well."""
    person, there = stranger(at, cluster), Person(owner(at, cluster))
    silence = person.silence(cluster, "workload=other")["id"]
    found = {name: silence in there.silences(name) for name in CLUSTERS}
    assert found == {name: name == cluster for name in CLUSTERS}

    person.ask("POST", f"/silence/{silence}/expire")
    assert silence not in there.silences(cluster)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_the_switch_of_one_cluster_from_the_wrong_worker(at: Stage, cluster: str) -> None:
    """Only that cluster is stopped, and its audit says by whom."""
    person = stranger(at, cluster)
    assert person.switch(on=True, cluster=cluster)["accepted"]
    assert {name: person.is_stopped(name) for name in CLUSTERS} == {name: name == cluster for name in CLUSTERS}
    assert person.switch(on=False, cluster=cluster)["accepted"]
    assert person.audited(cluster)[-1].endswith("turned the kill switch off: a test")


def test_the_switch_without_a_cluster_is_everywhere(at: Stage) -> None:
    """Whoever stops everything means everything."""
    person = Person(at.workers[0])
    assert person.switch(on=True)["accepted"]
    assert all(person.is_stopped(name) for name in CLUSTERS)
    assert person.switch(on=False)["accepted"]
    assert not any(person.is_stopped(name) for name in CLUSTERS)


def test_explaining_what_another_worker_has(at: Stage) -> None:
    """The answer is that of the worker that has the cluster; where several know the name, one line says what to add."""
    said = stranger(at, "prod-us").ask("GET", "/explain", subject="llama-70b/decode", cluster="prod-us")
    assert [each["labels"]["cluster"] for each in said] == ["prod-us"]
    with pytest.raises(UsageError, match="say which with --cluster: lab, prod-ap, prod-eu, prod-us"):
        Person(at.workers[0]).ask("GET", "/explain", subject="llama-70b/decode")


ABOUT_NONE: list[tuple[str, Callable[[Person], Any]]] = [
    ("silence", lambda person: person.silence("nowhere", "workload=other")),
    ("explain", lambda person: person.ask("GET", "/explain", subject="llama-70b", cluster="nowhere")),
    ("get", lambda person: person.ask("GET", "/get/plans", cluster="nowhere")),
    ("audit", lambda person: person.ask("GET", "/audit", cluster="nowhere")),
]


@pytest.mark.parametrize("asked", [ask for _, ask in ABOUT_NONE], ids=[name for name, _ in ABOUT_NONE])
def test_an_unknown_cluster(at: Stage, asked: Callable[[Person], Any]) -> None:
    """One line names those that there are."""
    with pytest.raises(UsageError, match=r"^no cluster is called 'nowhere' here; there are lab, prod-ap, prod-eu"):
        asked(Person(at.workers[0]))


def test_a_decision_about_an_unknown_cluster_or_plan(at: Stage) -> None:
    """It is refused at the door: nothing is written anywhere, and no cluster begins by it."""
    person = Person(at.workers[0])
    said = [person.decide("approve", "00000000", cluster="nowhere"), person.decide("approve", "00000000")]
    assert [each["accepted"] for each in said] == [False, False]
    assert said[0]["text"].startswith("no cluster is called 'nowhere' here")
    assert said[1]["text"].startswith("no cluster has a plan '00000000'")
    assert not any(has(worker, "nowhere") for worker in at.workers)


def test_the_command_line_at_the_wrong_worker(at: Stage) -> None:
    """The same commands as with one cluster; the plan says which cluster it is of."""
    cluster = "prod-ap"
    worker = next(each for each in at.workers if not has(each, cluster))
    plan = Person(worker).open_plans(cluster)[0]["plan"]

    def sevenhop(*words: str) -> str:
        command = [sys.executable, "-m", "sevenhop.cli.main", *words, "--state", str(worker.state)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    row = rf"{cluster} +{plan} +proposed"  # of all clusters, as each last told it
    eventually(lambda: re.search(row, sevenhop("get", "plans")), timeout=30, every=1, what=row)
    assert f"Plan       {plan}" in sevenhop("describe", "plan", plan[:6])
    assert sevenhop("reject", plan, "-m", "not now").strip() == f"plan {plan} is rejected"
    assert "rejected by" in sevenhop("audit", "list", "--cluster", cluster)
    assert "chain ok" in sevenhop("audit", "verify", "--cluster", cluster)
    assert cluster in sevenhop("get", "workloads", "--all-clusters")
    assert "kill switch" in sevenhop("switch", "status", "--cluster", cluster)
    assert "PARTITION" in sevenhop("doctor")


def put(at: Stage, cluster: str, *events: Event, key: str = KEY) -> None:
    """Straight into the topic, past every door."""

    async def main() -> None:
        topics = await prepare(at.kafka_settings)
        orders = Orders(at.kafka_settings, topics)
        await orders.start()
        for event in events:
            await orders.put(topics.signals, cluster, signing_as_worker(key)(cluster, encode(cluster, event)))
        await orders.close()

    asyncio.run(main())


def dead_letters(at: Stage, why: str) -> int:
    return sum(worker.report().get("dead_letters", {}).get(why, 0) for worker in at.workers)


def test_past_the_doors_nothing_late_and_no_cluster(at: Stage) -> None:
    """An old approval on the topic is not followed, and a decision begins no cluster: both are dead letters."""
    cluster = "prod-us"
    person = Person(at.workers[0])
    plan, now = person.open_plans(cluster)[0]["plan"], datetime.now(tz=UTC)
    me = PersonWhoDecides(id=ME, name="me", verified_at=now - timedelta(minutes=10))
    old = Decided(
        at=now - timedelta(minutes=10), request_id="old", person=me, verb=Verb.APPROVE, plan_id=plan, via="terminal"
    )
    put(at, cluster, old)
    put(at, "nowhere", SwitchSet(at=now, request_id="none", person=me, is_on=True))

    wait_until("the late one", lambda: dead_letters(at, "late") == 1, 20, at.logs)
    wait_until("the foreign one", lambda: dead_letters(at, "unknown_cluster") == 1, 20, at.logs)
    assert [row["plan"] for row in person.open_plans(cluster)] == [plan]
    assert not any(has(worker, "nowhere") for worker in at.workers)


def test_past_the_doors_nothing_forged(at: Stage) -> None:
    """An unsigned switch, and what only a worker may say of a step, are dead letters; nothing comes of them."""
    cluster, now = "prod-us", datetime.now(tz=UTC)
    person = Person(at.workers[0])
    me = PersonWhoDecides(id=ME, name="me", verified_at=now)
    forged = SwitchSet(at=now, request_id="forged", person=me, is_on=True)
    step = StepDone(at=now, effect_id="x/1-apply", result=StepResult.DONE)
    put(at, cluster, forged, key="")
    put(at, cluster, forged, key="another key")
    put(at, cluster, step)

    wait_until("two unsigned", lambda: dead_letters(at, "unsigned") == 2, 20, at.logs)
    wait_until("a step", lambda: dead_letters(at, "unknown_kind") == 1, 20, at.logs)
    assert not person.is_stopped(cluster)


async def test_the_door_of_an_edge(at: Stage) -> None:
    """What its own API server vouches for goes to the owner of its cluster, and the answer comes back to it."""
    cluster = "prod-us"
    person = Person(at.workers[0])
    sign = signing_as_edge(edge_key(KEY, cluster))
    front = EdgeFront(cluster, at.kafka_settings, topics_of(at.kafka_settings), Clock(), sign, edge_key(KEY, cluster))
    running = asyncio.create_task(front.run())
    me = PersonWhoDecides(id=ME, name="me", verified_at=datetime.now(tz=UTC))
    guest = PersonWhoDecides(id="kubernetes:guest", name="guest", verified_at=datetime.now(tz=UTC))
    try:
        for number, (who, is_on) in enumerate(((me, True), (guest, False), (me, False))):
            event = SwitchSet(at=datetime.now(tz=UTC), request_id=f"edge-{number}", person=who, is_on=is_on)
            async with asyncio.timeout(40):
                reply = await front.ask(event)
            assert (reply.request_id, reply.accepted) == (f"edge-{number}", who is me)
            assert await asyncio.to_thread(person.is_stopped, cluster) is (number != 2)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_the_owner_dies_right_after_the_decision(at: Stage, number: int) -> None:
    """
    The switch, turned while the worker that has the cluster is killed with -9, is turned exactly once.

    Whoever asked gets the answer of the worker that takes over, and both switch and audit say so on every worker.
    """
    cluster = ("lab", "prod-eu", "prod-us")[number % 3]
    wait_until("both work", lambda: both_work(at), 90, at.logs)
    person, dying = stranger(at, cluster), owner(at, cluster)
    before = person.audited(cluster)
    is_on = not person.is_stopped(cluster)
    said: list[dict[str, Any]] = []

    asking = threading.Thread(target=lambda: said.append(person.switch(on=is_on, cluster=cluster)))
    asking.start()
    time.sleep(KILLED_AFTER_S[number % len(KILLED_AFTER_S)])
    dying.kill()
    asking.join(60)
    dying.start()

    assert said, at.logs()
    assert said[0]["accepted"], said
    assert person.is_stopped(cluster) is is_on
    word = "on" if is_on else "off"
    assert [text.partition(" turned ")[2] for text in person.audited(cluster)[len(before) :]] == [
        f"the kill switch {word}: a test"
    ]


def test_an_approval_while_its_worker_dies(at: Stage) -> None:
    """It is neither lost nor counted twice, and a silence and the switch hold over the change of hands."""
    cluster = "prod-eu"
    wait_until("both work", lambda: both_work(at), 90, at.logs)
    person, dying = stranger(at, cluster), owner(at, cluster)
    plan = person.open_plans(cluster)[0]["plan"]
    kept = person.silence(cluster, "workload=other")["id"]
    person.switch(on=False, cluster=cluster)
    person.switch(on=True, cluster="prod-us")
    said: list[dict[str, Any]] = []

    asking = threading.Thread(target=lambda: said.append(person.decide("approve", plan, "one-request")))
    asking.start()
    dying.kill()
    asking.join(60)
    dying.start()

    assert said, at.logs()
    assert said[0]["accepted"], said
    assert [text for text in person.audited(cluster) if text.startswith("approved: ")] == [
        f"approved: approved by {said[0]['as'].removeprefix('unix:')}"
    ]
    assert person.decide("approve", plan, "one-request") == said[0]  # again, at whoever has it now: the same answer
    again = person.decide("approve", plan, "another-request")
    assert not again["accepted"], again
    assert kept in person.silences(cluster)
    assert person.is_stopped("prod-us")
