"""
The demo's clusters as data: what exists before the story begins, in an order that every scheduler places alike.

Nodes join one after the other, and a node's workloads are scaled up before the next one joins: with each node full (or
with less free than anything that follows needs), there is only one place for every pod.  So the same world stands on
the simulated cluster and on a real control plane.
"""

from __future__ import annotations

from typing import NamedTuple

from sevenhop.demo.manifests import Item, cpu_node, gpu_node, namespace
from sevenhop.demo.workloads import OWNER, TIER, Part, budget, dynamo, kserve, notebook, plain


class Round(NamedTuple):
    """
    One step of building a world: create the items, scale, then wait until every pod is Ready.

    Attributes:
        replicas: (namespace, Deployment) to its replicas from here on.
    """

    items: tuple[Item, ...]
    replicas: dict[tuple[str, str], int]


class World(NamedTuple):
    cluster: str
    rounds: tuple[Round, ...]


_LLAMA = ("chat", "llama-70b-decode"), ("chat", "llama-70b-prefill"), ("chat", "llama-70b-frontend")
_SUMMARIZER = ("docs", "summarizer-predictor")
_RANKER, _EMBED = ("search", "ranker"), ("search", "embed")


def crowded() -> World:
    """
    prod-eu: 6 nodes, 4 of them with 8 H100s: 30 of 32 in use, and no two of the free ones on one node.

    After gpu-05 has lost a GPU and the decode worker on it: gpu-07 is full, each of the other three has one free.
    """
    return _crowded(has_tiers=True)


def unranked() -> World:
    """The same, and nobody has said what any workload is worth."""
    return _crowded(has_tiers=False)


def _crowded(*, has_tiers: bool) -> World:
    def of(owner: str, tier: str) -> dict[str, str]:
        return {TIER: tier, OWNER: owner} if has_tiers else {OWNER: owner}

    decode, prefill, frontend = _LLAMA
    models = [
        *(namespace(name) for name in ("chat", "docs", "search", "research")),
        *dynamo(
            "llama-70b",
            "chat",
            "meta-llama/Llama-3.3-70B-Instruct",
            "6f6073b",
            (
                Part("frontend", 1, 0, selector={"node-pool": "cpu"}),
                Part("prefill", 2, 2, least=2),
                Part("decode", 4, 2, least=4),
            ),
            of("@llm-serving", "critical"),
        ),
        *kserve(
            "summarizer",
            "docs",
            "hf://Qwen/Qwen2.5-32B-Instruct",
            gpus=2,
            least=2,
            most=4,
            annotations=of("@docs", "batch"),
        ),
        *plain("ranker", "search", "BAAI/bge-reranker-v2-gemma", gpus=2, annotations=of("@search", "critical")),
        *plain("embed", "search", "intfloat/e5-mistral-7b-instruct", gpus=1, annotations=of("@search", "standard")),
        budget("embed", "search", 3),
    ]
    return World(
        "prod-eu",
        (
            Round((cpu_node("cpu-01"), cpu_node("cpu-02"), *models), {frontend: 1}),
            Round((gpu_node("gpu-07"),), {_SUMMARIZER: 2, decode: 1, prefill: 1}),
            Round((gpu_node("gpu-05"),), {decode: 2, prefill: 2, _RANKER: 1, _EMBED: 2}),
            Round((gpu_node("gpu-02"),), {_SUMMARIZER: 3, decode: 3, _RANKER: 2, _EMBED: 3}),
            Round(
                (gpu_node("gpu-06"), notebook("notebook-7", "research", "gpu-06")),
                {_SUMMARIZER: 4, decode: 4, _RANKER: 3},
            ),
        ),
    )


def full_rollout() -> World:
    """prod-eu with two models that fill three nodes: a rollout has no room for one pod more."""
    coder = ("dev", "coder")
    models = [
        *(namespace(name) for name in ("dev", "docs")),
        *plain(
            "coder",
            "dev",
            "deepseek-ai/DeepSeek-V3",
            gpus=8,
            annotations={TIER: "critical", OWNER: "@dev-tools"},
        ),
        *kserve(
            "summarizer",
            "docs",
            "hf://Qwen/Qwen2.5-32B-Instruct",
            gpus=2,
            least=2,
            most=4,
            annotations={TIER: "batch", OWNER: "@docs"},
        ),
    ]
    return World(
        "prod-eu",
        (
            Round((cpu_node("cpu-01"), gpu_node("gpu-11"), *models), {coder: 1}),
            Round((gpu_node("gpu-12"),), {coder: 2}),
            Round((gpu_node("gpu-13"),), {_SUMMARIZER: 4}),
        ),
    )
