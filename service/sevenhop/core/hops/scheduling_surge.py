"""A rollout that waits for itself: its new pod needs what its own old pods hold, for good or until they have ended."""

from __future__ import annotations

from typing import Any

import msgspec

from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.base import Custom
from sevenhop.core.objects.cluster import Controller
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.evaluation import class_of, masks_of
from sevenhop.core.words import by_name

_REVISION = "deployment.kubernetes.io/revision"
_REPLICA_SETS = "ReplicaSet.apps"


class Surge(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        deployment: Whose rollout.
        max_surge: As written, ``25%`` where nothing is.
        old_pods: Pods of its older ReplicaSets that hold a node.
        nodes: Where the pod would run without them.
        is_ending: All of them have been told to end: nothing is blocked, it only takes its time.
        service: A RayService instead of a Deployment: a whole second cluster is made before the first one goes.
    """

    deployment: Key
    max_surge: str
    old_pods: tuple[Key, ...]
    nodes: tuple[str, ...]
    is_ending: bool = False
    service: bool = False


def blocked_surge(cluster: Cluster, pod: Pod) -> Surge | None:
    """The rollout that this pod is the surge of, if it would fit without the pods that it is to replace."""
    objects = cluster.objects
    own = _owner(objects, pod.metadata.owner_references)
    if own is None:
        return _blocked_upgrade(cluster, pod)
    owner = own.metadata.controller()
    found = objects.by_uid(owner.uid) if owner is not None else None
    if owner is None or owner.kind != "Deployment" or found is None or not isinstance(found[1], Controller):
        return None
    deployment = found[1]
    surge = _max_surge(deployment.spec.strategy)
    # Without a surge an old pod leaves first; until it has ended it holds what the new one needs, and nobody is short.
    is_surging = surge not in ("", "0", "0%")
    old: list[Key] = []
    is_ending = True
    for kind, sibling in objects.children(owner.uid):
        if kind == _REPLICA_SETS and sibling.metadata.uid != own.metadata.uid and _is_older(sibling, own):
            for child_kind, child in objects.children(sibling.metadata.uid):
                if child_kind != "Pod" or not isinstance(child, Pod) or cluster.where(child.metadata.key) is None:
                    continue
                if is_surging or child.is_terminating:
                    old.append(child.metadata.key)
                    is_ending = is_ending and child.is_terminating
    if not old:
        return None
    old.sort(key=by_name)
    nodes = _nodes_without(cluster, pod, old)
    return Surge(deployment.metadata.key, surge, tuple(old), nodes, is_ending) if nodes else None


def _blocked_upgrade(cluster: Cluster, pod: Pod) -> Surge | None:
    """The same of a RayService: its pending cluster needs what its active one holds until the new one serves."""
    objects = cluster.objects
    reference = pod.metadata.controller()
    own = objects.by_uid(reference.uid) if reference is not None and reference.kind == "RayCluster" else None
    above = own[1].metadata.controller() if own is not None else None
    root = objects.by_uid(above.uid) if above is not None and above.kind == "RayService" else None
    if own is None or above is None or root is None or not isinstance(root[1], Custom):
        return None
    active = (root[1].status.get("activeServiceStatus") or {}).get("rayClusterName")
    if not active or active == own[1].metadata.name:
        return None
    before = [each for _, each in objects.children(above.uid) if each.metadata.name == active]
    old = [
        child.metadata.key
        for each in before
        for _, child in objects.children(each.metadata.uid)
        if isinstance(child, Pod) and cluster.where(child.metadata.key) is not None
    ]
    old.sort(key=by_name)
    nodes = _nodes_without(cluster, pod, old) if old else ()
    if not nodes:
        return None
    is_ending = all(objects.pods()[key].is_terminating for key in old)
    return Surge(root[1].metadata.key, "", tuple(old), nodes, is_ending, service=True)


def _nodes_without(cluster: Cluster, pod: Pod, old: list[Key]) -> tuple[str, ...]:
    """Where the pod would fit on the nodes of the old pods if these were gone."""
    names = dict.fromkeys(name for key in old if (name := cluster.where(key)) is not None)
    views = [cluster.views[name] for name in names]
    with cluster.hushed(), cluster.removed(old):
        masks = masks_of(cluster, class_of(cluster, pod), views)
    return tuple(view.name for view, mask in zip(views, masks, strict=True) if not mask)


def _owner(objects: Objects, references: Any) -> Controller | None:
    for reference in references:
        if reference.controller and reference.kind == "ReplicaSet":
            found = objects.by_uid(reference.uid)
            if found is not None and isinstance(found[1], Controller):
                return found[1]
    return None


def _max_surge(strategy: dict[str, Any] | None) -> str:
    """Empty for a strategy that never surges."""
    if strategy is None:
        return "25%"
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return ""
    return str((strategy.get("rollingUpdate") or {}).get("maxSurge", "25%"))


def _is_older(other: Any, own: Controller) -> bool:
    left, right = (o.metadata.annotations.get(_REVISION, "") for o in (other, own))
    if left.isdecimal() and right.isdecimal():
        return int(left) < int(right)
    if other.metadata.creation_timestamp is None or own.metadata.creation_timestamp is None:
        return False
    return bool(other.metadata.creation_timestamp < own.metadata.creation_timestamp)
