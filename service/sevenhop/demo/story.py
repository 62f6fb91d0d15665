"""
The stories as data: what happens to a world, when, and what the narrator says of it.

The actions are what anybody could do with kubectl, so the same story can be played on a real control plane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sevenhop.demo import world
from sevenhop.demo.manifests import GPU, Item
from sevenhop.demo.workloads import TIER, notebook

BEGINS = datetime(2026, 11, 30, 2, 59, 30, tzinfo=UTC)
"""When the demo begins to watch: a night like others."""


class Patch(NamedTuple):
    """A JSON merge patch (RFC 7386); `subresource` is ``status`` or empty."""

    kind: str
    namespace: str
    name: str
    patch: Mapping[str, Any]
    subresource: str = ""


class KillPods(NamedTuple):
    """
    Delete pods at once, without a grace period.

    Attributes:
        node: Only those on this node; empty for those that have none yet.
    """

    namespace: str
    labels: Mapping[str, str]
    node: str = ""


class Create(NamedTuple):
    """Make an object that nobody else makes."""

    item: Item


Action = Patch | KillPods | Create


class Step(NamedTuple):
    """
    Attributes:
        at: After the beginning; for what follows a decision, after that.
        says: What the narrator tells; it is told before the consequences.
        actions: What happens to the cluster.
    """

    at: timedelta
    says: str
    actions: tuple[Action, ...] = ()


class Decision(NamedTuple):
    """
    What may happen around the question whether a plan may be carried out.

    Attributes:
        overtaken: What somebody does to the donor while the reader still looks at the plan.
        repaired: What gives the capacity back, so long after the decision has had its effect.
    """

    overtaken: Step
    repaired: Step


class Story(NamedTuple):
    """
    Attributes:
        summary: For the help text.
        about: What the reader is about to see.
        world: What exists before it.
        subject: (namespace, workload, component) that it is about.
        rule: Of the alert that it leads to.
        opening: What leads to the message, in order of time.
        told: After the beginning; by then the message stands there.
        then: What follows by itself, in order of time.
        decision: What follows if people are asked; None where there is nothing to ask them.
        ends: After the beginning, where there is no decision.
        moral: What the reader has seen, at the end; a decision has its own.
    """

    name: str
    summary: str
    about: str
    world: Callable[[], world.World]
    subject: tuple[str, str, str]
    rule: str
    opening: tuple[Step, ...]
    told: timedelta
    then: tuple[Step, ...] = ()
    decision: Decision | None = None
    ends: timedelta = timedelta(0)
    moral: str = ""


def _after(minutes: int, seconds: int = 0) -> timedelta:
    return timedelta(minutes=minutes, seconds=seconds)


_DECODE = {"nvidia.com/dynamo-graph-deployment-name": "llama-70b", "nvidia.com/dynamo-component": "decode"}


def _gpus(node: str, allocatable: int) -> Patch:
    """A GPU off the bus is gone for the driver too, so the device plugin reports neither capacity nor allocatable."""
    amount = {GPU: str(allocatable)}
    return Patch("Node", "", node, {"status": {"allocatable": amount, "capacity": amount}}, "status")


_LOSS = Step(
    _after(0, 30),
    "gpu-05 loses a GPU: it offers 7 of 8 from now on. The decode worker that ran on it dies.",
    (_gpus("gpu-05", 7), KillPods("chat", _DECODE, "gpu-05")),
)
_ISVC = "InferenceService.serving.kserve.io"

SHORTAGE = Story(
    name="shortage",
    summary="a decode worker is lost, its replacement fits nowhere, and a plan waits for your yes",
    about="One of the four decode workers of llama-70b is about to lose its GPU.",
    world=world.crowded,
    subject=("chat", "llama-70b", "decode"),
    rule="component-short-of-gpus",
    opening=(
        Step(
            _after(0, 20),
            "Kim starts notebook-8. It wants 2 GPUs of gpu-06 and no other node, so it waits.",
            (Create(notebook("notebook-8", "research", "gpu-06", gpus=2)),),
        ),
        _LOSS,
    ),
    told=_after(2, 40),
    decision=Decision(
        overtaken=Step(
            _after(0, 0),
            "Kim wants to help and lowers summarizer from 4 to 3 by hand. Its controller picks the pod on gpu-06, and "
            "notebook-8, which has waited longer, takes the place: the decode worker still waits.",
            (Patch(_ISVC, "docs", "summarizer", {"spec": {"predictor": {"maxReplicas": 3}}}),),
        ),
        repaired=Step(
            _after(12, 0),
            "gpu-05 is repaired and offers 8 GPUs again.",
            (_gpus("gpu-05", 8),),
        ),
    ),
)

SURGE = Story(
    name="surge",
    summary="a rollout waits for the GPUs of its own old pods; nobody is asked to give any",
    about="coder is about to get a new version, on a cluster without room for one pod more.",
    world=world.full_rollout,
    subject=("dev", "coder", "engine"),
    rule="rollout-surge-blocked",
    opening=(
        Step(
            _after(0, 30),
            "A new image for coder is rolled out, with the default strategy: first one pod more, then one less.",
            (
                Patch(
                    "Deployment.apps",
                    "dev",
                    "coder",
                    {"spec": {"template": {"metadata": {"annotations": {"release": "2"}}}}},
                ),
            ),
        ),
    ),
    told=_after(6, 0),
    then=(
        Step(
            _after(6, 30),
            "The engineer on call does what the message says: maxSurge 0, maxUnavailable 1.",
            (
                Patch(
                    "Deployment.apps",
                    "dev",
                    "coder",
                    {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}},
                ),
            ),
        ),
    ),
    ends=_after(8, 45),
    moral="It looked like a shortage of GPUs and was none: no plan was made, and nobody was asked to give any.",
)

NO_DONOR = Story(
    name="no-donor",
    summary="nobody has said who is worth more: no plan, and the words that say what to set",
    about="The same cluster and the same loss, but no workload says what it is worth to its owner.",
    world=world.unranked,
    subject=("chat", "llama-70b", "decode"),
    rule="component-short-of-gpus",
    opening=(_LOSS,),
    told=_after(2, 40),
    then=(
        Step(
            _after(3, 0),
            "The owner of summarizer does what the message says: "
            "kubectl -n docs annotate inferenceservice summarizer sevenhop.dev/tier=batch",
            (Patch(_ISVC, "docs", "summarizer", {"metadata": {"annotations": {TIER: "batch"}}}),),
        ),
    ),
    ends=_after(3, 40),
    moral="Without tiers nobody is asked to give. One annotation by an owner, and there is a plan to decide about.",
)

STORIES: dict[str, Story] = {story.name: story for story in (SHORTAGE, SURGE, NO_DONOR)}
