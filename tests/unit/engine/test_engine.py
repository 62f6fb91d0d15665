"""From watch events to messages: the story, and that it is told once."""

from __future__ import annotations

from sevenhop.core.alerts.alert import AlertState
from sevenhop.core.events import SyncState
from sevenhop.core.subject import Subject
from tests.builders import Feed, at, dynamo_pod, node
from tests.unit.engine.machines import LLAMA, SUMMARIZER, Machine, full_cluster, waiting_pod

DECODE = Subject.parse("component:prod/llama-70b/decode")
RULE = "component-short-of-gpus"


def story() -> Machine:
    """A decode worker waits from second 10; at second 400 everything that had to be said was said."""
    machine = Machine()
    machine.tell([*machine.feed.applied(*full_cluster()), *machine.feed.synced()], 5)
    machine.put(waiting_pod(), seconds=11)
    return machine


def fired_at(machine: Machine) -> float | None:
    alert = machine.engine.alerts.alert(RULE, DECODE)
    if alert is None or alert.fired_at is None:
        return None
    return (alert.fired_at - at(0)).total_seconds()


def test_the_alert_fires_two_minutes_after_the_scheduler_said_so() -> None:
    """
    The clock runs on the server's timestamp, not on when we heard of it.
    """
    machine = story()

    machine.until(129)
    assert fired_at(machine) is None
    machine.until(131)

    assert fired_at(machine) == 130
    assert len(machine.sent) == 1
    assert machine.sent[0].message.status == "firing"
    assert "llama-70b" in machine.sent[0].message.title


def test_a_pod_of_another_name_is_the_same_alert() -> None:
    """
    The controller re-created the waiting pod twice: nothing is said a second time.
    """
    machine = story()
    machine.until(140)
    machine.delete(waiting_pod(), seconds=141)
    machine.put(waiting_pod("8", since=142), seconds=142)
    machine.until(150)

    assert [status for status, _, _ in machine.said()].count("firing") >= 1
    assert len({n.incident for n in machine.sent}) == 1
    assert [n.anew for n in machine.sent] == [True, *[False] * (len(machine.sent) - 1)]
    alert = machine.engine.alerts.alert(RULE, DECODE)
    assert alert is not None
    assert alert.state is AlertState.FIRING


def test_capacity_ends_it() -> None:
    """
    The pod is placed, the condition is false for `keep_firing_for`, the message turns green.
    """
    machine = story()
    machine.until(140)
    placed = dynamo_pod(LLAMA, "decode", "2", node="gpu-2", since=at(150))

    machine.put(node("gpu-2", gpus=4), placed, seconds=150)
    machine.until(400)

    assert machine.engine.alerts.alert(RULE, DECODE) is None
    assert machine.sent[-1].message.status == "resolved"
    assert machine.sent[-1].message.end_reason == "recovered"


def test_blind_neither_fires_nor_resolves() -> None:
    """
    While pods cannot be seen the clock of `for` stands still.
    """
    machine = story()
    machine.until(60)
    machine.tell(machine.feed.synced("Pod", state=SyncState.STALE, seconds=60), 60)
    machine.until(200)
    assert fired_at(machine) is None

    machine.tell(machine.feed.synced("Pod", seconds=200), 200)
    machine.until(269)
    assert fired_at(machine) is None
    machine.until(271)

    assert fired_at(machine) == 270


def test_after_a_restart_nothing_is_said_twice() -> None:
    """
    The store, and the same objects: the same incident, already told.
    """
    machine = story()
    machine.until(200)
    sent = len(machine.sent)

    after = Machine(machine.store, seconds=260)
    feed = Feed()
    after.tell([*feed.applied(*full_cluster(), waiting_pod()), *feed.synced(seconds=260)], 261)
    after.until(300)

    assert sent >= 1
    assert [n for n in after.sent if n.anew] == []
    alert = after.engine.alerts.alert(RULE, DECODE)
    assert alert is not None
    assert alert.state is AlertState.FIRING


def test_what_ended_while_we_were_away_ends() -> None:
    """
    After the restart the component is gone: its alert ends as that, once everything was listed.
    """
    machine = story()
    machine.until(200)

    after = Machine(machine.store, seconds=260)
    feed = Feed()
    after.tell([*feed.applied(node("gpu-0", gpus=4), SUMMARIZER), *feed.synced(seconds=260)], 261)
    after.until(800)

    assert after.engine.alerts.alert(RULE, DECODE) is None
    assert after.sent[-1].message.status == "resolved"
    assert after.sent[-1].message.end_reason != "recovered"


def test_with_an_emptied_store_the_incident_keeps_its_key() -> None:
    """
    Identity comes from the cause, so channels recognise what they told before.
    """
    machine = story()
    machine.until(200)

    again = story()
    again.until(200)

    assert {n.key for n in again.sent} == {n.key for n in machine.sent}


def test_equal_events_again_change_nothing() -> None:
    """
    A re-list of what is known asks for nothing and stores nothing new.
    """
    machine = story()
    machine.until(200)
    told = len(machine.sent)
    machine.feed = Feed(epoch=2)

    step = machine.tell(machine.feed.applied(*full_cluster(), waiting_pod(), seconds=201), 201)

    assert step.changes == ()
    assert len(machine.sent) == told


def test_a_damaged_row_is_named_and_the_rest_is_loaded() -> None:
    """
    One broken row costs its own alert, no more.
    """
    machine = story()
    machine.until(200)
    store = dict(machine.store)
    store[("alerts", "damaged")] = b"{not json"
    store[("restarts", "prod/x")] = b'["uid"]'

    after = Machine(store, seconds=260)

    assert len([p for p in after.engine.problems if p.startswith("restarts/prod/x: ")]) == 1
    assert [p for p in after.engine.problems if p.startswith("alerts/damaged: ")] != []
    assert after.engine.alerts.alert(RULE, DECODE) is not None


def test_explain_shows_facts_rules_and_context() -> None:
    """
    What is unknown says why; a rule that does not fire says why not.
    """
    machine = story()
    machine.until(60)

    told = machine.engine.explain(DECODE, at(60))

    assert told.labels["workload"] == "llama-70b"
    assert str(told.facts["component.kv_used_ratio"]) == "unknown (no_source: engine metrics)"
    by_id = {rule.rule_id: rule for rule in told.rules}
    assert "50s of for: 2m" in by_id[RULE].why
    assert by_id["rollout-surge-blocked"].state is AlertState.INACTIVE
    assert told.context is not None
    assert told.context.report is not None
