"""
Collected texts of schedulers, kubelets and engines against their labels.

Rates are printed; what is missed is named.  Without the shared data these tests are skipped, and the texts of
tests/unit/hops_text remain.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from sevenhop.core.hops.causes import CAUSES
from sevenhop.core.hops.failures import Context, classify_text, why_not_well
from sevenhop.core.hops.scheduler_text import classify_scheduler_message, read_scheduler_message
from sevenhop.core.subject import HOPS
from tests.shared import shared_path
from tests.unit.hops_text.pods_of_text import event, pod

LEAST_RATE = 0.97

QUEUEING = "queueing"
"""The collection's word for what we call gated."""

FAMILIES: dict[str, str] = {
    "device-plugin": "device", "dra": "device", "gpu-lost": "device", "driver": "device", "runtimeclass": "device",
    "cgroup-device": "device", "ecc": "device", "no-gpu": "device", "image": "image", "missing-secret": "config",
    "missing-configmap": "config", "volume": "config", "ephemeral": "runtime", "probe": "probe", "slow-load": "probe",
    "kv-cache": "engine", "gpu-oom": "engine", "gpu-memory": "engine", "gpu-too-old": "engine", "nccl": "engine",
    "bad-parallelism": "engine", "bad-config": "engine", "worker-stuck": "engine", "corrupt": "model-artifact",
    "incomplete": "model-artifact", "missing-weights": "model-artifact", "missing-shards": "model-artifact",
    "trust-remote": "model-artifact", "hf-": "model-artifact", "model-or-revision": "model-artifact",
    "ray-capacity": "resource", "gang-capacity": "gated",
}  # fmt: skip
"""How a label's class begins, to our category; classes that are not here are only compared by hop."""


def load(name: str) -> Any:
    return yaml.safe_load(shared_path(f"data/failures/{name}").read_text("utf-8"))


def context_of(seen_in: str) -> Context:
    words = {
        "log": Context.LOG,
        "event": Context.EVENT,
        "waiting": Context.WAITING,
        "terminated": Context.TERMINATED,
        "start error": Context.TERMINATED,
        "storage-initializer": Context.TERMINATED,
        "pod.status": Context.STATUS,
        "condition": Context.CONDITION,
        "status": Context.CONDITION,
    }
    return next((context for word, context in words.items() if word in seen_in.lower()), Context.EVENT)


def report(what: str, missed: list[str], total: int) -> float:
    rate = 1 - len(missed) / total
    print(f"\n{what}: {total - len(missed)} of {total} ({rate:.1%})")
    for line in missed:
        print(f"  missed: {line}")
    return rate


def test_scheduling_categories() -> None:
    """
    The category of at least 97 % of the collected scheduling texts is right.
    """
    messages = load("scheduling_messages.yaml")["messages"]
    missed = []
    for row in messages:
        wanted = "gated" if row["category"] == QUEUEING else row["category"]
        diagnosis = classify_scheduler_message(row["text"])
        if diagnosis is None or diagnosis.category != wanted:
            missed.append(f"{row['id']} {wanted}, said {diagnosis.category if diagnosis else None}")

    assert report("scheduling texts, category", missed, len(messages)) >= LEAST_RATE


def test_shortage_is_claimed_only_where_it_is_true() -> None:
    """
    No text whose label denies a GPU shortage, or leaves it open, leads to one.
    """
    for row in load("scheduling_messages.yaml")["messages"]:
        diagnosis = classify_scheduler_message(row["text"])
        if diagnosis is not None and diagnosis.cause == "gpu-shortage":
            assert row["gpu_shortage_is_true_cause"] is True, row["id"]


def test_scheduling_counts() -> None:
    """
    Counts and total of every kube-scheduler verdict are read as the collection has them.
    """
    for row in load("scheduling_messages.yaml")["messages"]:
        message = read_scheduler_message(row["text"])
        if message is None:
            assert row.get("nodes_total") is None, row["id"]
            continue
        counted = {reason: count for reason, count in message.counts.items() if count is not None}
        assert (counted, message.total_nodes) == (row["counts"] or {}, row["nodes_total"]), row["id"]


def test_pod_failures() -> None:
    """
    Hop and category of at least 97 % of the collected failure texts are right.
    """
    failures = load("pod_failures.yaml")["failures"]
    missed = []
    for row in failures:
        found = classify_text(row["text"], context=context_of(row["seen_in"]))
        family = next((category for begin, category in FAMILIES.items() if row["cls"].startswith(begin)), "")
        hop = HOPS[row["hop_no"] - 1]
        if found is None or found.cause.hop is not hop or (family and found.cause.category != family):
            said = f"{found.cause.hop}/{found.cause.category}/{found.cause.slug}" if found else None
            missed.append(f"{row['id']} {hop}/{family} ({row['cls']}), said {said}")

    assert report("failure texts, hop and category", missed, len(failures)) >= LEAST_RATE


def test_symptoms_are_called_symptoms() -> None:
    """
    Texts that the collection calls symptoms never pass for a cause.
    """
    for row in load("pod_failures.yaml")["failures"]:
        if row["cls"] == "symptom":
            found = classify_text(row["text"], context=context_of(row["seen_in"]))
            assert found is not None, row["id"]
            assert found.cause.is_symptom, row["id"]


@pytest.mark.parametrize("code", ["79", "74", "119", "999"])
def test_kernel_lines(code: str) -> None:
    """
    Lines of the driver in the kernel log belong to the first hop.
    """
    lines = [line for case in load("xid.yaml")["test_cases"] for line in case["lines"] if f": {code}," in line]
    assert lines
    for line in lines:
        found = classify_text(line, context=Context.LOG)
        assert found is not None, line
        assert found.cause.hop is HOPS[0], line


def test_every_cause_is_published() -> None:
    """
    Whatever the texts lead to is a row with a meaning and a next step.
    """
    texts = [row["text"] for row in load("scheduling_messages.yaml")["messages"]]
    for text in texts:
        diagnosis = classify_scheduler_message(text)
        assert diagnosis is not None, text
        row = CAUSES[diagnosis.cause]
        assert row.meaning
        assert row.next_steps


LOOP = {"waiting": {"reason": "CrashLoopBackOff"}}
ENDED = {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "2026-01-02T12:00:00Z"}}
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/5 nodes are available: 1 Insufficient cpu, 4 node(s) didn't match Pod's node affinity/selector.",
}
REPORTED: dict[str, tuple[dict[str, Any], list[Any], str]] = {
    # Report of a peer's bug: a pod of that kind, its Events, our cause.
    "B11": (
        {"phase": "Pending", "containerStatuses": [{"name": "e", "state": {"waiting": {"reason": "ErrImagePull"}}}]},
        [],
        "image-pull-unexplained",
    ),
    "B16": (
        {"phase": "Pending"},
        [
            event(
                "FailedScheduling",
                "0/2 nodes are available: 2 Too many pods.",
                lastTimestamp=None,
                eventTime="2026-11-30T02:00:00.000000Z",
            )
        ],
        "too-many-pods",
    ),
    "B20": (
        {"phase": "Running", "containerStatuses": [{"name": "e", "state": ENDED}]},
        [],
        "exit-code-unexplained",
    ),
    "B49": (
        {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "GetPreferredAllocation: GPU is lost"},
        [],
        "gpu-lost",
    ),
    "B53": ({"phase": "Pending", "conditions": [UNSCHEDULABLE]}, [], "cpu-shortage"),
    "B56": (
        {"phase": "Pending", "initContainerStatuses": [{"name": "storage-initializer", "state": LOOP}]},
        [],
        "artifact-fetch-unexplained",
    ),
    "B61": (
        {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
        [],
        "scheduling-gate",
    ),
    "B62": (
        {"phase": "Running", "containerStatuses": [{"name": "e", "state": LOOP, "restartCount": 5}]},
        [],
        "crash-loop-unexplained",
    ),
}


@pytest.mark.parametrize("report_id", REPORTED)
def test_reported_cases(report_id: str) -> None:
    """
    What peers were reported to miss is found, from the pod's status and without waiting for an Event.
    """
    known = {row["id"] for row in load("bug_reports.yaml")}
    status, events, cause = REPORTED[report_id]
    spec = {"nodeName": "" if report_id in ("B16", "B53", "B61") else "gpu-1"}

    diagnosis = why_not_well(pod(status=status, spec=spec), events, now=None)

    assert report_id in known
    assert diagnosis is not None
    assert diagnosis.cause == cause
