"""Numbers and their nouns agree in every text of ours, whatever the numbers are."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.findings import findings
from sevenhop.core.hops.scheduler_text import classify_scheduler_message
from sevenhop.core.hops.scheduling import why_pending
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.words import counted
from tests.placement_builders import GPU, custom, node, pod, the_pod, world

NOUNS = "pod|node|GPU|device|group|replica|workload|restart|slice|claim|symptom|alert|time|route|subject|minute"
WRONG = re.compile(
    # One of many, and many of one; "1 of 4 nodes" and "10 nodes" are right.
    rf"\b(?<![.\d])1 (?:\w+ )?(?:{NOUNS})s\b|\b(?<![.\d])(?!1\b)\d+ (?:old )?(?:{NOUNS})\b|\(s\)"
    r"|\b1 (?:\w+ )?(?:pod|node)s? (?:are|have|hold|carry)\b",
)


def of_ours(found: Diagnosis) -> list[str]:
    """What we write; evidence quotes others where it is not about an object."""
    said = [e.text for e in found.evidence if e.source.startswith(("node/", "deployment/", "resourcequota/"))]
    return [found.summary, found.not_preempted, *found.would_help, *found.next_steps, *said]


@st.composite
def clusters(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A few nodes of any kind, pods on them, and one that waits; it may be the surge of a rollout."""
    items: list[dict[str, Any]] = []
    for index in range(draw(st.integers(1, 3))):
        gpus = draw(st.sampled_from([0, 1, 2, 4]))
        broken = draw(st.sampled_from([0, 1]))
        taint = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}] if draw(st.booleans()) else []
        items.append(
            node(
                f"n{index}",
                gpus=gpus,
                capacity=gpus + broken or None,
                cordoned=draw(st.sampled_from([False, False, True])),
                taints=taint,
                pods=draw(st.sampled_from([1, 2, 110])),
            )
        )
        used = draw(st.integers(0, gpus))
        if used:
            revision = draw(st.sampled_from(["", "rs-1"]))
            owner = ("ReplicaSet", revision, f"uid-{revision}") if revision else None
            items.append(pod(f"on-{index}", on=f"n{index}", gpus=used, owner=owner, priority=draw(st.integers(0, 1))))
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}
    items.append(custom("apps/v1", "Deployment", "llama", "prod", spec={"strategy": rolling}))
    owned = [{"kind": "Deployment", "name": "llama", "uid": "uid-llama", "controller": True}]
    for number in ("1", "2"):
        notes = {"deployment.kubernetes.io/revision": number}
        meta = {"ownerReferences": owned, "annotations": notes}
        items.append(custom("apps/v1", "ReplicaSet", f"rs-{number}", "prod", metadata=meta, spec={"replicas": 3}))
    hard = {"pods": str(draw(st.integers(1, 2))), f"requests.{GPU}": "1"}
    used_up = {"pods": hard["pods"], f"requests.{GPU}": "1"}
    items.append(custom("v1", "ResourceQuota", "q", "prod", status={"hard": hard, "used": used_up}))
    asks: dict[str, Any] = {
        "gpus": draw(st.sampled_from([0, 1, 2, 8])),
        "cpu": draw(st.sampled_from(["1", "64"])),
        "priority": draw(st.integers(0, 1)),
    }
    items.append(pod("x", owner=("ReplicaSet", "rs-2", "uid-rs-2"), **asks))
    return items


@settings(max_examples=150, deadline=None)
@given(clusters())
def test_numbers_agree_with_their_nouns(items: list[dict[str, Any]]) -> None:
    """Of one node as of many: a person who reads "1 pods" trusts the rest less."""
    objects = world(*items)
    found = [why_pending(Cluster(objects), the_pod(objects, "x")), *(f.diagnosis for f in findings(objects))]

    for text in (text for each in found for text in of_ours(each)):
        assert not WRONG.search(text), text


@pytest.mark.parametrize("nodes", [1, 2, 11])
@pytest.mark.parametrize(
    "text",
    [
        "0/{n} nodes are available: {n} Insufficient cpu. preemption: {n} No preemption victims found.",
        "0/{n} nodes are available: {n} node(s) were unschedulable. preemption: {n} Preemption is not helpful.",
        "pod didn't trigger scale-up: {n} node(s) had untolerated taint {{a: b}}",
        "{n}/0 tasks in gang unschedulable: pod group is not ready, {n} minAvailable, 0 Pending",
        "pod group is not ready, {n} minAvailable, 1 Pending; Pending: 1 Unschedulable",
    ],
)
def test_numbers_read_from_texts_agree_too(text: str, nodes: int) -> None:
    """The scheduler writes "node(s)"; we do not."""
    found = classify_scheduler_message(text.format(n=nodes))

    assert found is not None
    theirs = r'"[^"]*"|: .*? on |node\(s\) had.*'
    for ours in (re.sub(theirs, "", found.summary), found.not_preempted):
        assert not WRONG.search(ours), ours


@pytest.mark.parametrize(
    ("number", "noun", "expected"),
    [
        (0, "pod", "0 pods"),
        (1, "old pod", "1 old pod"),
        (2, "class", "2 classes"),
        (2, "policy", "2 policies"),
        (2, "replay", "2 replays"),
        (11, "GPU", "11 GPUs"),
    ],
)
def test_a_number_and_its_noun(number: int, noun: str, expected: str) -> None:
    """As English inflects what we count."""
    assert counted(number, noun) == expected
