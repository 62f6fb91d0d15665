"""The controllers and kubelets of the simulated cluster, as far as the demo and the fault tests need them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sevenhop.simulation.store import Data, Store

DEPLOYMENT, REPLICA_SET, POD, NODE = "Deployment.apps", "ReplicaSet.apps", "Pod", "Node"

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""The victim of a scale-down can be chosen with it (KEP-2255)."""

Clock = Callable[[], datetime]


class Deployments:
    """Deployment → ReplicaSet, with rolling updates."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def step(self) -> datetime | None:
        for deployment in self._store.all(DEPLOYMENT):
            if not deployment["metadata"].get("deletionTimestamp"):
                self._reconcile(deployment)
        return None

    def _reconcile(self, deployment: Data) -> None:
        spec, meta = deployment["spec"], deployment["metadata"]
        desired = int(spec.get("replicas", 1))
        digest = _digest(spec["template"])
        owned = [rs for rs in self._store.all(REPLICA_SET, meta["namespace"]) if _is_owned(rs, deployment)]
        new = next((rs for rs in owned if rs["metadata"]["labels"].get("pod-template-hash") == digest), None)
        old = [rs for rs in owned if rs is not new]
        old_total = sum(rs["spec"]["replicas"] for rs in old)
        surge, unavailable = _rollout_limits(spec, desired)
        if new is None:
            room = desired if not old_total else max(0, desired + surge - old_total)
            self._create(deployment, digest, min(desired, room))
            return
        wanted = new["spec"]["replicas"]
        if wanted < desired:
            wanted = min(desired, max(wanted, desired + surge - old_total))
        else:
            wanted = desired
        self._scale(new, wanted)
        if old_total:
            # Replicas that were told to leave count no longer, although their ReplicaSet has yet to say so.
            ready = sum(
                min(rs["spec"]["replicas"], int((rs.get("status") or {}).get("readyReplicas", 0))) for rs in owned
            )
            may_leave = ready - (desired - unavailable)
            for rs in sorted(old, key=lambda rs: str(rs["metadata"]["creationTimestamp"])):
                # Replicas that never became ready serve nobody: they leave first.
                idle = rs["spec"]["replicas"] - int((rs.get("status") or {}).get("readyReplicas", 0))
                leaves = min(rs["spec"]["replicas"], max(0, idle) + max(0, may_leave))
                may_leave -= max(0, leaves - max(0, idle))
                self._scale(rs, rs["spec"]["replicas"] - leaves)
        self._report(deployment, desired, new, owned)

    def _create(self, deployment: Data, digest: str, replicas: int) -> None:
        spec, meta = deployment["spec"], deployment["metadata"]
        template = spec["template"]
        labels = {**(template.get("metadata", {}).get("labels") or {}), "pod-template-hash": digest}
        self._store.create(
            REPLICA_SET,
            {
                "metadata": {
                    "name": f"{meta['name']}-{digest}",
                    "namespace": meta["namespace"],
                    "labels": labels,
                    "ownerReferences": [owner_reference(deployment)],
                },
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {**template, "metadata": {**template.get("metadata", {}), "labels": labels}},
                },
            },
        )

    def _scale(self, replica_set: Data, replicas: int) -> None:
        if replica_set["spec"]["replicas"] != replicas:
            meta = replica_set["metadata"]
            self._store.change(
                REPLICA_SET,
                meta["namespace"],
                meta["name"],
                lambda rs: {**rs, "spec": {**rs["spec"], "replicas": replicas}},
            )

    def _report(self, deployment: Data, desired: int, new: Data, owned: list[Data]) -> None:
        statuses = [rs.get("status") or {} for rs in owned]
        ready = sum(int(s.get("readyReplicas", 0)) for s in statuses)
        is_available = ready >= desired - _rollout_limits(deployment["spec"], desired)[1]
        _set_status(
            self._store,
            DEPLOYMENT,
            deployment,
            {
                "observedGeneration": deployment["metadata"]["generation"],
                "replicas": sum(int(s.get("replicas", 0)) for s in statuses),
                "updatedReplicas": int((new.get("status") or {}).get("replicas", 0)),
                "readyReplicas": ready,
                "availableReplicas": ready,
                "unavailableReplicas": max(0, desired - ready),
                "conditions": [{"type": "Available", "status": "True" if is_available else "False"}],
            },
        )


class ReplicaSets:
    """ReplicaSet → Pod."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def step(self) -> datetime | None:
        for replica_set in self._store.all(REPLICA_SET):
            if not replica_set["metadata"].get("deletionTimestamp"):
                self._reconcile(replica_set)
        return None

    def _reconcile(self, replica_set: Data) -> None:
        meta, spec = replica_set["metadata"], replica_set["spec"]
        pods = [
            pod for pod in self._store.all(POD, meta["namespace"]) if _is_owned(pod, replica_set) and _is_active(pod)
        ]
        missing = int(spec.get("replicas", 1)) - len(pods)
        for _ in range(missing):
            template = spec["template"]
            pod_meta = {
                **template.get("metadata", {}),
                "generateName": f"{meta['name']}-",
                "namespace": meta["namespace"],
                "ownerReferences": [owner_reference(replica_set)],
            }
            pod_meta.pop("name", None)
            self._store.create(POD, {"metadata": pod_meta, "spec": template["spec"]})
        if missing < 0:
            for pod in sorted(pods, key=_who_leaves_first)[:-missing]:
                self._store.delete(POD, pod["metadata"]["namespace"], pod["metadata"]["name"])
        _set_status(
            self._store,
            REPLICA_SET,
            replica_set,
            {
                "observedGeneration": meta["generation"],
                "replicas": len(pods),
                "readyReplicas": sum(map(is_ready, pods)),
                "availableReplicas": sum(map(is_ready, pods)),
            },
        )


class Garbage:
    """Deletes what a deleted owner leaves behind."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def step(self) -> datetime | None:
        objects = [(kind.name, data) for kind in self._store.kinds() for data in self._store.all(kind.name)]
        alive = {data["metadata"]["uid"] for _, data in objects}
        for kind, data in objects:
            meta = data["metadata"]
            owners = meta.get("ownerReferences") or ()
            if owners and not meta.get("deletionTimestamp") and not any(o.get("uid") in alive for o in owners):
                self._store.delete(kind, meta.get("namespace", ""), meta["name"])
        return None


class Kubelets:
    """
    The kubelets of all nodes: bound pods start, become ready after their load time, and end when asked to.

    Args:
        start_s: Seconds from binding to running containers.
        load_s: Seconds from running to ready, for each pod: where a model loads.
        stop_s: Seconds that a pod takes to end, its grace period at most.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        start_s: float = 2.0,
        load_s: Callable[[Data], float] = lambda _: 3.0,
        stop_s: float = 1.0,
    ) -> None:
        self._store = store
        self._clock = clock
        self._start = timedelta(seconds=start_s)
        self._load_s = load_s
        self._stop = timedelta(seconds=stop_s)
        self._due: dict[tuple[str, str], datetime] = {}
        """When a pod's next change is due, by uid and what is due."""

    def step(self) -> datetime | None:
        """Do what is due; gives the time at which something is due next."""
        now = self._clock()
        waits: list[datetime] = []
        seen: set[tuple[str, str]] = set()
        for pod in self._store.all(POD):
            found = self._next(pod)
            if found is None:
                continue
            name, after, act = found
            key = (pod["metadata"]["uid"], name)
            seen.add(key)
            due = self._due.setdefault(key, now + after)
            if due <= now:
                act(pod)
            else:
                waits.append(due)
        self._due = {key: due for key, due in self._due.items() if key in seen}
        return min(waits, default=None)

    def _next(self, pod: Data) -> tuple[str, timedelta, Callable[[Data], None]] | None:
        meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
        if not spec.get("nodeName") or self._store.find(NODE, "", spec["nodeName"]) is None:
            return None
        if meta.get("deletionTimestamp"):
            grace = timedelta(seconds=float(meta.get("deletionGracePeriodSeconds", 30)))
            return "end", min(self._stop, grace), self._end
        if status.get("phase") == "Pending" and not status.get("startTime"):
            return "accept", timedelta(0), self._accept
        if status.get("phase") == "Pending":
            return "start", self._start, self._run
        if status.get("phase") == "Running" and not is_ready(pod):
            return "ready", timedelta(seconds=self._load_s(pod)), self._become_ready
        return None

    def _accept(self, pod: Data) -> None:
        waiting = {"waiting": {"reason": "ContainerCreating"}}
        self._write(
            pod,
            {
                "startTime": _time(self._clock()),
                "containerStatuses": [_container(c, waiting, ready=False) for c in pod["spec"].get("containers", ())],
                "conditions": self._conditions(pod, ready=False),
            },
        )

    def _run(self, pod: Data) -> None:
        running = {"running": {"startedAt": _time(self._clock())}}
        self._write(
            pod,
            {
                "phase": "Running",
                "containerStatuses": [_container(c, running, ready=False) for c in pod["spec"].get("containers", ())],
            },
        )

    def _become_ready(self, pod: Data) -> None:
        statuses = [{**s, "ready": True, "started": True} for s in pod["status"].get("containerStatuses") or ()]
        self._write(pod, {"containerStatuses": statuses, "conditions": self._conditions(pod, ready=True)})

    def _end(self, pod: Data) -> None:
        meta = pod["metadata"]
        finalizers = meta.get("finalizers")
        if not finalizers:
            self._store.delete(POD, meta["namespace"], meta["name"], grace_s=0)

    def _conditions(self, pod: Data, *, ready: bool) -> list[Data]:
        scheduled = [c for c in pod["status"].get("conditions") or () if c["type"] == "PodScheduled"]
        word = "True" if ready else "False"
        reason = {} if ready else {"reason": "ContainersNotReady"}
        stamp = {"lastTransitionTime": _time(self._clock())}
        return [
            *scheduled,
            {"type": "Initialized", "status": "True", **stamp},
            {"type": "ContainersReady", "status": word, **reason, **stamp},
            {"type": "Ready", "status": word, **reason, **stamp},
        ]

    def _write(self, pod: Data, status: Data) -> None:
        meta = pod["metadata"]
        self._store.change(
            POD, meta["namespace"], meta["name"], lambda data: {**data, "status": {**data["status"], **status}}
        )


def owner_reference(owner: Data) -> Data:
    """A reference to the object's controller."""
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_ready(pod: Data) -> bool:
    """Whether the pod's Ready condition holds."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _is_owned(data: Data, owner: Data) -> bool:
    references = data["metadata"].get("ownerReferences") or ()
    return any(r.get("controller") and r.get("uid") == owner["metadata"]["uid"] for r in references)


def _is_active(pod: Data) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and pod["status"].get("phase") not in ("Succeeded", "Failed")


def _who_leaves_first(pod: Data) -> tuple[Any, ...]:
    """The ReplicaSet controller's order: unbound, pending, not ready, low deletion cost, young."""
    annotations = pod["metadata"].get("annotations") or {}
    return (
        bool(pod["spec"].get("nodeName")),
        pod["status"].get("phase") == "Running",
        is_ready(pod),
        int(annotations.get(DELETION_COST, 0)),
        _reverse(pod["metadata"]["creationTimestamp"]),
        pod["metadata"]["name"],
    )


def _reverse(text: str) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in text)


def _rollout_limits(spec: Data, desired: int) -> tuple[int, int]:
    """(maxSurge, maxUnavailable) in replicas: surge is rounded up, unavailability down, and both are not nothing."""
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0, desired
    rolling = strategy.get("rollingUpdate") or {}
    surge = _share(rolling.get("maxSurge", "25%"), desired, math.ceil)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), desired, math.floor)
    return surge, unavailable if surge or unavailable else 1


def _share(amount: Any, whole: int, rounding: Callable[[float], int]) -> int:
    if isinstance(amount, str) and amount.endswith("%"):
        return rounding(int(amount[:-1]) * whole / 100)
    return int(amount)


def _set_status(store: Store, kind: str, data: Data, status: Data) -> None:
    meta = data["metadata"]
    current = store.find(kind, meta["namespace"], meta["name"])
    if current is not None and any((current.get("status") or {}).get(k) != v for k, v in status.items()):
        store.change(
            kind, meta["namespace"], meta["name"], lambda d: {**d, "status": {**(d.get("status") or {}), **status}}
        )


def _digest(template: Data) -> str:
    return hashlib.sha256(msgspec.json.encode(template, order="sorted")).hexdigest()[:10]


def _container(spec: Data, state: Data, *, ready: bool) -> Data:
    return {
        "name": spec.get("name", ""),
        "image": spec.get("image", ""),
        "imageID": spec.get("image", ""),
        "ready": ready,
        "started": False,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
