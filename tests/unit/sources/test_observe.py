"""Lists and lines of one kind to events: whatever order they come in, the level is the server's."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.events import Applied, Deleted, Event
from sevenhop.core.objects.kinds import KINDS
from sevenhop.sources.kubernetes.observe import Observations

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
NAMES = "abc"

histories = st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=25)
"""Which object changes next, and whether it is deleted then (else created or changed)."""


class Server:
    """Objects and the lines that a watch from any revision would see."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.lines: list[tuple[int, bytes]] = []
        self.revision = 10

    def act(self, name: str, *, delete: bool) -> None:
        known = self.objects.get(name)
        if delete and known is None:
            return
        self.revision += 1
        uid = known["metadata"]["uid"] if known else f"{name}-{self.revision}"
        pod = {"metadata": {"name": name, "namespace": "x", "uid": uid, "resourceVersion": str(self.revision)}}
        change = "DELETED" if delete else "MODIFIED" if known else "ADDED"
        if delete:
            del self.objects[name]
        else:
            self.objects[name] = pod
        self.lines.append((self.revision, json.dumps({"type": change, "object": pod}).encode()))


class Taker:
    """The level that events lead to, ordered only by (epoch, seq)."""

    def __init__(self) -> None:
        self.level: dict[str, str] = {}
        self.order: list[tuple[int, int]] = []

    def take(self, events: list[Event]) -> None:
        for event in events:
            self.order.append((event.epoch, event.seq))
            if isinstance(event, Applied):
                self.level[event.obj.metadata.name] = event.obj.metadata.resource_version
            elif isinstance(event, Deleted):
                del self.level[event.name]  # taken back once only, and never what was not told


def relist(seen: Observations, server: Server) -> list[Event]:
    events: list[Event] = []
    seen.start_list()
    for pod in server.objects.values():
        seen.listed(msgspec.Raw(json.dumps(pod).encode()), NOON, events)
    return events + seen.finish_list(str(server.revision), NOON)


@given(histories, histories, histories, st.randoms(use_true_random=False))
def test_the_level_is_the_servers(
    before: list[tuple[str, bool]], watched: list[tuple[str, bool]], missed: list[tuple[str, bool]], rng: Any
) -> None:
    """List, a watch whose lines repeat and swap, a gap, and a list again: known is what is there, in order, once."""
    server, taker, seen = Server(), Taker(), Observations(KINDS["Pod"])
    for name, delete in before:
        server.act(name, delete=delete)
    taker.take(relist(seen, server))
    start = server.revision
    for name, delete in watched:
        server.act(name, delete=delete)
    lines = [line for revision, line in server.lines if revision > start]
    clean = rng.random() < 0.5
    if not clean:
        lines += rng.sample(lines, rng.randint(0, len(lines)))
        if rng.random() < 0.5:
            rng.shuffle(lines)
    events: list[Event] = []
    for line in lines:
        seen.line(line, NOON, events)
    taker.take(events)

    if clean or not seen.is_doubtful:
        assert taker.level == {n: p["metadata"]["resourceVersion"] for n, p in server.objects.items()}
    for name, delete in missed:
        server.act(name, delete=delete)
    taker.take(relist(seen, server))

    assert taker.level == {n: p["metadata"]["resourceVersion"] for n, p in server.objects.items()}
    assert taker.order == sorted(set(taker.order))
    assert not seen.is_doubtful
    taker.order.clear()
    taker.take(relist(seen, server))
    assert taker.order == []  # nothing changed, so nothing is told
