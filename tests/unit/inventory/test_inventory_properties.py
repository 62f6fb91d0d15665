"""The inventory is a level: how observations arrive makes no difference to what is true at the end."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.core.facts.schema import Facts
from sevenhop.core.subject import Subject
from tests.unit.inventory.clusters import History, as_events, facts_after, histories, relisted, synced

FEW = settings(max_examples=25, deadline=None)


def shuffled(history: History, seed: int) -> list[str]:
    order = [name for name, versions in history.items() for _ in versions]
    random.Random(seed).shuffle(order)
    return order


def differences(left: dict[Subject, Facts], right: dict[Subject, Facts]) -> list[str]:
    """Readable, where a dictionary of hundreds of facts is not."""
    found = [f"only left: {s}" for s in left.keys() - right.keys()] + [
        f"only right: {s}" for s in right.keys() - left.keys()
    ]
    found += [
        f"{subject} {name}: {left[subject].get(name)} / {right[subject].get(name)}"
        for subject in left.keys() & right.keys()
        for name in left[subject].keys() | right[subject].keys()
        if left[subject].get(name) != right[subject].get(name)
    ]
    return found


@FEW
@given(histories())
def test_each_event_twice(history: History) -> None:
    """
    At-least-once delivery is indistinguishable from exactly-once.
    """
    events = [*as_events(history, []), *synced()]

    assert differences(facts_after(events), facts_after([event for event in events for _ in range(2)])) == []


@FEW
@given(histories())
def test_the_whole_stream_twice(history: History) -> None:
    """
    A replay from the start finds everything known already.
    """
    events = [*as_events(history, []), *synced()]

    assert differences(facts_after(events), facts_after([*events, *events])) == []


@FEW
@given(histories(), st.integers(0, 1000))
def test_any_order_between_objects(history: History, seed: int) -> None:
    """
    Kinds are watched by streams of their own: only each object's own order is kept.
    """
    in_order = [*as_events(history, []), *synced()]
    mixed = [*synced(), *as_events(history, shuffled(history, seed))]

    assert differences(facts_after(in_order), facts_after(mixed)) == []


@FEW
@given(histories(), st.integers(0, 1000))
def test_settling_often_or_once(history: History, seed: int) -> None:
    """
    How events fall into batches is chance.

    Since when a component waits is a history: a pod that came and went within one batch was never seen waiting.
    """
    events = [*synced(), *as_events(history, shuffled(history, seed))]

    found = differences(facts_after(events, each=True), facts_after(events))

    assert [line for line in found if "component.waiting.since" not in line] == []


@FEW
@given(histories())
def test_a_relist(history: History) -> None:
    """
    A new list of what is known changes nothing, in whatever order it comes.
    """
    events = [*as_events(history, []), *synced()]

    assert differences(facts_after(events), facts_after([*events, *relisted(events, 400)])) == []


@FEW
@given(histories(), st.integers(0, 1000))
def test_late_events_of_an_older_epoch(history: History, seed: int) -> None:
    """
    What an earlier watch still delivers after a new list is older, whatever it says.
    """
    events = [*as_events(history, []), *synced()]
    random.Random(seed).shuffle(late := [event for event in events if event.seq])

    assert differences(facts_after(events), facts_after([*events, *relisted(events, 400), *late])) == []
