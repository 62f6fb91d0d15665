"""Whoever stops everything has stopped everything, also when Redis has just lost all; real Kafka and Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.scaled_people import Person, allow_plans, shortage
from tests.e2e.scaled_stage import Stage, stage, wait_until
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CLUSTERS = ("lab", "prod-ap", "prod-eu", "prod-us")


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two workers that share four clusters, and a Redis that forgets everything when it crashes."""
    folder = tmp_path_factory.mktemp("stop") / ("long" * 40)  # longer than the path of a socket may be
    folder.mkdir()
    with Redis(remembers=False) as redis, Kafka(1) as kafka, stage(folder, kafka, redis, "stop", CLUSTERS) as made:
        allow_plans(made, folder)
        made.add_worker()
        made.add_worker()
        for edge in made.edges.values():
            edge.tell(shortage(edge.feed))
        wait_until("served", lambda: both_work(made), 120, made.logs)
        yield made


def both_work(at: Stage) -> bool:
    found = [set(row["clusters"]) for worker in at.workers for row in worker.report().get("partitions", {}).values()]
    return at.served() and all(worker.partitions() for worker in at.workers) and set().union(*found) == set(CLUSTERS)


def stopped(at: Stage) -> dict[str, bool]:
    person = Person(at.workers[0])
    return {name: person.is_stopped(name) for name in CLUSTERS}


def everywhere(*, on: bool) -> dict[str, bool]:
    return dict.fromkeys(CLUSTERS, on)


@pytest.mark.parametrize("number", [0, 1])
def test_a_stop_right_after_redis_came_back_empty(at: Stage, number: int) -> None:
    """The workers have not told of their clusters again; all of them are stopped all the same, and that is said."""
    wait_until("both work", lambda: both_work(at), 90, at.logs)
    at.redis.crash()
    at.redis.come_back()
    said = Person(at.workers[number]).switch(on=True)
    assert said["accepted"], said
    assert [name for name in CLUSTERS if name not in said["text"]] == []
    assert stopped(at) == everywhere(on=True)
    assert Person(at.workers[0]).switch(on=False)["accepted"]


def lose_everything(at: Stage) -> None:
    """Redis and all workers at once; only Kafka and the edges live on."""
    for worker in at.workers:
        worker.kill()
    at.redis.crash()
    at.redis.come_back()
    for worker in at.workers:
        worker.start()
    wait_until("both work", lambda: both_work(at), 120, at.logs)


def test_a_stop_outlives_the_loss_of_redis_and_of_all_workers(at: Stage) -> None:
    """Nobody remembers it but Kafka; the audit trail that begins anew says who gave it.  What was resumed stays so."""
    wait_until("both work", lambda: both_work(at), 90, at.logs)
    person = Person(at.workers[0])
    assert person.switch(on=True)["accepted"]
    assert person.switch(on=False, cluster="lab")["accepted"]
    lose_everything(at)
    assert stopped(at) == {**everywhere(on=True), "lab": False}
    [text] = [text for text in person.audited("prod-eu") if "kill switch" in text]
    assert text.endswith("turned the kill switch on: a test (said before all state was lost)")

    assert person.switch(on=False)["accepted"]
    lose_everything(at)
    assert stopped(at) == everywhere(on=False)
