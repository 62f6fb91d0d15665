"""How events arrive makes no difference to what is asked for."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.core.events import Event
from tests.unit.engine.machines import Machine
from tests.unit.inventory.clusters import END, History, as_events, histories, relisted, synced

FEW = settings(max_examples=15, deadline=None)


def outcome(events: Sequence[Event]) -> tuple[list[tuple[str, str]], list[str]]:
    """(key and title of every message in the end, alerts that are not inactive), an hour later."""
    machine = Machine()
    machine.tell(events, END)
    machine.until(END + 1)
    machine.until(END + 3_600)
    alerts = [f"{a.rule_id} {a.subject} {a.state} {a.since}" for a in machine.engine.alerts.snapshot()]
    return sorted({(n.key, n.message.title) for n in machine.sent}), alerts


@FEW
@given(histories())
def test_each_event_twice(history: History) -> None:
    """
    At-least-once delivery is indistinguishable from exactly-once.
    """
    events = [*as_events(history, []), *synced()]

    assert outcome(events) == outcome([event for event in events for _ in range(2)])


@FEW
@given(histories(), st.integers(0, 1000))
def test_any_order_between_objects(history: History, seed: int) -> None:
    """
    Only each object's own order is kept by sources.
    """
    order = [name for name, versions in history.items() for _ in versions]
    random.Random(seed).shuffle(order)

    assert outcome([*as_events(history, []), *synced()]) == outcome([*synced(), *as_events(history, order)])


@FEW
@given(histories())
def test_a_relist_says_nothing_new(history: History) -> None:
    """
    After a new list of what is known, nobody is told anything.
    """
    events = [*as_events(history, []), *synced()]
    machine = Machine()
    machine.tell(events, END)
    machine.until(END + 600)
    sent = len(machine.sent)

    step = machine.tell(relisted(events, END + 600), END + 600)

    assert step.changes == ()
    assert len(machine.sent) == sent


@FEW
@given(histories())
def test_a_restart_says_nothing_twice(history: History) -> None:
    """
    What was told before is known after, and told again only where it changed.
    """
    events = [*as_events(history, []), *synced()]
    machine = Machine()
    machine.tell(events, END)
    machine.until(END + 900)

    after = Machine(machine.store, seconds=END + 910)
    after.tell([*relisted(events, END + 910), *synced(2)], END + 911)
    after.until(END + 1_000)

    told = {n.key for n in machine.sent}
    assert [n.message.title for n in after.sent if n.anew and n.key in told] == []
