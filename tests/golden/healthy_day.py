"""
A healthy day of a simulated cluster, as the events that the source would have told: scale-ups, rollouts, a node drain,
a queue's backlog, scale to zero and back, new models, jobs that finish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from sevenhop.core.events import Applied, Deleted, Event, SourceChanged, SyncState
from sevenhop.core.objects.decode import convert
from sevenhop.core.objects.kinds import KINDS, kind_of
from sevenhop.demo.endpoints import EndpointSlices
from sevenhop.simulation.clock import VirtualClock
from sevenhop.simulation.cluster import SimulatedCluster
from sevenhop.simulation.store import Data
from tests.testbed import build
from tests.testbed.build import Component

MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)
SPACE = "models"
GATE = "kueue.x-k8s.io/admission"
DEPLOYMENT = "Deployment.apps"

LOAD_S = {"llama-70b": 480.0, "coder": 1200.0, "chat": 300.0, "embed": 90.0, "ranker": 60.0, "batch": 60.0}
"""Seconds from running to ready, by the beginning of a pod's name; what has no probe is ready at once."""

STARTUP = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 10, "failureThreshold": 180}
"""As vLLM's and Dynamo's examples have it: half an hour to load a model."""


class Day:
    """The cluster while the day goes on, and what was heard of it."""

    def __init__(self) -> None:
        self.clock = VirtualClock(MIDNIGHT)
        self.cluster = SimulatedCluster(self.clock, load_s=_load_s, controllers=(EndpointSlices,))
        self.store = self.cluster.store
        self.events: list[Event] = [SourceChanged(at=MIDNIGHT, kind=k, state=SyncState.SYNCED) for k in KINDS]
        self._heard = dict.fromkeys(KINDS, 0)
        self.store.listeners.append(self._hear)

    def _hear(self, kind: str) -> None:
        for change in self.store.changes_since(kind, self._heard[kind]):
            self._heard[kind] = change.revision
            meta, at, seq = change.data["metadata"], self.clock(), len(self.events)
            if change.type == "DELETED":
                namespace = meta.get("namespace", "")
                gone = Deleted(at=at, seq=seq, kind=kind, namespace=namespace, name=meta["name"], uid=meta["uid"])
                self.events.append(gone)
            else:
                self.events.append(Applied(at=at, seq=seq, kind=kind, obj=convert(KINDS[kind], change.data)))

    # What people and operators do

    def create(self, manifest: Data) -> Data:
        kind = kind_of(manifest["apiVersion"], manifest["kind"])
        assert kind is not None, manifest["kind"]
        return self.store.create(kind.name, manifest)

    def change(self, kind: str, name: str, by: Callable[[Data], Data], namespace: str = SPACE) -> None:
        self.store.change(kind, namespace, name, by)

    def scale(self, name: str, replicas: int) -> None:
        self.change(DEPLOYMENT, name, lambda d: {**d, "spec": {**d["spec"], "replicas": replicas}})

    def roll_out(self, name: str, image: str) -> None:
        def changed(deployment: Data) -> Data:
            template = deployment["spec"]["template"]
            (container,) = template["spec"]["containers"]
            inner = {**template["spec"], "containers": [{**container, "image": image}]}
            return {**deployment, "spec": {**deployment["spec"], "template": {**template, "spec": inner}}}

        self.change(DEPLOYMENT, name, changed)

    def pods(self, prefix: str = "", node: str = "") -> list[Data]:
        found = self.store.all("Pod")
        return [
            p for p in found if p["metadata"]["name"].startswith(prefix) and node in ("", p["spec"].get("nodeName"))
        ]

    def go_on(self, **how_long: float) -> None:
        """Let time pass."""
        self.cluster.advance(timedelta(**how_long))

    def until(self, hour: float) -> None:
        """Let time pass until this hour of the day."""
        self.cluster.advance(MIDNIGHT + timedelta(hours=hour) - self.clock())


def _load_s(pod: Data) -> float:
    name = pod["metadata"]["name"]
    return next((seconds for prefix, seconds in LOAD_S.items() if name.startswith(prefix)), 0.0)


def _probed(deployment: Data) -> Data:
    """With the probe that makes a pod ready only once its model is loaded."""
    template = deployment["spec"]["template"]
    containers = [{**c, "startupProbe": STARTUP, "readinessProbe": STARTUP} for c in template["spec"]["containers"]]
    template = {**template, "spec": {**template["spec"], "containers": containers}}
    return {**deployment, "spec": {**deployment["spec"], "template": template}}


def healthy_day() -> list[Event]:
    """From midnight to midnight."""
    day = Day()
    _begin(day)
    day.until(6)
    day.scale("embed", 2)  # was at zero over night
    day.until(8)
    day.scale("chat", 5)  # the morning's load
    day.until(9)
    _queue_backlog(day, 6)
    day.until(10)
    day.roll_out("ranker", "vllm/vllm-openai:v0.16.0")
    day.until(10.75)
    day.create(_ready(build.gpu_node("gpu-5")))  # bought for it
    day.until(11)
    _serve(day, "coder", gpus=8, replicas=1)  # a model that is new, and loads for 20 minutes
    day.until(12)
    _job(day, "evaluation", minutes=50)
    day.until(13)
    _drain(day, "gpu-1")
    day.until(15)
    day.roll_out("chat", "vllm/vllm-openai:v0.16.0")
    day.until(17)
    _scale_graph(day, 3)
    day.until(19)
    day.scale("chat", 3)
    _scale_graph(day, 2)
    day.until(20)
    _job(day, "nightly", minutes=90)
    day.until(22)
    day.scale("embed", 0)
    day.until(22.5)
    day.store.delete(DEPLOYMENT, SPACE, "coder")
    day.store.delete("Service", SPACE, "coder")
    day.until(24)
    return day.events


def _begin(day: Day) -> None:
    """Six nodes, and models that were there before: their pods run when we begin to look."""
    day.create(build.namespace(SPACE))
    for number in range(5):
        day.create(_ready(build.gpu_node(f"gpu-{number}")))
        plugin = build.pod(
            f"nvidia-device-plugin-{number}",
            "kube-system",
            labels={"app": "nvidia-device-plugin"},
            nodeName=f"gpu-{number}",
        )
        day.create(plugin)
    day.create(_ready(build.cpu_node("cpu-0")))
    _serve(day, "chat", gpus=2, replicas=3, tier="critical")
    _serve(day, "embed", gpus=1, replicas=0)
    _serve(day, "ranker", gpus=2, replicas=2)
    _graph(day)
    day.go_on(minutes=20)


def _ready(node: Data) -> Data:
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    return {**node, "status": {**node["status"], "conditions": conditions}}


def _serve(day: Day, name: str, *, gpus: int, replicas: int, tier: str = "standard", **spec: Any) -> None:
    annotations = {"sevenhop.dev/tier": tier, "sevenhop.dev/owner": "@models"}
    server = build.vllm_deployment(
        name, SPACE, f"org/{name}", gpus=gpus, replicas=replicas, annotations=annotations, **spec
    )
    day.create(_probed(server))
    day.create(build.service(name, SPACE, {"app": name}))


_GRAPH = [
    Component(name="Frontend", type="frontend"),
    Component(name="prefill", type="prefill", replicas=1, gpus=2, model="org/llama-70b"),
    Component(name="decode", type="decode", replicas=2, gpus=2, model="org/llama-70b"),
]


def _graph(day: Day) -> None:
    """A Dynamo graph, as its operator makes it with Deployments."""
    graph = day.create(build.dgd("llama-70b", SPACE, _GRAPH, annotations={"sevenhop.dev/tier": "critical"}))
    for part, component in zip(build.dynamo_component_deployments(graph, _GRAPH), _GRAPH, strict=True):
        day.create(_probed(build.dynamo_deployment(day.create(part), graph, component)))


def _scale_graph(day: Day, decode: int) -> None:
    """Somebody changes the graph; its operator follows a moment later."""

    def changed(graph: Data) -> Data:
        parts = [{**c, "replicas": decode} if c["name"] == "decode" else c for c in graph["spec"]["components"]]
        return {**graph, "spec": {**graph["spec"], "components": parts}}

    day.change("DynamoGraphDeployment.nvidia.com", "llama-70b", changed)
    day.go_on(seconds=2)
    for kind in ("DynamoComponentDeployment.nvidia.com", DEPLOYMENT):
        (name,) = [d["metadata"]["name"] for d in day.store.all(kind) if "-decode-" in d["metadata"]["name"]]
        day.change(kind, name, lambda d: {**d, "spec": {**d["spec"], "replicas": decode}})


def _queue_backlog(day: Day, pods: int) -> None:
    """A batch model whose pods are held by a queue; one is let in every ten minutes, as quota appears."""
    _serve(day, "batch", gpus=1, replicas=pods, tier="batch", schedulingGates=[{"name": GATE}])
    for _ in range(pods):
        day.go_on(minutes=10)
        (first, *_others) = [pod for pod in day.pods("batch-") if pod["spec"].get("schedulingGates")]
        name = first["metadata"]["name"]
        day.change(
            "Pod", name, lambda pod: {**pod, "spec": {k: v for k, v in pod["spec"].items() if k != "schedulingGates"}}
        )


def _drain(day: Day, node: str) -> None:
    """Cordon, evict one pod after the other as disruption budgets allow, reboot, put back."""
    day.change("Node", node, lambda n: {**n, "spec": {**n["spec"], "unschedulable": True}}, namespace="")
    for pod in day.pods(node=node):
        if pod["metadata"]["namespace"] == SPACE:
            day.store.delete("Pod", SPACE, pod["metadata"]["name"])
            day.go_on(minutes=9)
    for status, minutes in (("False", 4), ("True", 3)):
        day.change("Node", node, lambda n, status=status: _with_ready(n, status), namespace="")  # type: ignore[misc]
        day.go_on(minutes=minutes)
    day.change("Node", node, lambda n: {**n, "spec": {**n["spec"], "unschedulable": False}}, namespace="")


def _with_ready(node: Data, status: str) -> Data:
    reason = "KubeletReady" if status == "True" else "KubeletNotReady"
    return {**node, "status": {**node["status"], "conditions": [{"type": "Ready", "status": status, "reason": reason}]}}


def _job(day: Day, name: str, *, minutes: float) -> None:
    """Two pods that run for a while and succeed."""
    names = [f"{name}-{number}" for number in range(2)]
    for each in names:
        day.create(build.pod(each, SPACE, gpus=1, restartPolicy="Never", image="org/evaluation:1"))
    day.go_on(minutes=minutes)
    for each in names:
        day.change("Pod", each, _succeeded)


def _succeeded(pod: Data) -> Data:
    ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    statuses = [{**s, "ready": False, "state": ended} for s in pod["status"]["containerStatuses"]]
    return {**pod, "status": {**pod["status"], "phase": "Succeeded", "containerStatuses": statuses}}


def with_fault(day: Iterable[Event], fault: Iterable[Event], *, until: datetime) -> list[Event]:
    """
    The same recording up to a time, with further events in it, as if its own source had told them.

    They come in the epoch of their kind at that time: a newer one would say that a list was taken which had nothing
    else, and an older one nothing at all.
    """
    kept = [event for event in day if event.at <= until]
    merged = sorted([*((event, False) for event in kept), *((event, True) for event in fault)], key=lambda e: e[0].at)
    epochs: dict[str, int] = {}
    told: list[Event] = []
    for event, is_fault in merged:
        if isinstance(event, Applied | Deleted | SourceChanged):
            if is_fault:
                event = replace(event, epoch=epochs.get(event.kind, 0), seq=event.seq + _LATER)
            else:
                epochs[event.kind] = max(epochs.get(event.kind, 0), event.epoch)
        told.append(event)
    return told


_LATER = 2**40
"""Added to the sequence of a fault's events: of what the recording tells of too, the fault is the last word."""
