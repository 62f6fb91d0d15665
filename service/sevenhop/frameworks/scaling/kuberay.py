"""
KubeRay: a worker group of the live RayCluster, and the same fields of the RayService above it.

The operator leaves a live cluster alone where only replicas, minReplicas, maxReplicas and workersToDelete of the
RayService change (ray-operator/controllers/ray/rayservice_controller.go): the live cluster is what is scaled, and the
RayService what the next cluster will be made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from sevenhop.core.inventory.workloads import Component, Framework, Workload
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Edit, ObjectRef, Test
from sevenhop.core.remediation.reduction import Chooser, Conflict, ConflictReason, Ruler, ScalingSpec, View
from sevenhop.frameworks.kuberay import CLUSTER, JOB, SERVICE
from sevenhop.frameworks.reading import flag, number, spec_of, status_of, table, text, words
from sevenhop.frameworks.scaling.choosers import makers_of
from sevenhop.frameworks.scaling.proven import look, made_by_another
from sevenhop.frameworks.scaling.row import row
from sevenhop.frameworks.scaling.way import Also, Change, Way, called, pointer, ref_of

VERSIONS = ("v1",)

_REPLICA = "ray.io/worker-group-replica-name"
_DRAIN = "Serve's replicas on the workers that go end at once; lower num_replicas in serveConfigV2 first to drain them"


def find(view: View, workload: Workload, component: Component, pods: Sequence[Pod]) -> Way | Conflict:
    kind, key = workload.roots[0]
    if kind == JOB:
        return Conflict(ConflictReason.INDIVISIBLE, f"RayJob {key[1]} can only be suspended as a whole")
    if component.role == "head":
        return Conflict(
            ConflictReason.INDIVISIBLE, f"{component.name} is the head of its cluster: without it all is gone"
        )
    root = look(view, kind, *key, VERSIONS)
    if isinstance(root, Conflict):
        return root
    cluster = _live(view, root) if kind == SERVICE else root
    if isinstance(cluster, Conflict):
        return cluster
    other = made_by_another(CLUSTER, cluster) if kind == CLUSTER else None
    if other is not None:
        return other
    return _in_group(root, kind, cluster, component, pods)


def _live(view: View, service: Object) -> Object | Conflict:
    name = text(status_of(service), "activeServiceStatus", "rayClusterName")
    if not name:
        return Conflict(
            ConflictReason.UNKNOWN, f"{called(ref_of(SERVICE, service))} does not say which of its clusters is live"
        )
    return look(view, CLUSTER, service.metadata.namespace, name, VERSIONS)


def _in_group(root: Object, kind: str, cluster: Object, component: Component, pods: Sequence[Pod]) -> Way | Conflict:
    target = ref_of(CLUSTER, cluster)
    found = _group(spec_of(cluster), component.name)
    if found is None:
        return Conflict(ConflictReason.NO_TARGET, f"{called(target)} has no group {component.name}")
    at, group = found
    if flag(spec_of(cluster), "suspend") or flag(group, "suspend"):
        return Conflict(ConflictReason.NO_TARGET, f"{called(target)} is suspended, or its group {component.name} is")
    manager = text(spec_of(cluster), "managedBy") or text(spec_of(root), "managedBy")
    if manager and manager != "ray.io/kuberay-operator":
        return Conflict(ConflictReason.QUEUED, f"{called(target)} is managed by {manager}, from another cluster")
    hosts = max(1, number(group, "numOfHosts") or 1)
    if hosts > 1 and any(_REPLICA not in pod.metadata.labels for pod in pods):
        return Conflict(
            ConflictReason.INDIVISIBLE,
            f"a replica of {component.name} is {hosts} pods, and nothing on the pods says which belong together",
        )
    least = number(group, "minReplicas") or 0
    replicas = _clamped(group)
    autoscaled = flag(spec_of(cluster), "enableInTreeAutoscaling")

    def change(after: int, victims: Sequence[Pod]) -> Change | Conflict:
        names = tuple(pod.metadata.name for pod in victims)
        wrong = _wrong_victims(target, component, replicas - after, hosts, victims) if names else None
        if wrong is not None:
            return wrong
        field = ("spec", "workerGroupSpecs", at)
        edits = _counts(field, group, after, cap=autoscaled)
        if not edits:
            return Change(())
        edits = (*edits, *_orders(field, group, names)) if names else edits
        also = _durable(root, component.name, after, cap=autoscaled) if kind == SERVICE else ()
        return Change(edits, (_named(field, component.name),), also)

    notes = []
    if kind == SERVICE:
        notes.append(_DRAIN)
    if autoscaled:
        notes.append("its autoscaler is kept from going back up by maxReplicas")
    return Way(
        ruler=Ruler(
            target=target,
            replicas=replicas,
            floor=least if least < replicas else 0,
            unit_pods=hosts,
            # Without the autoscaler too the operator first removes whom the patch names, and picks at random only what
            # is still too many (raycluster_controller.go, reconcilePods).
            chooser=Chooser.NAMED,
            makers=makers_of(pods) or ((CLUSTER, cluster.key),),
            notes=tuple(notes),
        ),
        marked=ref_of(kind, root),
        change=change,
    )


def _group(spec: dict[str, Any], name: str) -> tuple[int, dict[str, Any]] | None:
    listed = spec.get("workerGroupSpecs")
    for at, group in enumerate(listed if isinstance(listed, list) else []):
        if text(group, "groupName") == name:
            return at, group
    return None


def _clamped(group: dict[str, Any]) -> int:
    """As the operator reads it: within least and most, the least where nothing is stated."""
    least, most, stated = number(group, "minReplicas") or 0, number(group, "maxReplicas"), number(group, "replicas")
    wanted = max(least, least if stated is None else stated)
    return wanted if most is None else min(wanted, most)


def _counts(field: Sequence[str | int], group: dict[str, Any], after: int, *, cap: bool) -> tuple[Edit, ...]:
    """
    Replicas, and the limits that stand against them.

    Args:
        cap: Also what an autoscaler could go back up to.
    """
    replicas, least, most = (number(group, name) for name in ("replicas", "minReplicas", "maxReplicas"))
    edits = []
    if _clamped(group) != after:
        edits.append(Edit(pointer(*field, "replicas"), replicas, after))
        if (least or 0) > after:
            edits.append(Edit(pointer(*field, "minReplicas"), least, after))
        if most is not None and (most < after or (cap and most > after)):
            edits.append(Edit(pointer(*field, "maxReplicas"), most, after))
    return tuple(edits)


def _orders(field: Sequence[str | int], group: dict[str, Any], names: Sequence[str]) -> tuple[Edit, ...]:
    """`workersToDelete` becomes exactly these: what was left in it from an earlier order goes."""
    before = words(group, "scaleStrategy", "workersToDelete")
    longest = zip_longest(before, names)
    where = pointer(*field, "scaleStrategy", "workersToDelete")
    return tuple(Edit(f"{where}/{at}", was, name) for at, (was, name) in enumerate(longest) if was != name)


def _named(field: Sequence[str | int], name: str) -> Test:
    return Test(pointer(*field, "groupName"), name)


def _durable(service: Object, name: str, after: int, *, cap: bool) -> tuple[Also, ...]:
    config = table(spec_of(service), "rayClusterConfig")
    found = _group(config, name)
    if found is None or _clamped(found[1]) <= after:
        return ()
    field = ("spec", "rayClusterConfig", "workerGroupSpecs", found[0])
    edits = _counts(field, found[1], after, cap=cap)
    return ((ref_of(SERVICE, service), edits, (_named(field, name),)),) if edits else ()


def _wrong_victims(
    target: ObjectRef, component: Component, fewer: int, hosts: int, victims: Sequence[Pod]
) -> Conflict | None:
    """Whom the patch names must be exactly what goes, in whole replicas: the operator would pick the rest itself."""
    if len(victims) != fewer * hosts:
        text_ = f"{called(target)}: {len(victims)} pods named, and {fewer} × {hosts} go"
        return Conflict(ConflictReason.INDIVISIBLE, text_)
    if hosts > 1 and len({pod.metadata.labels.get(_REPLICA) for pod in victims}) != fewer:
        text_ = f"{called(target)}: the named pods are not whole replicas of {component.name}"
        return Conflict(ConflictReason.INDIVISIBLE, text_)
    return None


KUBERAY: ScalingSpec = row(
    Framework.KUBERAY,
    "`replicas` (with `minReplicas`, and with `maxReplicas` where Ray's autoscaler runs) of a worker group of the live "
    "RayCluster, and `workersToDelete` in the same patch; then the same counts in the RayService. A RayJob, or a head, "
    "is refused.",
    ((CLUSTER, ""), (SERVICE, "")),
    find,
    (SERVICE, CLUSTER),
)
