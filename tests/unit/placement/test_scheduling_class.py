"""What makes two pods one scheduling class."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.evaluation import class_of
from tests.placement_builders import node, pod, the_pod, world

_SPREAD: dict[str, Any] = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
    ]
}
_AFFINITY: dict[str, Any] = {
    "affinity": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
            ]
        }
    }
}


@pytest.mark.parametrize(
    ("spec", "is_one_class"),
    [
        pytest.param({}, True, id="nothing that looks at other pods"),
        pytest.param(_SPREAD, False, id="spread counts in its own namespace"),
        pytest.param(_AFFINITY, False, id="affinity looks in its own namespace"),
    ],
)
def test_namespaces_part_classes_only_where_they_matter(spec: dict[str, Any], is_one_class: bool) -> None:
    """The queue of fifty teams is worked out once, unless their pods look at those of their own namespace."""
    objects = world(node("n1"), pod("a", namespace="one", gpus=1, **spec), pod("a", namespace="two", gpus=1, **spec))
    cluster = Cluster(objects)
    one, two = (class_of(cluster, the_pod(objects, "a", namespace)) for namespace in ("one", "two"))
    assert (one == two) is is_one_class
