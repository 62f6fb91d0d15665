"""One look at a cluster, as people and programs read it."""

from __future__ import annotations

from sevenhop.cli import doctor
from sevenhop.cli.scan import report_of, text_of
from tests import builders as b
from tests.unit.engine.machines import Machine
from tests.unit.inventory.held_back import USED_UP, ray


def looked_at() -> Machine:
    """A RayCluster that may not create a single pod, for twenty minutes."""
    machine = Machine()
    machine.tell(machine.feed.synced(), 0)
    machine.put(b.node("gpu-0", gpus=8), ray(says=USED_UP), seconds=1)
    machine.until(1200)
    return machine


def test_what_no_pod_tells_of_is_found_shown_and_alerted() -> None:
    """The component has its cause and its broken hop, the finding its words, and the rule for quotas fires."""
    report = report_of(looked_at().engine, "test", b.at(1200))

    workers = next(row for row in report["workloads"] if row["component"] == "workers")
    assert (workers["cause"], workers["first_broken"], workers["waiting"]) == ("resource-quota", "scheduling", 2)
    assert workers["alerts"] == ["blocked-by-quota"]
    [found] = report["findings"]
    assert (found["kind"], found["name"], found["workload"]) == ("RayCluster", "ray", "ray")
    assert (found["hop"], found["category"], found["cause"]) == ("scheduling", "quota", "resource-quota")
    assert "exceeded quota: gpu" in found["evidence"][0]["text"]


def test_findings_stand_in_the_text() -> None:
    """With whose they are, and what to do first."""
    text = text_of(report_of(looked_at().engine, "test", b.at(1200)))

    assert "RayCluster prod/ray [ray]  scheduling: resource-quota (likely)" in text
    assert "blocked-by-quota" in text.split("What would alert")[1]


def test_another_namespace_shows_what_is_there_and_what_has_no_namespace() -> None:
    """A node's finding belongs to everybody, another team's ReplicaSet does not."""
    machine = looked_at()
    machine.put(b.node("gpu-1", gpus=6, capacity=8), seconds=1201)
    found = report_of(machine.engine, "test", b.at(1300), "other")["findings"]

    assert [row["kind"] for row in found] == ["Node"]


def test_every_inert_rule_says_what_would_arm_it() -> None:
    """In the text of scan and of doctor alike, a line each with the missing fact and its source."""
    report = report_of(looked_at().engine, "test", b.at(1200))
    off = {rule["rule"] for rule in report["inert_rules"] if "enabled: true" in rule["why"]}
    assert {"straggler", "cpu-throttled"} <= off < {rule["rule"] for rule in report["inert_rules"]}

    for text in (text_of(report), doctor.text_of(report)):
        lines = text.split("WHAT WOULD ARM IT")[1].splitlines()
        for rule in report["inert_rules"]:
            line = next(line for line in lines if line.startswith(f"{rule['rule']} "))
            assert rule["why"].removeprefix("needs ") in line
