"""Our verdicts against the live scheduler's, on cases that nobody has seen before; the rates are printed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.scheduling import why_pending
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.placement.cluster import Cluster as Placement
from sevenhop.core.placement.fit import fits
from sevenhop.core.placement.what_if import what_if
from tests.e2e.fresh_cases import GPU_SHORT, Case, fresh_cases
from tests.e2e.scenes import Scene, scene
from tests.scheduler_cases import put, synced
from tests.testbed import nodes
from tests.testbed.client import Object
from tests.testbed.cluster import Cluster
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

ROUNDS = 400 if os.environ.get("SEVENHOP_ROUNDS") == "soak" else 40
AT_ONCE = 40
"""Cases that share the cluster, each on nodes of its own."""

STAYS_S = 5.0
"""A pod that is still waiting so long after its donors went does not fit: the scheduler looks again at once."""

KINDS = (("v1", "Node"), ("v1", "Pod"), ("v1", "Namespace"), ("scheduling.k8s.io/v1", "PriorityClass"))


@dataclass
class Answer:
    """What the scheduler and we said of one case, each on the same cluster."""

    case: Case
    node: str
    ours: Diagnosis | None
    our_nodes: tuple[str, ...]
    gpu_helps: bool | None = None
    after_node: str | None = None
    our_after: tuple[bool, tuple[str, ...]] | None = None


@pytest.fixture(scope="module")
def answers(testbed: Cluster) -> list[Answer]:
    """All cases, answered."""
    seed = int(os.environ.get("SEVENHOP_SEED") or time.time())
    print(f"seed {seed} (SEVENHOP_SEED repeats it)")
    found: list[Answer] = []
    for first in range(0, ROUNDS, AT_ONCE):
        with scene(testbed) as here:
            cases = fresh_cases(min(AT_ONCE, ROUNDS - first), here.namespace, seed, first=first)
            found += _answered(here, cases)
    return found


def _answered(here: Scene, cases: list[Case]) -> list[Answer]:
    _build(here, cases)
    for case in cases:
        here.client.create(case.subject)
    decided = {case.name: _decision(here, case) for case in cases}
    before = _seen(here)
    found = [_ask_us(case, decided[case.name], before) for case in cases]
    _ask_about_gpus(here, [a for a in found if a.ours is not None and a.ours.cause in GPU_SHORT])
    _ask_without_donors(here, [a for a in found if not a.node and a.case.donors], before)
    return found


def _build(here: Scene, cases: Iterable[Case]) -> None:
    created = []
    for case in cases:
        for node in case.nodes:
            created.append(here.client.create(node)["metadata"]["name"])
            here.pool.names.append(created[-1])
    for name in created:
        here.client.wait_for("v1", "Node", name, until=_is_up)
    for case in cases:
        for filler in case.fillers:
            here.client.create(filler)
        for name in case.cordoned:
            nodes.cordon(here.client, name)


def _is_up(node: Object) -> bool:
    taints = node["spec"].get("taints") or []
    return nodes.is_ready(node) and not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints)


def _decision(here: Scene, case: Case) -> str:
    """The node, or "" where the scheduler refuses."""
    name = case.subject["metadata"]["name"]
    is_decided = lambda pod: nodes.condition(pod, "PodScheduled") is not None  # noqa: E731
    pod = here.client.wait_for("v1", "Pod", name, here.namespace, until=is_decided)
    return str(pod["spec"].get("nodeName", ""))


def _seen(here: Scene) -> list[Object]:
    """What is there, without a trace of the scheduler's answers: we must know by ourselves."""
    objects: list[Object] = []
    for version, kind in KINDS:
        objects += here.client.list(version, kind)
    for each in objects:
        if each["kind"] == "Pod" and each["metadata"]["name"].endswith("-subject"):
            each["spec"].pop("nodeName", None)
            each["status"] = {"phase": "Pending"}
    return objects


def _objects(seen: Iterable[Object]) -> Objects:
    objects = synced()
    for each in seen:
        put(objects, each)
    return objects


def _ask_us(case: Case, node: str, seen: list[Object]) -> Answer:
    """Each case in the cluster as it was before any subject was placed."""
    placement = Placement(_objects(seen))
    meta = case.subject["metadata"]
    pod = placement.objects.pods()[meta["namespace"], meta["name"]]
    return Answer(case, node, why_pending(placement, pod), fits(placement, pod).nodes)


def _ask_about_gpus(here: Scene, claimed: list[Answer]) -> None:
    """Would the same pod be placed on a GPU node if it wanted no GPU?"""
    copies = {}
    for answer in claimed:
        copy: Object = {**answer.case.subject, "metadata": {**answer.case.subject["metadata"]}}
        copy["metadata"]["name"] += "-without-gpus"
        selector = {**copy["spec"]["nodeSelector"], "nvidia.com/gpu.present": "true"}
        containers = [{**c, "resources": {"requests": c["resources"]["requests"]}} for c in copy["spec"]["containers"]]
        copy["spec"] = {**copy["spec"], "nodeSelector": selector, "containers": containers}
        here.client.create(copy)
        copies[answer.case.name] = copy["metadata"]["name"]
    for answer in claimed:
        decided = lambda pod: nodes.condition(pod, "PodScheduled") is not None  # noqa: E731
        name = copies[answer.case.name]
        pod = here.client.wait_for("v1", "Pod", name, here.namespace, until=decided)
        answer.gpu_helps = bool(pod["spec"].get("nodeName"))
        here.client.delete("v1", "Pod", name, here.namespace, grace=0)


def _ask_without_donors(here: Scene, waiting: list[Answer], before: list[Object]) -> None:
    placed = {a.case.subject["metadata"]["name"] for a in waiting}
    bound = [o for o in before if not o["metadata"]["name"].endswith("-subject") or o["metadata"]["name"] in placed]
    for answer in waiting:
        gone = [(here.namespace, name) for name in answer.case.donors]
        key = (here.namespace, answer.case.subject["metadata"]["name"])
        (ours,) = [w for w in what_if(_objects(bound), gone) if w.pod == key]
        answer.our_after = (ours.fits, ours.nodes)
    for answer in waiting:
        for name in answer.case.donors:
            here.client.delete("v1", "Pod", name, here.namespace, grace=0)
    began = time.monotonic()
    for answer in waiting:
        left = max(began + STAYS_S - time.monotonic(), 0.3)
        answer.after_node = _node_within(here, answer.case, left if not answer.our_after[0] else 20)  # type: ignore[index]


def _node_within(here: Scene, case: Case, seconds: float) -> str:
    def look() -> str:
        pod = here.client.get("v1", "Pod", case.subject["metadata"]["name"], here.namespace)
        return str(pod["spec"].get("nodeName", ""))

    try:
        return eventually(look, timeout=seconds, every=0.2)
    except TimeoutError:
        return ""


def _rate(what: str, right: int, total: int) -> float:
    rate = right / total if total else 1.0
    print(f"{what}: {right} of {total} ({rate:.1%})")
    return rate


def _told(answer: Answer) -> tuple[Any, ...]:
    return (answer.case.name, answer.case.recipe, answer.node, answer.ours and (answer.ours.cause, answer.ours.summary))


def test_the_recipes_are_what_they_say(answers: list[Answer]) -> None:
    """Where a case is built to fit, or not to, the scheduler agrees: otherwise the labels would be wrong."""
    wrong = [_told(a) for a in answers if a.case.fits is not None and a.case.fits is not bool(a.node)]
    assert not wrong


def test_fits_and_does_not_fit_as_the_scheduler_says(answers: list[Answer]) -> None:
    """99 % in each class, and the node that it took is among those that we name."""
    placed = [a for a in answers if a.node]
    refused = [a for a in answers if not a.node and a.case.recipe != "gated"]
    wrong = [_told(a) for a in placed if a.node not in a.our_nodes] + [_told(a) for a in refused if a.our_nodes]
    assert _rate("fits", sum(a.node in a.our_nodes for a in placed), len(placed)) >= 0.99, wrong
    assert _rate("does not fit", sum(not a.our_nodes for a in refused), len(refused)) >= 0.99, wrong


def test_a_single_cause_is_named(answers: list[Answer]) -> None:
    """97 % of the cases built with one thing wrong are given that cause, without reading the scheduler's words."""
    built = [a for a in answers if a.case.expected is not None]
    right = [a for a in built if a.ours is not None and a.ours.cause in (a.case.expected or ())]
    wrong = [_told(a) for a in built if a not in right]
    assert _rate("causes", len(right), len(built)) >= 0.97, wrong


def test_no_gpu_shortage_is_claimed_where_there_is_none(answers: list[Answer]) -> None:
    """Every claim holds in reality: the same pod without its GPUs is placed on a GPU node."""
    claims = [a for a in answers if not a.node and a.ours is not None and a.ours.cause in GPU_SHORT]
    false = [_told(a) for a in claims if not a.gpu_helps]
    print(f"gpu shortage: {len(claims)} claims, {len(false)} false")
    assert claims
    assert not false


def test_what_if_comes_true(answers: list[Answer]) -> None:
    """Donors were really deleted: 99 % of what was foretold happened, on one of the nodes that were named."""
    asked = [a for a in answers if a.our_after is not None]
    wrong = []
    for answer in asked:
        ours_fits, ours_nodes = answer.our_after or (False, ())
        if ours_fits is not bool(answer.after_node) or (ours_fits and answer.after_node not in ours_nodes):
            wrong.append((*_told(answer), answer.our_after, answer.after_node))
    fitting = sum(bool(a.after_node) for a in asked)
    print(f"what-if: of {len(asked)} {fitting} fit afterwards")
    assert _rate("what-if", len(asked) - len(wrong), len(asked)) >= 0.99, wrong
