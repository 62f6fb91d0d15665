"""GPUs that a node has under another name, and GPUs that another scheduler counts."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.hops.diagnosis import Confidence, Diagnosis
from sevenhop.core.hops.scheduling import why_pending
from sevenhop.core.placement.cluster import Cluster
from tests.placement_builders import GPU, node, pod, the_pod, world

LABELS = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "2"}


def diagnosis(waiting: dict[str, Any], *others: dict[str, Any]) -> Diagnosis:
    objects = world(waiting, *others)
    return why_pending(Cluster(objects), the_pod(objects, waiting["metadata"]["name"]))


def offering(**amounts: str) -> dict[str, Any]:
    """A node whose labels promise two GPUs."""
    made = node("a", labels=LABELS)
    for side in ("allocatable", "capacity"):
        made["status"][side].update({f"nvidia.com/{name}": amount for name, amount in amounts.items()})
    return made


@pytest.mark.parametrize(
    ("has", "cause"),
    [
        pytest.param({"gpu.shared": "8", "gpu": "0"}, "extended-resource-unknown", id="shared and renamed"),
        pytest.param({"mig-1g.5gb": "7", "gpu": "0"}, "extended-resource-unknown", id="all cut into slices"),
        pytest.param({"mig-1g.5gb": "7"}, "extended-resource-unknown", id="cut, and never advertised whole"),
        pytest.param({"gpu": "0"}, "device-plugin-not-advertising", id="nothing at all"),
        pytest.param({"gpu.shared": "0", "gpu": "0"}, "device-plugin-not-advertising", id="neither name"),
    ],
)
def test_a_device_plugin_that_offers_another_name_works(has: dict[str, str], cause: str) -> None:
    """The labels' promise is kept under the other name: the pod asks for the wrong one."""
    renamed = offering(**has)

    assert diagnosis(pod("p", gpus=1), renamed).cause == cause


TEXT = "0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu."


@pytest.mark.parametrize(
    ("asks", "held", "cause"),
    [
        pytest.param(16, 0, "gpu-never-fits", id="larger than any node"),
        pytest.param(8, 6, "gpu-shortage", id="too few"),
        pytest.param(4, 6, "gpu-fragmentation", id="enough, and nowhere together"),
    ],
)
def test_what_another_scheduler_is_short_of(asks: int, held: int, cause: str) -> None:
    """Its text says only that GPUs are short; where nodes are visible they are counted."""
    others = [node("a", gpus=8), node("b", gpus=8)]
    others += [pod(f"on-{on}", on=on, gpus=held) for on in ("a", "b") if held]
    found = diagnosis(pod("p", gpus=asks, schedulerName="volcano", message=TEXT), *others)

    assert (found.cause, found.confidence) == (cause, Confidence.LIKELY)
    assert found.evidence[0].text == TEXT
    assert any("volcano" in each for each in found.unmodelled)


def test_what_another_scheduler_says_stands_where_we_see_room() -> None:
    """We find room and it does not: it knows of something that is not modelled here."""
    found = diagnosis(pod("p", gpus=4, schedulerName="volcano", message=TEXT), node("a", gpus=8), node("b", gpus=8))

    assert found.confidence is not Confidence.CERTAIN
    assert GPU in str(found.evidence)


def test_a_renamed_node_beside_a_full_one() -> None:
    """Who asks for whole GPUs waits for the node that has some; the one that shares its own is no suspect."""
    full = [node("b", gpus=2), pod("on-b", on="b", gpus=2)]

    assert diagnosis(pod("p", gpus=1), offering(**{"gpu.shared": "8", "gpu": "0"}), *full).cause == "gpu-shortage"
