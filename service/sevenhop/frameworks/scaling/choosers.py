"""Who chooses the pods that go, by who made them."""

from __future__ import annotations

from collections.abc import Sequence

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.kinds import kind_of
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.reduction import Chooser

_BY_MAKER = {
    "ReplicaSet.apps": Chooser.REPLICA_SET,
    # The highest ordinal; of a LeaderWorkerSet, whose leaders are one StatefulSet, the highest group.
    "StatefulSet.apps": Chooser.HIGHEST,
    "RayCluster.ray.io": Chooser.NAMED,
    # Grove ranks them by rules of its own, which we did not see run.
    "PodClique.grove.io": Chooser.ANY,
}


def chooser_of(pods: Sequence[Pod]) -> Chooser:
    """`ANY` where nobody, somebody unknown, or more than one kind of controller made them."""
    kinds = {kind for kind, _ in makers_of(pods)}
    return _BY_MAKER.get(kinds.pop(), Chooser.ANY) if len(kinds) == 1 else Chooser.ANY


def makers_of(pods: Sequence[Pod]) -> tuple[tuple[str, Key], ...]:
    """(kind, key) of the controllers that own these pods, in order."""
    found = set()
    for pod in pods:
        owner = pod.metadata.controller()
        if owner is not None:
            row = kind_of(owner.api_version, owner.kind)
            found.add((row.name if row else owner.kind, (pod.metadata.namespace, owner.name)))
    return tuple(sorted(found))
