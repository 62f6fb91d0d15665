"""Our verdicts against the live scheduler's, on cases that nobody has seen before; the rates are printed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.scheduler_text import read_scheduler_message
from sevenhop.core.hops.scheduling import why_pending
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.pod import Pod, PodStatus
from sevenhop.core.placement.cluster import Cluster as Placement
from sevenhop.core.placement.evaluation import class_of, evaluate
from sevenhop.core.placement.fit import fits, scheduler_counts
from sevenhop.core.placement.preemption import Preemption, PreemptionReason, preempt
from sevenhop.core.placement.what_if import what_if
from tests.e2e.fresh_cases import fresh_cases
from tests.e2e.fresh_maker import GPU_SHORT, Case
from tests.e2e.scenes import Scene, scene
from tests.saying import Say
from tests.scheduler_cases import put, synced
from tests.testbed import nodes
from tests.testbed.client import Object
from tests.testbed.cluster import Cluster
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

ROUNDS = int(os.environ.get("SEVENHOP_CASES") or (400 if os.environ.get("SEVENHOP_ROUNDS") == "soak" else 64))
ONLY = os.environ.get("SEVENHOP_RECIPES", "").split()
"""Recipes to take and no others, for a closer look."""

AT_ONCE = 40
"""Cases that share the cluster, each on nodes of its own."""

STAYS_S = 5.0
"""A pod that is still waiting so long after its donors went does not fit: the scheduler looks again at once."""

KINDS = (
    ("v1", "Node"),
    ("v1", "Pod"),
    ("v1", "Namespace"),
    ("v1", "PersistentVolume"),
    ("v1", "PersistentVolumeClaim"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("resource.k8s.io/v1", "ResourceSlice"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
)


@dataclass
class Answer:
    """What the scheduler and we said of one case, each on the same cluster."""

    case: Case
    node: str
    ours: Diagnosis | None
    with_words: Diagnosis | None
    our_nodes: tuple[str, ...]
    preempted: bool = False
    room: Preemption | None = None
    their_counts: Mapping[str, int | None] | None = None
    our_counts: Mapping[str, int] | None = None
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
            cases = fresh_cases(min(AT_ONCE, ROUNDS - first), here.namespace, seed, first=first, only=ONLY)
            found += _answered(here, cases)
    return found


def _answered(here: Scene, cases: list[Case]) -> list[Answer]:
    try:
        _build(here, cases)
        before = _seen(here) + [here.client.create(case.subject) for case in cases]
        decided = {case.name: _decision(here, case) for case in cases}
        found = [_ask_us(case, decided[case.name], before) for case in cases]
        left = {pod["metadata"]["name"] for pod in here.pods()}
        for answer in found:
            answer.preempted = any(filler["metadata"]["name"] not in left for filler in answer.case.fillers)
        _ask_about_gpus(here, [a for a in found if a.ours is not None and a.ours.cause in GPU_SHORT])
        _ask_without_donors(here, [a for a in found if not a.node and a.case.donors], before)
    finally:
        for each in [each for case in cases for each in case.others]:
            if not each["metadata"].get("namespace"):
                here.client.delete(each["apiVersion"], each["kind"], each["metadata"]["name"])
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
        for other in case.others:
            here.client.create(other)
        for filler in case.fillers:
            here.client.create(filler)
        for name in case.cordoned:
            nodes.cordon(here.client, name)
        for name in case.not_ready:
            annotation = {"metadata": {"annotations": {"sevenhop.dev/testbed": "not-ready"}}}
            here.client.patch("v1", "Node", name, "", annotation)
            here.client.wait_for("v1", "Node", name, until=_is_tainted)
    for case in cases:
        for filler in case.fillers:
            if not filler["spec"].get("nodeName"):
                here.client.wait_for("v1", "Pod", filler["metadata"]["name"], here.namespace, until=_has_node)
        for other in case.others:
            if other["kind"] == "PersistentVolumeClaim" and other["spec"].get("volumeName"):
                here.client.wait_for("v1", other["kind"], other["metadata"]["name"], here.namespace, until=_is_bound)


def _is_up(node: Object) -> bool:
    taints = node["spec"].get("taints") or []
    return nodes.is_ready(node) and not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints)


def _is_tainted(node: Object) -> bool:
    return any(taint["key"] == "node.kubernetes.io/not-ready" for taint in node["spec"].get("taints") or [])


def _has_node(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _is_bound(claim: Object) -> bool:
    return bool(claim["status"].get("phase") == "Bound")


SILENT = ("dra-claim-missing", "other-scheduler")
"""Causes of which the scheduler says nothing: it does not look at such a pod."""


def _decision(here: Scene, case: Case) -> Object:
    """The pod once the scheduler has said its last word: after it made room, if it does."""
    name = case.subject["metadata"]["name"]
    if set(SILENT) & set(case.expected or ()):
        return here.client.get("v1", "Pod", name, here.namespace)
    return here.client.wait_for("v1", "Pod", name, here.namespace, until=_is_decided)


def _is_decided(pod: Object) -> bool:
    if _has_node(pod):
        return True
    if pod["status"].get("nominatedNodeName"):
        return False
    return nodes.condition(pod, "PodScheduled") is not None


def _seen(here: Scene) -> list[Object]:
    """What is there before the pods in question come: we must know by ourselves what becomes of them."""
    return [each for version, kind in KINDS for each in here.client.list(version, kind)]


def _objects(seen: Iterable[Object]) -> Objects:
    objects = synced()
    for each in seen:
        put(objects, each)
    return objects


def _ask_us(case: Case, decided: Object, seen: list[Object]) -> Answer:
    """Each case in the cluster as it was before any subject was placed."""
    placement = Placement(_objects(seen))
    meta = case.subject["metadata"]
    pod = placement.objects.pods()[meta["namespace"], meta["name"]]
    fit = fits(placement, pod)
    node = str(decided["spec"].get("nodeName", ""))
    with_words = None if node else _diagnosed_with_words(placement, pod, decided)
    found = Answer(case, node, why_pending(placement, pod), with_words, fit.nodes)
    if not fit.nodes and not fit.trouble and not fit.held_back:
        evaluation = evaluate(placement, class_of(placement, pod))
        found.room = preempt(placement, pod, evaluation)
        found.our_counts = scheduler_counts(evaluation)
        found.their_counts = _counts(decided)
    return found


def _diagnosed_with_words(placement: Placement, pod: Pod, decided: Object) -> Diagnosis:
    """The same with the scheduler's condition on the pod: our verdict must not contradict it."""
    status = msgspec.convert({"conditions": decided["status"].get("conditions") or []}, PodStatus)
    said = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=status.conditions))
    return why_pending(placement, said)


def _counts(pod: Object) -> Mapping[str, int | None] | None:
    """The scheduler's reasons with their numbers of nodes; None where one reason speaks for all."""
    for each in pod["status"].get("conditions") or ():
        if each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable":
            message = read_scheduler_message(each["message"])
            if message is not None and message.counts and None not in message.counts.values():
                return message.counts
    return None


def _ask_about_gpus(here: Scene, claimed: list[Answer]) -> None:
    """Would the same pod be placed on a GPU node if it wanted no GPU?"""
    copies = {}
    for answer in claimed:
        copy: Object = {**answer.case.subject, "metadata": {**answer.case.subject["metadata"]}}
        copy["metadata"]["name"] += "-without-gpus"
        copy["spec"] = {k: v for k, v in copy["spec"].items() if k != "priorityClassName"}  # it must push out nobody
        selector = {**copy["spec"]["nodeSelector"], "nvidia.com/gpu.present": "true"}
        containers = [{**c, "resources": {"requests": _without_gpus(c)}} for c in copy["spec"]["containers"]]
        copy["spec"] = {**copy["spec"], "nodeSelector": selector, "containers": containers}
        here.client.create(copy)
        copies[answer.case.name] = copy["metadata"]["name"]
    for answer in claimed:
        decided = lambda pod: nodes.condition(pod, "PodScheduled") is not None  # noqa: E731
        name = copies[answer.case.name]
        pod = here.client.wait_for("v1", "Pod", name, here.namespace, until=decided)
        answer.gpu_helps = bool(pod["spec"].get("nodeName"))
        here.client.delete("v1", "Pod", name, here.namespace, grace=0)


def _without_gpus(container: Object) -> Object:
    return {name: amount for name, amount in container["resources"]["requests"].items() if "/" not in name}


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


def _rate(say: Say, what: str, wrong: Sequence[object], total: int) -> float:
    """Says what is wrong, also where it is little enough."""
    for each in wrong:
        say(f"{what}, wrong: {each}")
    right = total - len(wrong)
    rate = right / total if total else 1.0
    say(f"{what}: {right} of {total} ({rate:.1%})")
    return rate


def _told(answer: Answer) -> tuple[Any, ...]:
    return (answer.case.name, answer.case.recipe, answer.node, answer.ours and (answer.ours.cause, answer.ours.summary))


UNASKED = ("gated", "other-scheduler")
"""Recipes whose pods would fit, if anybody tried."""


def test_the_recipes_are_what_they_say(answers: list[Answer]) -> None:
    """Where a case is built to fit, or not to, the scheduler agrees: otherwise the labels would be wrong."""
    wrong = [_told(a) for a in answers if a.case.fits is not None and a.case.fits is not bool(a.node)]
    assert not wrong


def test_fits_and_does_not_fit_as_the_scheduler_says(answers: list[Answer], say: Say) -> None:
    """99 % in each class, and the node that it took is among those that we name."""
    placed = [a for a in answers if a.node and not a.preempted]
    refused = [a for a in answers if (not a.node or a.preempted) and a.case.recipe not in UNASKED]
    assert _rate(say, "fits", [_told(a) for a in placed if a.node not in a.our_nodes], len(placed)) >= 0.99
    assert _rate(say, "does not fit", [_told(a) for a in refused if a.our_nodes], len(refused)) >= 0.99


def test_preemption_is_foretold(answers: list[Answer], say: Say) -> None:
    """99 % of the pods that fit nowhere: whether the scheduler makes room, and that it does so on a node we name."""
    asked = [a for a in answers if a.room is not None]
    wrong = []
    for answer in asked:
        helps = answer.room is not None and answer.room.reason is PreemptionReason.HELPS
        if helps is not bool(answer.node) or (helps and answer.room and answer.node not in answer.room.nodes):
            wrong.append((*_told(answer), answer.room))
    say(f"preempted: {sum(bool(a.node) for a in asked)}")
    assert _rate(say, "preemption", wrong, len(asked)) >= 0.99


def test_reasons_count_the_nodes_as_the_scheduler_does(answers: list[Answer], say: Say) -> None:
    """Reason by reason, on 99 % of the refused pods."""
    asked = [a for a in answers if a.their_counts is not None and not a.node]
    wrong = [(*_told(a), a.their_counts, a.our_counts) for a in asked if a.their_counts != a.our_counts]
    assert _rate(say, "counts", wrong, len(asked)) >= 0.99


def test_the_schedulers_words_do_not_confuse_us(answers: list[Answer], say: Say) -> None:
    """With its condition on the pod we say the same, and doubt it nowhere."""
    asked = [a for a in answers if a.with_words is not None and a.ours is not None and not a.node]
    wrong = [(*_told(a), a.with_words) for a in asked if a.with_words and a.ours and a.with_words.cause != a.ours.cause]
    assert _rate(say, "the same with the scheduler's words", wrong, len(asked)) >= 0.99


def test_a_single_cause_is_named(answers: list[Answer], say: Say) -> None:
    """97 % of the cases built with one thing wrong are given that cause, without reading the scheduler's words."""
    built = [a for a in answers if a.case.expected is not None]
    right = [a for a in built if a.ours is not None and a.ours.cause in (a.case.expected or ())]
    wrong = [_told(a) for a in built if a not in right]
    assert _rate(say, "causes", wrong, len(built)) >= 0.97


def test_no_gpu_shortage_is_claimed_where_there_is_none(answers: list[Answer], say: Say) -> None:
    """Every claim holds in reality: the same pod without its GPUs is placed on a GPU node."""
    claims = [a for a in answers if not a.node and a.ours is not None and a.ours.cause in GPU_SHORT]
    false = [_told(a) for a in claims if not a.gpu_helps]
    say(f"gpu shortage: {len(claims)} claims, {len(false)} false")
    assert claims
    assert not false


def test_what_if_comes_true(answers: list[Answer], say: Say) -> None:
    """Donors were really deleted: 99 % of what was foretold happened, on one of the nodes that were named."""
    asked = [a for a in answers if a.our_after is not None]
    wrong = []
    for answer in asked:
        ours_fits, ours_nodes = answer.our_after or (False, ())
        if ours_fits is not bool(answer.after_node) or (ours_fits and answer.after_node not in ours_nodes):
            wrong.append((*_told(answer), answer.our_after, answer.after_node))
    fitting = sum(bool(a.after_node) for a in asked)
    say(f"what-if: of {len(asked)} {fitting} fit afterwards")
    assert _rate(say, "what-if", wrong, len(asked)) >= 0.99
