"""Our verdicts against those that a real kube-scheduler gave: rates over the recorded cases, printed and asserted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis
from sevenhop.core.hops.scheduling import why_not_created, why_pending
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.cluster import Controller
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.evaluation import class_of, evaluate
from sevenhop.core.placement.fit import fits, scheduler_counts
from sevenhop.core.placement.preemption import PreemptionReason, preempt
from sevenhop.core.placement.what_if import what_if
from tests.scheduler_cases import cases, objects_of

GPU_SHORT = ("gpu-shortage", "gpu-fragmentation")

whole_or_stripped = pytest.mark.parametrize("stripped", [False, True], ids=["whole", "stripped"])


def _diagnose(case: dict[str, Any], objects: Objects) -> Diagnosis | None:
    namespace, name = case["subject"]["namespace"], case["subject"]["name"]
    if case["class"] == "not-created":
        owner = objects.get("ReplicaSet.apps", namespace, name)
        assert isinstance(owner, Controller)
        return why_not_created(objects, "ReplicaSet.apps", owner)
    return why_pending(Cluster(objects), objects.pods()[(namespace, name)])


def _is_right(diagnosis: Diagnosis | None, truth: dict[str, Any]) -> bool:
    if diagnosis is None:
        return False
    return diagnosis.cause in [truth["cause"], *truth["also_causes"]] and diagnosis.category in [
        truth["category"],
        *truth["also_categories"],
    ]


@whole_or_stripped
def test_category_and_cause_are_right_on_97_percent_of_labelled_verdicts(stripped: bool) -> None:
    """Labelled cases are diagnosed as labelled, and with certainty, with or without the scheduler's own words."""
    wrong, total, unsure = [], 0, 0
    for case in cases("verdicts"):
        truth = case["truth"]
        if not truth or "cause" not in truth:
            continue
        total += 1
        found = _diagnose(case, objects_of(case, stripped=stripped))
        unsure += found is None or found.confidence is not Confidence.CERTAIN
        if not _is_right(found, truth):
            wrong.append((case["id"], truth["cause"], found.cause if found else None))
    rate = 1 - len(wrong) / total
    print(f"labelled verdicts{' stripped' if stripped else ''}: {total - len(wrong)} of {total} right ({rate:.1%})")
    assert rate >= 0.97, wrong
    assert unsure <= 0.03 * total


@whole_or_stripped
def test_a_gpu_shortage_is_never_claimed_where_it_is_none(stripped: bool) -> None:
    """Where the label denies it, or the pod still did not fit without its GPUs, nobody is sent after GPUs."""
    false_claims, claims = [], 0
    for case in cases("verdicts"):
        found = _diagnose(case, objects_of(case, stripped=stripped))
        if found is None or found.cause not in GPU_SHORT:
            continue
        claims += 1
        truth = case["truth"] or {}
        if truth.get("gpu_shortage") is False:
            false_claims.append(case["id"])
        if not case["truth"] and not case.get("relaxations", {}).get("gpu@gpu-nodes"):
            false_claims.append(case["id"])
    print(f"gpu shortage{' stripped' if stripped else ''}: {claims} claims, {len(false_claims)} false")
    assert claims > 0
    assert not false_claims


@whole_or_stripped
def test_hardly_any_verdict_is_unknown(stripped: bool) -> None:
    """At most 3 % of the cases end as unknown; our reading does not contradict the scheduler's words."""
    found = [_diagnose(case, objects_of(case, stripped=stripped)) for case in cases("verdicts")]
    unknown = sum(1 for each in found if each is None or each.category is Category.UNKNOWN)
    print(f"unknown{' stripped' if stripped else ''}: {unknown} of {len(found)}")
    assert unknown <= 0.03 * len(found)


def test_pods_fit_where_the_scheduler_placed_them_and_nowhere_where_it_did_not() -> None:
    """Without preemption, our filters and the scheduler's answer alike on 99 % in each class."""
    right: Counter[bool] = Counter()
    total: Counter[bool] = Counter()
    for case in cases("verdicts"):
        if case["class"] != "verdict":
            continue
        objects = objects_of(case, stripped=True)
        pod = objects.pods()[(case["subject"]["namespace"], case["subject"]["name"])]
        nodes = fits(Cluster(objects), pod).nodes
        placed = case["verdict"]["fits"]
        total[placed] += 1
        right[placed] += case["verdict"]["node"] in nodes if placed else not nodes
    print(f"fits: {right[True]} of {total[True]}; does not fit: {right[False]} of {total[False]}")
    assert right[True] >= 0.99 * total[True]
    assert right[False] >= 0.99 * total[False]


def test_our_reasons_count_the_nodes_as_the_scheduler_counts_them() -> None:
    """Reason by reason, the number of nodes is the scheduler's on 99 % of the cases."""
    same, total = 0, 0
    for case in cases("verdicts"):
        counts = case["verdict"].get("counts")
        if case["class"] != "verdict" or not counts or None in counts.values():
            continue
        objects = objects_of(case, stripped=True)
        cluster = Cluster(objects)
        pod = objects.pods()[(case["subject"]["namespace"], case["subject"]["name"])]
        total += 1
        same += scheduler_counts(evaluate(cluster, class_of(cluster, pod))) == counts
    print(f"counts: {same} of {total} equal")
    assert same >= 0.99 * total


def test_preemption_is_predicted_as_the_scheduler_did_it() -> None:
    """Whether it evicts, and that it takes a node among those we name."""
    right, total = 0, 0
    for case in cases("verdicts"):
        if case["class"] == "not-created":
            continue
        objects = objects_of(case, stripped=True)
        cluster = Cluster(objects)
        pod = objects.pods()[(case["subject"]["namespace"], case["subject"]["name"])]
        answer = fits(cluster, pod)
        if answer.nodes or answer.trouble or answer.held_back:
            continue
        room = preempt(cluster, pod, evaluate(cluster, class_of(cluster, pod)))
        placed = case["verdict"]["fits"]
        total += 1
        right += (room.reason is PreemptionReason.HELPS) == placed and (
            not placed or case["verdict"]["node"] in room.nodes
        )
    print(f"preemption: {right} of {total} right")
    assert right >= 0.99 * total


def test_what_if_answers_as_the_scheduler_did_after_the_donors_were_gone() -> None:
    """Fits and does not fit each right on 99 %, and the real node among those we name."""
    right: Counter[bool] = Counter()
    total: Counter[bool] = Counter()
    wrong = []
    for case in cases("whatif"):
        donors = [(namespace, name) for namespace, _, name in (d.partition("/") for d in case["donors"])]
        answers = {w.pod: w for w in what_if(objects_of(case, stripped=True), donors)}
        answer = answers[(case["subject"]["namespace"], case["subject"]["name"])]
        after = case["after"]
        ok = answer.fits == after["fits"] and (not after["fits"] or after["node"] in answer.nodes)
        total[after["fits"]] += 1
        right[after["fits"]] += ok
        if not ok:
            wrong.append((case["id"], after, answer))
    print(f"what-if fits: {right[True]} of {total[True]}; does not fit: {right[False]} of {total[False]}")
    assert right[True] >= 0.99 * total[True], wrong
    assert right[False] >= 0.99 * total[False], wrong
