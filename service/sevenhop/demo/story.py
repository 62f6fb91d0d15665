"""
The stories as data: what happens to a world, when, and what the narrator says of it.

The actions are what anybody could do with kubectl, so the same story can be played on a real control plane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sevenhop.demo import world
from sevenhop.demo.manifests import GPU

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


Action = Patch | KillPods


class Step(NamedTuple):
    """
    Attributes:
        at: After the beginning.
        says: What the narrator tells; it is told before the consequences.
        actions: What happens to the cluster.
    """

    at: timedelta
    says: str
    actions: tuple[Action, ...] = ()


class Story(NamedTuple):
    """
    Attributes:
        summary: For the help text.
        about: What the reader is about to see.
        world: What exists before it.
        subject: (namespace, workload, component) that it is about.
        rule: Of the alert that it leads to.
        steps: In order of time.
        ends: After the beginning.
        moral: What the reader has seen, at the end.
    """

    name: str
    summary: str
    about: str
    world: Callable[[], world.World]
    subject: tuple[str, str, str]
    rule: str
    steps: tuple[Step, ...]
    ends: timedelta
    moral: str


def _after(minutes: int, seconds: int = 0) -> timedelta:
    return timedelta(minutes=minutes, seconds=seconds)


_DECODE = {"nvidia.com/dynamo-graph-deployment-name": "llama-70b", "nvidia.com/dynamo-component": "decode"}


def _spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


def _gpus(node: str, allocatable: int) -> Patch:
    """A GPU off the bus is gone for the driver too, so the device plugin reports neither capacity nor allocatable."""
    amount = {GPU: str(allocatable)}
    return Patch("Node", "", node, {"status": {"allocatable": amount, "capacity": amount}}, "status")


def _summarizer(most: int) -> tuple[Action, ...]:
    """Its InferenceService, and what KServe and the HorizontalPodAutoscaler make of that."""
    return (
        Patch(
            "InferenceService.serving.kserve.io", "docs", "summarizer", {"spec": {"predictor": {"maxReplicas": most}}}
        ),
        Patch("HorizontalPodAutoscaler.autoscaling", "docs", "summarizer-predictor", {"spec": {"maxReplicas": most}}),
        Patch("Deployment.apps", "docs", "summarizer-predictor", {"spec": {"replicas": most}}),
    )


SHORTAGE = Story(
    name="shortage",
    summary="a decode worker is lost, and its replacement fits nowhere",
    about="One of the four decode workers of llama-70b is about to lose its GPU.",
    world=world.crowded,
    subject=("chat", "llama-70b", "decode"),
    rule="component-short-of-gpus",
    steps=(
        Step(
            _after(0, 30),
            "gpu-05 loses a GPU: it offers 7 of 8 from now on. The decode worker that ran on it dies.",
            (_gpus("gpu-05", 7), KillPods("chat", _DECODE, "gpu-05")),
        ),
        Step(
            _after(3, 20),
            "Somebody deletes the Pending pod, hoping that helps. Its controller makes another, under a new name.",
            (KillPods("chat", _DECODE),),
        ),
        Step(
            _after(4, 0),
            "The engineer on call follows the message and lowers summarizer (batch) from 4 replicas to 3.",
            _summarizer(3),
        ),
        Step(
            _after(5, 10),
            "gpu-05 is repaired and offers 8 GPUs again: summarizer gets its fourth replica back.",
            (_gpus("gpu-05", 8), *_summarizer(4)),
        ),
    ),
    ends=_after(6, 15),
    moral="GPUs were free, but no two on one node: the message said so, and who could give.",
)

SURGE = Story(
    name="surge",
    summary="a rollout waits for the GPUs of its own old pods",
    about="coder is about to get a new version, on a cluster without room for one pod more.",
    world=world.full_rollout,
    subject=("dev", "coder", "engine"),
    rule="rollout-surge-blocked",
    steps=(
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
    moral="It looked like a shortage of GPUs and was none: nobody was asked to give any.",
)

STORIES: dict[str, Story] = {story.name: story for story in (SHORTAGE, SURGE)}
