"""Whether the edge of a cluster has the key that belongs to the workers', known before anything is ordered there."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from sevenhop.actions.transport import NotSentError
from sevenhop.core.events import Tick
from sevenhop.runtime.codec import Record
from sevenhop.runtime.scaled.edge import Edge
from sevenhop.runtime.scaled.edge_keys import COUNTS_FOR_S, EdgeKeys
from sevenhop.runtime.scaled.orders import Letter
from sevenhop.runtime.scaled.remote import RemoteTransport, Waiting
from sevenhop.runtime.scaled.signing import edge_key, signing_as_edge
from sevenhop.runtime.scaled.topics import partition_of, topics_of
from sevenhop.runtime.scaled.worker import Worker
from sevenhop.settings_scaled import KafkaSettings, RuntimeSettings

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
KAFKA = KafkaSettings(servers=["unused:9092"])
KEY = "a key of the workers"
EDGE = edge_key(KEY, "prod")


def tick(key: str) -> Record:
    """As an edge with this key sends it each second."""
    edge = Edge("prod", 1, KAFKA, topics_of(KAFKA), lambda: NOON, sign=signing_as_edge(key))
    record = edge._record(Tick(at=NOON))
    assert record is not None
    return record


class Keys(EdgeKeys):
    """Of a worker, at a time that stands still."""

    def __init__(self, key: str = KEY) -> None:
        self.now_s = 100.0
        super().__init__(key, lambda: self.now_s)

    def hear(self, key: str) -> None:
        record = tick(key)
        self.heard("prod", record.value, record.headers)


@pytest.mark.parametrize(
    ("worker", "edge", "said"),
    [
        pytest.param(KEY, EDGE, "", id="that fits"),
        pytest.param("", "", "", id="none on both sides"),
        pytest.param(
            KEY, "", "signs nothing: give it .*`sevenhop edge-key prod`.*or upgrade it", id="none at the edge"
        ),
        pytest.param("", EDGE, "give the workers their runtime.decision_key", id="none at the workers"),
        pytest.param(KEY, KEY, "signs with another key: .*`sevenhop edge-key prod`", id="the workers' own at the edge"),
        pytest.param(KEY, edge_key(KEY, "lab"), "signs with another key", id="of another cluster"),
    ],
)
def test_one_tick_shows_which_key_an_edge_has(worker: str, edge: str, said: str) -> None:
    """So a person reads within seconds of a start on which side a key is missing, with no plan under way."""
    keys = Keys(worker)
    assert keys.doubt("prod") == ""  # nothing is known yet, and nothing is held against it
    keys.hear(edge)
    assert re.fullmatch(f".*{said}.*" if said else "", keys.doubt("prod"))
    assert keys.doubt("lab") == ""


def test_what_somebody_else_writes_casts_no_doubt_on_an_edge_that_shows_its_key() -> None:
    """Else whoever writes to the topic could keep every plan from being carried out."""
    keys = Keys()
    keys.hear("another")
    keys.hear(EDGE)
    assert keys.doubt("prod") == ""
    keys.now_s += COUNTS_FOR_S
    keys.hear("another")
    assert keys.doubt("prod") == ""
    keys.now_s += 1
    assert "another key" in keys.doubt("prod")  # it shows none that fits any more


def test_of_an_edge_that_says_nothing_more_nothing_is_known() -> None:
    """That it is silent is told elsewhere, and the next one may have another key."""
    keys = Keys()
    keys.hear("another")
    keys.now_s += COUNTS_FOR_S + 1
    assert keys.doubt("prod") == ""


def test_it_is_said_once_until_it_fits_again(caplog: pytest.LogCaptureFixture) -> None:
    """A line a second would hide everything else; and no line holds a key."""
    keys = Keys()
    with caplog.at_level(logging.WARNING):
        for key in ("another", "another", "another", EDGE, EDGE):
            keys.hear(key)
        keys.now_s += COUNTS_FOR_S + 1
        keys.hear("another")
    said = [record.getMessage() for record in caplog.records]
    assert [("another key" in line, "fits again" in line) for line in said] == [
        (True, False), (False, True), (True, False),
    ]  # fmt: skip
    assert not any(secret in line for line in said for secret in (KEY, EDGE))


async def test_nothing_is_ordered_at_an_edge_that_would_not_take_it() -> None:
    """Surely nothing was done, and the run has the reason at once instead of after each wait for an answer."""
    sent: list[Letter] = []

    async def send(_cluster: str, letter: Letter) -> None:
        sent.append(letter)

    keys = Keys()
    keys.hear("another")
    transport = RemoteTransport("prod", send, Waiting(), lambda: NOON, doubt=lambda: keys.doubt("prod"))
    with pytest.raises(NotSentError, match=r"the edge of prod signs with another key: .*; nothing was sent"):
        await transport.send("PATCH", "/apis/apps/v1/x", {}, body=b"[]")
    assert sent == []


async def test_a_worker_learns_it_from_its_stream() -> None:
    """Each tick that it takes is looked at, and handled like any other."""
    nothing: Any = None
    made = Worker(
        KAFKA, RuntimeSettings(decision_key=SecretStr(KEY)), topics_of(KAFKA), nothing, nothing, lambda _: None
    )
    number = partition_of("prod", KAFKA.partitions)
    taken: list[Any] = []

    async def put(item: Any) -> None:
        taken.append(item.event)

    made.partitions[number] = SimpleNamespace(number=number, is_ready=True, next={"s": 0}, skipped=set(), put=put)  # type: ignore[assignment]
    record = tick("another")
    await made.take("s", number, SimpleNamespace(offset=0, key=None, value=record.value, headers=record.headers))
    assert "another key" in made.keys.doubt("prod")
    assert [type(event) for event in taken] == [Tick]
