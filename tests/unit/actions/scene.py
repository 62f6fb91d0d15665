"""A simulated API server with donors of every shape, and an executor that can be killed between its requests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sevenhop.actions.errors import RetryableActError, UncertainActError
from sevenhop.actions.executor import ClusterExecutor
from sevenhop.actions.transport import Transport
from sevenhop.core.effects import Act, Borrow
from sevenhop.core.events import StepDone
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation import permit as permits
from sevenhop.core.remediation.action import Action, Cordon, Edit, EvictPod, ObjectRef, Scale, Steer, Test
from sevenhop.core.remediation.permit import Permit, Purpose
from sevenhop.core.remediation.plan import Plan
from sevenhop.runtime.writing import ANSWER_WITHIN_S, ApiTransport
from sevenhop.simulation.clock import VirtualClock
from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.simulation.store import Data, Store
from sevenhop.sources.kubernetes.api import Access, ApiServer

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
DEPLOYMENT, POD, NODE = "Deployment.apps", "Pod", "Node"
RAY_CLUSTER, RAY_SERVICE = "RayCluster.ray.io", "RayService.ray.io"
SERVICE = "InferenceService.serving.kserve.io"

BORROWED = "sevenhop.dev/borrowed"
COST = "controller.kubernetes.io/pod-deletion-cost"


class KilledError(BaseException):
    """The process ends here: nothing catches it."""


class Mortal:
    """
    A transport that dies after its n-th request that could change something was carried out.

    Attributes:
        writes: (method, path) of those requests, dry runs left out.
    """

    def __init__(self, inner: Transport, dies_after: int | None = None) -> None:
        self._inner = inner
        self._left = dies_after
        self.writes: list[tuple[str, str]] = []

    async def send(
        self, method: str, path: str, params: Mapping[str, str], *, body: bytes | None = None, content_type: str = ""
    ) -> bytes:
        answer = await self._inner.send(method, path, params, body=body, content_type=content_type)
        if method != "GET" and "dryRun" not in params:
            self.writes.append((method, path))
            if self._left is not None:
                self._left -= 1
                if self._left == 0:
                    raise KilledError
        return answer


def leave(act: Act, *, seconds: float = 30, purpose: Purpose | None = None) -> Permit:
    """A permit as the guards give it."""
    return permits._give(
        effect_id=act.id,
        plan_hash=act.plan.hash,
        purpose=purpose or act.purpose,
        given_at=NOON,
        expires_at=NOON + timedelta(seconds=seconds),
    )


class Cluster:
    """
    The server's side.

    Attributes:
        edits: Field → how often a request of ours changed it, for what is counted as "patched twice".
    """

    def __init__(self, store: Store, server: ApiServerSimulation, transport: Transport) -> None:
        self.store = store
        self.server = server
        self.transport = transport
        self.now: Callable[[], datetime] = lambda: NOON

    def executor(self, *, dies_after: int | None = None) -> tuple[ClusterExecutor, Mortal]:
        mortal = Mortal(self.transport, dies_after)
        return ClusterExecutor(mortal, self.now), mortal

    async def deliver(self, act: Act, *, uncertain: bool = False) -> StepDone:
        executor, _ = self.executor()
        return await executor.deliver(act, uncertain=uncertain, permit=leave(act))

    async def insist(self, act: Act, *, uncertain: bool = True) -> StepDone:
        """As the outbox does: the same again until it is known what became of it."""
        for _ in range(5):
            try:
                return await self.deliver(act, uncertain=uncertain)
            except (UncertainActError, RetryableActError):
                uncertain = True
        raise AssertionError("never certain")

    def ref(self, kind: str, name: str, namespace: str = "chat") -> ObjectRef:
        found = self.store.get(kind, namespace if KINDS[kind].namespaced else "", name)
        return ObjectRef(kind, found["metadata"].get("namespace", ""), name, found["metadata"]["uid"])

    def get(self, kind: str, name: str, namespace: str = "chat") -> Data:
        return self.store.get(kind, namespace if KINDS[kind].namespaced else "", name)

    def find(self, kind: str, name: str, namespace: str = "chat") -> Data | None:
        return self.store.find(kind, namespace if KINDS[kind].namespaced else "", name)

    def annotations(self, kind: str, name: str) -> dict[str, str]:
        return dict(self.get(kind, name)["metadata"].get("annotations") or {})

    def change(self, kind: str, name: str, by: Callable[[Data], Data]) -> None:
        """Somebody else writes."""
        self.store.change(kind, "chat" if KINDS[kind].namespaced else "", name, by)

    def events(self) -> list[Data]:
        return self.store.all("Event")

    def looks(self) -> dict[str, Any]:
        """All objects but Events, without versions."""
        return {
            f"{kind.name} {data['metadata']['name']}": _plain(data)
            for kind in self.store.kinds()
            if kind.name != "Event"
            for data in self.store.all(kind.name)
        }


def _plain(data: Data) -> Data:
    meta = {k: v for k, v in data["metadata"].items() if k not in ("resourceVersion", "generation", "managedFields")}
    if not meta.get("annotations"):
        meta.pop("annotations", None)
    return {**data, "metadata": meta}


@asynccontextmanager
async def cluster(answer_within_s: float = ANSWER_WITHIN_S) -> AsyncIterator[Cluster]:
    """One with donors of every shape, each of four replicas."""
    store = Store(VirtualClock(NOON))
    _fill(store)
    server = ApiServerSimulation(store, bookmark_s=0.05)
    async with server.serve() as url, ApiServer(Access(base_url=url)) as api:
        yield Cluster(store, server, ApiTransport(api, answer_within_s=answer_within_s))


def _fill(store: Store) -> None:
    store.create(DEPLOYMENT, {"metadata": {"name": "donor", "namespace": "chat"}, "spec": {"replicas": 4}})
    for name in ("donor-a", "donor-b"):
        store.create(POD, {"metadata": {"name": name, "namespace": "chat"}, "spec": {"nodeName": "gpu-1"}})
    groups = [{"groupName": "cpu", "replicas": 1}, {"groupName": "gpu", "replicas": 4, "minReplicas": 4}]
    store.create(
        RAY_CLUSTER, {"metadata": {"name": "ray-x", "namespace": "chat"}, "spec": {"workerGroupSpecs": groups}}
    )
    store.create(
        RAY_SERVICE,
        {
            "metadata": {"name": "ray", "namespace": "chat", "annotations": {"owner": "team"}},
            "spec": {"rayClusterConfig": {"workerGroupSpecs": [{"groupName": "gpu", "replicas": 4}]}},
        },
    )
    store.create(
        SERVICE,
        {
            "metadata": {"name": "summarizer", "namespace": "chat"},
            "spec": {"predictor": {"minReplicas": 4, "maxReplicas": 6}},
        },
    )
    store.create(NODE, {"metadata": {"name": "gpu-1"}, "spec": {}})


def act(*actions: Action, purpose: Purpose = Purpose.APPLY, number: int = 1, lends: bool = True) -> Act:
    """One step of a plan of these actions."""
    made = Plan(
        cluster="test",
        playbook="free-gpu-capacity",
        incident="i-1",
        actions=actions,
        lease=timedelta(hours=2),
        title="donor 4 → 3",
        proposed_at=NOON,
        expires_at=NOON + timedelta(minutes=15),
    )
    borrow = Borrow(
        plan=made.id,
        hash=made.hash,
        incident="i-1",
        workload="chat/donor",
        component="main",
        before=4,
        after=3,
        until=NOON + timedelta(hours=2),
        by="dana",
    )
    return Act(
        id=f"{made.id}/{number}-{purpose}",
        incident="i-1",
        revision=number,
        plan=made,
        purpose=purpose,
        number=number,
        borrow=borrow if lends else None,
        note="for llama-70b",
    )


class Shape(NamedTuple):
    """A way to give, and what the object that rules then says."""

    make: Callable[[Cluster], tuple[Action, ...]]
    replicas: Callable[[Cluster], int]
    marked: tuple[str, str]


def _scale(cluster: Cluster, target: ObjectRef, edits: tuple[Edit, ...], **more: Any) -> Scale:
    given = {"marked": target, "workload": ("chat", "donor"), "component": "main", "before": 4, "after": 3, **more}
    return Scale(target=target, edits=edits, **given)


def deployment(cluster: Cluster, *, steered: bool = True) -> tuple[Action, ...]:
    target = cluster.ref(DEPLOYMENT, "donor")
    scale = _scale(cluster, target, (Edit("/spec/replicas", 4, 3),), subresource="scale")
    return (Steer(pods=(cluster.ref(POD, "donor-b"),)), scale) if steered else (scale,)


def kserve(cluster: Cluster, *, steered: bool = False) -> tuple[Action, ...]:
    edits = (Edit("/spec/predictor/minReplicas", 4, 3), Edit("/spec/predictor/maxReplicas", 6, 3))
    scale = _scale(cluster, cluster.ref(SERVICE, "summarizer"), edits)
    return (Steer(pods=(cluster.ref(POD, "donor-a"),)), scale) if steered else (scale,)


def ray(cluster: Cluster) -> tuple[Action, ...]:
    group = "/spec/workerGroupSpecs/1"
    edits = (
        Edit(f"{group}/replicas", 4, 3),
        Edit(f"{group}/minReplicas", 4, 3),
        Edit(f"{group}/scaleStrategy/workersToDelete/0", None, "donor-a"),
    )
    parent = cluster.ref(RAY_SERVICE, "ray")
    lasting = "/spec/rayClusterConfig/workerGroupSpecs/0"
    also = ((parent, (Edit(f"{lasting}/replicas", 4, 3),), (Test(f"{lasting}/groupName", "gpu"),)),)
    tests = (Test(f"{group}/groupName", "gpu"),)
    return (_scale(cluster, cluster.ref(RAY_CLUSTER, "ray-x"), edits, marked=parent, also=also, tests=tests),)


def evict(cluster: Cluster) -> tuple[Action, ...]:
    return (EvictPod(pod=cluster.ref(POD, "donor-a")),)


def cordon(cluster: Cluster) -> tuple[Action, ...]:
    return (Cordon(node=cluster.ref(NODE, "gpu-1")),)


SHAPES = {
    "Deployment, steered": Shape(
        deployment, lambda c: c.get(DEPLOYMENT, "donor")["spec"]["replicas"], (DEPLOYMENT, "donor")
    ),
    "KServe, mark and number in one patch": Shape(
        kserve, lambda c: c.get(SERVICE, "summarizer")["spec"]["predictor"]["minReplicas"], (SERVICE, "summarizer")
    ),
    "KServe, steered": Shape(
        lambda c: kserve(c, steered=True),
        lambda c: c.get(SERVICE, "summarizer")["spec"]["predictor"]["minReplicas"],
        (SERVICE, "summarizer"),
    ),
    "RayService above its cluster": Shape(
        ray, lambda c: c.get(RAY_CLUSTER, "ray-x")["spec"]["workerGroupSpecs"][1]["replicas"], (RAY_SERVICE, "ray")
    ),
}


def mark(cluster: Cluster, shape: Shape) -> Any:
    """What the annotation says; None without it."""
    text = cluster.annotations(*shape.marked).get(BORROWED)
    return None if text is None else json.loads(text)
