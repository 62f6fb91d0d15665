"""What `explain` says about the incident side: each decision by its name, with what stands behind it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sevenhop.cli.explain import text_of
from sevenhop.core.engine import Engine
from sevenhop.core.events import Silenced
from sevenhop.core.explanations import explanation_of
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.subject import Subject
from sevenhop.core.views import find_subjects, incidents
from sevenhop.frameworks import FRAMEWORKS
from tests import builders as b
from tests.unit.engine.machines import LLAMA, Machine, full_cluster, shipped_rules, waiting_pod
from tests.unit.engine.machines import SHORT as SAID

DECODE = "component:prod/llama-70b/decode"
SHORT = "component-short-of-gpus"


def waits(*, group_wait: float = 0) -> Machine:
    """A decode worker that waits, seen from the tenth second on; the alert fires at 130 s."""
    machine = Machine()
    machine.engine = Engine(
        "test",
        FRAMEWORKS,
        shipped_rules(),
        Policy(),
        DeskSettings(receivers=("console",), group_wait=timedelta(seconds=group_wait)),
    )
    machine.tell(machine.feed.synced(), 0)
    machine.put(*full_cluster(), waiting_pod(), seconds=10)
    return machine


def standing(machine: Machine, rule: str = SHORT, subject: str = DECODE) -> dict[str, Any] | None:
    found = explanation_of(machine.engine, Subject.parse(subject), b.at(machine.seconds))
    result: dict[str, Any] | None = next(r["standing"] for r in found["rules"] if r["rule"] == rule)
    return result


def reasons(machine: Machine, **which: str) -> dict[str, str]:
    found = standing(machine, **which)
    assert found is not None
    return {each["reason"]: each["text"] for each in found["reasons"]}


def text(machine: Machine, subject: str = DECODE) -> str:
    import msgspec

    found = explanation_of(machine.engine, Subject.parse(subject), b.at(machine.seconds))
    return text_of(msgspec.to_builtins(found, enc_hook=str), why_not=False)


def gone_from(front: Any) -> Any:
    """The Service's slice without any address."""
    return b.endpoint_slice(front, [])


def silence(machine: Machine, rule: str, seconds: float) -> None:
    event = Silenced(
        at=b.at(seconds),
        silence_id="s1",
        matchers={"rule": rule},
        author="ada",
        comment="known, order 7",
        expires_at=b.at(seconds + 3600),
    )
    machine.tell([event], seconds)


def test_a_pending_alert_stands_nowhere() -> None:
    """Nobody has decided anything about what does not fire."""
    machine = waits()
    machine.until(60)

    assert standing(machine) is None


def test_the_first_message_waits() -> None:
    """Until when, and why."""
    machine = waits(group_wait=30)
    machine.until(135)

    assert "until 12:02:40" in reasons(machine)["not_due_group_wait"]
    assert "not_due_group_wait console: the first message waits" in text(machine)


def test_what_was_told() -> None:
    """The post, when, and that nothing is new since."""
    machine = waits()
    machine.until(140)

    said = reasons(machine)
    assert "first_firing" in said or "not_due_nothing_new" in said
    assert "12:02:10" in said["told"]


def test_a_silence_names_who_and_until_when() -> None:
    """With the comment, for whoever wonders at night."""
    machine = waits()
    silence(machine, SHORT, 20)
    machine.until(140)

    assert reasons(machine)["not_due_silenced"] == "silence s1 by ada until 2026-11-30 13:00:20 UTC: known, order 7"


def test_a_symptom_names_what_explains_it() -> None:
    """A Service without endpoints is folded under the shortage that keeps its pods away."""
    machine = waits()
    pods = [b.dynamo_pod(LLAMA, "decode", str(n)) for n in range(3)]
    front = b.service("llama-70b", selector=pods[0].metadata.labels)
    ready = [b.dynamo_pod(LLAMA, "decode", str(n), node=f"gpu-{n}") for n in (0, 1)]
    machine.put(front, b.endpoint_slice(front, ready), seconds=11)
    machine.delete(*ready, seconds=12)
    machine.put(
        b.node("gpu-0", gpus=2),
        b.node("gpu-1", gpus=2),
        *(b.dynamo_pod(LLAMA, "decode", str(n), unschedulable=SAID, since=b.at(13)) for n in (0, 1)),
        gone_from(front),
        seconds=13,
    )
    machine.until(900)

    said = reasons(machine, rule="no-ready-endpoints", subject="service:prod/llama-70b")
    assert f"explained by {SHORT} on {DECODE}" in said["not_due_inhibited"]
    assert "a symptom in incident" in text(machine, "service:prod/llama-70b")


def test_what_opens_too_often_is_said_to_flap() -> None:
    """How often, and that it is told by edits."""
    machine = waits()
    machine.seconds = 10
    for _turn in range(5):
        start = machine.seconds
        machine.until(start + 150)
        machine.delete(waiting_pod(since=start), seconds=start + 160)
        machine.until(start + 500)
        machine.put(waiting_pod(since=start + 501), seconds=start + 501)
    machine.until(machine.seconds + 150)

    said = next(text for reason, text in reasons(machine).items() if "flapping" in text)
    assert "within 60 minutes" in said


def test_what_happens_on_a_node_under_maintenance_names_the_node() -> None:
    """Nobody is told of it, and here is why."""
    machine = Machine()
    machine.tell(machine.feed.synced(), 0)
    pulls = b.dynamo_pod(LLAMA, "decode", "0", node="gpu-1", waiting="ImagePullBackOff", message="manifest unknown")
    machine.put(b.node("gpu-1", gpus=4, cordoned=True), LLAMA, pulls, seconds=10)
    machine.until(900)

    found = standing(machine, rule="image-not-pulled")
    assert found is not None
    texts = [each["text"] for each in found["reasons"] if each["reason"] == "not_due_maintenance"]
    assert texts == ["folded under node gpu-1, which is under maintenance", "its node is under maintenance"]


def test_problems_of_the_desk_are_told() -> None:
    """A silence that cannot be read is nobody's alert, and must not be silent."""
    machine = waits()
    event = Silenced(
        at=b.at(20), silence_id="s2", matchers={}, author="ada", comment="", expires_at=b.at(99), where=("tier ??",)
    )
    machine.tell([event], 20)

    found = explanation_of(machine.engine, Subject.parse(DECODE), b.at(20))
    assert any("s2" in problem and "ada" in problem for problem in found["problems"])


@pytest.mark.parametrize(
    "subject",
    [
        "workload:prod/llama-70b",
        "pod:prod/llama-70b-decode-2",
        f"pool:{b.H100}",
    ],
)
def test_who_asks_about_a_neighbour_is_led_to_the_alert(subject: str) -> None:
    """Rules look at components, and people ask about the workload, its pod or the pool."""
    said = text(waits(), subject)
    assert f"  pending  {SHORT} on {DECODE}" in said.splitlines()


@pytest.mark.parametrize("subject", ["workload:prod/summarizer", "node:gpu-1", "source:Pod"])
def test_what_an_alert_is_not_about_does_not_show_it(subject: str) -> None:
    """Another workload's trouble stands elsewhere."""
    assert SHORT not in text(waits(), subject)


def test_what_was_never_there_is_not_explained() -> None:
    """A misspelt name must not read as "all is well"; what is gone and had an alert is still found."""
    machine = waits()
    assert find_subjects(machine.engine, "component:prod/llama-70b/decoder") == []
    assert find_subjects(machine.engine, DECODE) == [Subject.parse(DECODE)]

    pods = [each for each in full_cluster() if each.metadata.name.startswith("llama")]
    machine.delete(*pods, waiting_pod(), seconds=machine.seconds + 1)
    assert Subject.parse(DECODE) not in machine.engine.inventory.facts
    assert find_subjects(machine.engine, DECODE) == [Subject.parse(DECODE)]


def test_an_incident_that_nobody_was_told_of_has_a_name() -> None:
    """In the first seconds, and in one look at a cluster, there is no message yet to take it from."""
    machine = waits(group_wait=60)
    machine.until(140)
    (row,) = incidents(machine.engine, b.at(machine.seconds))
    assert row["title"] == f"{SHORT} (nobody was told yet)"
