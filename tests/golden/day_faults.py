"""One fault for each shipped rule that Kubernetes objects alone can provoke: what is added to the day at noon."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sevenhop.core.events import Event, SyncState
from sevenhop.core.objects import pod as p
from sevenhop.core.objects.base import Condition, Custom, Object
from sevenhop.core.objects.cluster import Controller, Taint
from tests import builders as b
from tests.builders import NOON, Feed, at

SPACE = "fault"
L4 = "NVIDIA-L4"
GPU_ON = {"nvidia.com/gpu.product": L4}
CUDA = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"

Fault = Callable[["Scene"], None]
FAULTS: dict[str, Fault] = {}


class Scene:
    """Adds objects to the day; times are minutes after noon."""

    def __init__(self) -> None:
        self.feed = Feed()
        self.events: list[Event] = []

    def put(self, *objects: Object, minute: float = 0) -> None:
        self.events += self.feed.applied(*objects, seconds=minute * 60)

    def source(self, kind: str, state: SyncState, minute: float = 0) -> None:
        self.events += self.feed.synced(kind, state=state, seconds=minute * 60)

    def node(self, name: str = "l4-0", gpus: int = 4, **how: object) -> None:
        self.put(b.node(name, gpus=gpus, product=L4, **how))  # type: ignore[arg-type]

    def served(self, name: str = "victim", *, gpus: int = 1, replicas: int = 1, **how: object) -> Controller:
        """A Deployment and its ReplicaSet, on nodes with an L4; what the ReplicaSet is is returned."""
        of = b.deployment(name, SPACE, gpus=gpus, replicas=replicas, selector=GPU_ON, **how)  # type: ignore[arg-type]
        made = b.replicaset(of)
        self.put(of, made)
        return made


def fault(rule: str) -> Callable[[Fault], Fault]:
    def keep(make: Fault) -> Fault:
        FAULTS[rule] = make
        return make

    return keep


def events_of(rule: str, begin: datetime = NOON) -> list[Event]:
    """The fault that the rule is about, with all its times moved so that noon is at `begin`."""
    scene = Scene()
    FAULTS[rule](scene)
    return [_moved(event, begin - NOON) for event in scene.events]


def _moved(value: Any, by: timedelta) -> Any:
    """Every time within a value, later by so much."""
    if isinstance(value, datetime):
        return value + by
    if isinstance(value, dict):
        return {key: _moved(each, by) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_moved(each, by) for each in value)
    if isinstance(value, msgspec.Struct):
        return type(value)(**{name: _moved(getattr(value, name), by) for name in value.__struct_fields__})
    return value


def _waits(scene: Scene, made: Controller, **how: object) -> None:
    scene.put(b.pod_of(made, "w", unschedulable="0/7 nodes are available", **how))


@fault("component-short-of-gpus")
def _shortage(scene: Scene) -> None:
    scene.node(gpus=4)
    scene.put(b.pod("holder", SPACE, node="l4-0", gpus=4, image="org/other:1", args=()))
    _waits(scene, scene.served(gpus=2))


@fault("scale-out-limited")
def _maxed(scene: Scene) -> None:
    _shortage(scene)
    pod = b.pod("victim-aaaa-w", SPACE)
    words = "pod didn't trigger scale-up: 1 max node group size reached"
    scene.put(b.kube_event(pod, "NotTriggerScaleUp", words, component="cluster-autoscaler"))


@fault("component-never-fits")
def _never_fits(scene: Scene) -> None:
    scene.node(gpus=4)
    _waits(scene, scene.served(gpus=8))


@fault("component-short-of-other-resources")
def _no_cpu(scene: Scene) -> None:
    scene.node(gpus=4)
    hog = b.pod("hog", SPACE, node="l4-0", image="org/other:1", args=())
    hog.spec.containers[0].resources.requests["cpu"] = "64"
    scene.put(hog)
    _waits(scene, scene.served())


@fault("blocked-by-policy")
def _tainted(scene: Scene) -> None:
    scene.node(gpus=4, taints=(Taint(key="team", value="x", effect="NoSchedule"),))
    _waits(scene, scene.served())


@fault("waits-for-cordoned-nodes")
def _cordoned(scene: Scene) -> None:
    scene.node(gpus=4, cordoned=True)
    _waits(scene, scene.served())


@fault("blocked-by-dependency")
def _no_volume(scene: Scene) -> None:
    scene.node(gpus=4)
    made = scene.served()
    pod = b.pod_of(made, "w", unschedulable='0/7 nodes are available: persistentvolumeclaim "weights" not found.')
    volume = msgspec.convert({"name": "w", "persistentVolumeClaim": {"claimName": "weights"}}, p.Volume)
    scene.put(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=(volume,))))


@fault("blocked-by-quota")
def _quota(scene: Scene) -> None:
    of = b.deployment("victim", SPACE, gpus=1)
    made = b.replicaset(of, created=0)
    text = 'pods "victim-aaaa-x" is forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4'
    made.status.conditions = (
        Condition(
            type="ReplicaFailure", status="True", reason="FailedCreate", message=text, last_transition_time=at(0)
        ),
    )
    scene.put(of, made)


@fault("queue-never-admits")
def _queue(scene: Scene) -> None:
    made = scene.served()
    pod = b.pod_of(made, "w", gates=("kueue.x-k8s.io/admission",))
    words = (
        "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor l4, "
        "request > maximum capacity (1 > 0)"
    )
    workload = Custom(
        kind="Workload",
        api_version="kueue.x-k8s.io/v1beta1",
        metadata=b.meta("pod-victim", SPACE, owners=(b.owner(pod, "Pod"),)),
        spec={"queueName": "team", "podSets": [{"name": "main", "count": 1}]},
        status={"conditions": [{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": words}]},
    )
    scene.put(pod, workload)


@fault("gang-incomplete")
def _gang(scene: Scene) -> None:
    scene.node(gpus=4, cordoned=True)
    made = scene.served(gpus=2, replicas=2)
    gang = {"grove.io/podgang": "victim-0", **made.spec.template.metadata.labels}
    scene.put(b.pod_of(made, "a", node="l4-0", labels=gang))
    _waits(scene, made, labels=gang)


@fault("rollout-surge-blocked")
def _surge(scene: Scene) -> None:
    scene.node(gpus=4)
    of = b.deployment("victim", SPACE, gpus=4, selector=GPU_ON, generation=2, updated=1, total=2)
    before, after = b.replicaset(of, "aaaa", number=1), b.replicaset(of, "bbbb", number=2)
    scene.put(of, before, after, b.pod_of(before, "old", node="l4-0"))
    _waits(scene, after)


@fault("resource-not-offered")
def _not_offered(scene: Scene) -> None:
    made = scene.served()
    scene.put(b.node("l4-0", gpus=0, capacity=0, product=L4, labels=GPU_ON))
    pod = b.pod_of(made, "w", unschedulable="0/7 nodes are available")
    resources = pod.spec.containers[0].resources
    for amounts in (resources.requests, resources.limits):
        amounts["vendor.example/npu"] = amounts.pop(b.GPU)
    scene.put(pod)


def _runs(scene: Scene, suffix: str = "r", made: Controller | None = None, **how: object) -> p.Pod:
    scene.node(gpus=4)
    pod = b.pod_of(made or scene.served(), suffix, node="l4-0", **how)
    scene.put(pod)
    return pod


@fault("container-cannot-start")
def _no_config(scene: Scene) -> None:
    _runs(scene, waiting="CreateContainerConfigError", message='configmap "engine" not found')


@fault("image-not-pulled")
def _no_image(scene: Scene) -> None:
    text = 'Back-off pulling image "vllm/vllm-openai:nope": ErrImagePull: manifest unknown'
    _runs(scene, waiting="ImagePullBackOff", message=text)


@fault("crashes-unexplained")
def _crashes(scene: Scene) -> None:
    _runs(scene, waiting="CrashLoopBackOff", message="back-off 10s", last_end=at(0), exit_code=1, restarts=1)


@fault("load-fails")
def _load_fails(scene: Scene) -> None:
    pod = _runs(scene, waiting="CrashLoopBackOff", message="back-off 10s", last_end=at(0), exit_code=1, restarts=1)
    _end(pod, exit_code=1, message=CUDA)
    scene.put(pod)


@fault("host-oom")
def _host_oom(scene: Scene) -> None:
    pod = _runs(scene, waiting="CrashLoopBackOff", message="back-off 10s", last_end=at(0), exit_code=137, restarts=1)
    _end(pod, exit_code=137, reason="OOMKilled")
    scene.put(pod)


def _end(pod: p.Pod, *, exit_code: int, reason: str = "Error", message: str = "") -> None:
    ended = p.Terminated(exit_code=exit_code, reason=reason, message=message, finished_at=at(0), started_at=at(-60))
    pod.status.container_statuses[0].last_state.terminated = ended


@fault("worker-restarts")
def _restarts(scene: Scene) -> None:
    """It comes back every time, so that nothing fails for long."""
    scene.node(gpus=4)
    made = scene.served()
    for restarts in range(4):
        minute = restarts * 2.0
        last = at(minute * 60) if restarts else None
        pod = b.pod_of(made, "r", node="l4-0", restarts=restarts, last_end=last, exit_code=0, ready=True)
        scene.put(pod, minute=minute)


@fault("replicas-differ-in-version")
def _two_versions(scene: Scene) -> None:
    scene.node(gpus=4)
    made = scene.served(replicas=2)
    scene.put(b.pod_of(made, "a", node="l4-0", image_id="r/vllm@sha256:aaaa"))
    scene.put(b.pod_of(made, "b", node="l4-0", image_id="r/vllm@sha256:bbbb"))


@fault("capacity-dip-in-rollout")
def _dip(scene: Scene) -> None:
    scene.node(gpus=4)
    of = b.deployment("victim", SPACE, gpus=1, replicas=3, selector=GPU_ON, generation=2, updated=2, total=3)
    before, after = b.replicaset(of, "aaaa", replicas=1, number=1), b.replicaset(of, "bbbb", replicas=2, number=2)
    scene.put(of, before, after, b.pod_of(before, "old", node="l4-0"))
    for suffix in ("x", "y"):
        scene.put(_loading(b.pod_of(after, suffix, node="l4-0", ready=False)))


def _loading(pod: p.Pod) -> p.Pod:
    probe = msgspec.convert({"periodSeconds": 10, "failureThreshold": 400}, p.Probe)
    main = msgspec.structs.replace(pod.spec.containers[0], startup_probe=probe)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(main,)))


@fault("no-ready-endpoints")
def _outage(scene: Scene) -> None:
    """It was ready, and then is not: the probe fails, and the pod's own budget is not used up."""
    scene.node(gpus=4)
    made = scene.served()
    pod = b.pod_of(made, "r", node="l4-0")
    service = b.service("victim", SPACE, selector={"app": "victim"})
    scene.put(pod, service, b.endpoint_slice(service, [pod]))
    sick = _loading(b.pod_of(made, "r", node="l4-0", ready=False))
    scene.put(sick, b.endpoint_slice(service, [sick]), minute=5)


@fault("selects-nothing-or-wrong-port")
def _wrong_port(scene: Scene) -> None:
    pod = _runs(scene)
    service = b.service("victim", SPACE, selector={"app": "victim"}, target="grpc")
    scene.put(service, b.endpoint_slice(service, [pod]))


@fault("mixes-versions")
def _mixed(scene: Scene) -> None:
    """Two workloads of different releases behind one Service."""
    scene.node(gpus=4)
    pods = []
    for name, image in (("victim-a", "vllm/vllm-openai:v0.15.1"), ("victim-b", "vllm/vllm-openai:v0.16.0")):
        of = b.deployment(name, SPACE, gpus=1, selector=GPU_ON, image=image, labels={"serves": "victim"})
        made = b.replicaset(of)
        pods.append(b.pod_of(made, "r", node="l4-0"))
        scene.put(of, made, pods[-1])
    service = b.service("victim", SPACE, selector={"serves": "victim"})
    scene.put(service, b.endpoint_slice(service, pods))


@fault("fails-on-one-node")
def _one_node(scene: Scene) -> None:
    scene.node("l4-0")
    scene.node("l4-1")
    made = scene.served(replicas=3)
    scene.put(b.pod_of(made, "well", node="l4-1"))
    for suffix in ("x", "y"):
        pod = b.pod_of(
            made, suffix, node="l4-0", waiting="CreateContainerError", message="nvidia-container-cli: driver mismatch"
        )
        scene.put(pod)
        scene.put(b.pod_of(made, suffix, node="l4-0"), minute=1)  # and then they start after all


@fault("node-advertises-fewer-gpus")
def _fewer(scene: Scene) -> None:
    scene.node(gpus=3, capacity=4)


@fault("device-plugin-down")
def _plugin(scene: Scene) -> None:
    scene.node(gpus=4)
    plugin = b.pod("nvidia-device-plugin-l4", "kube-system", node="l4-0", image="org/plugin:1", args=(), ready=False)
    plugin.metadata.labels["app"] = "nvidia-device-plugin"
    scene.put(plugin)


@fault("source-blind")
def _blind(scene: Scene) -> None:
    scene.source("Service", SyncState.STALE)


@fault("source-forbidden")
def _forbidden(scene: Scene) -> None:
    scene.source("PodDisruptionBudget.policy", SyncState.FORBIDDEN)


def lasts(hold: timedelta, begin: datetime = NOON) -> datetime:
    """When the fault of a rule that waits for `hold` has certainly fired."""
    return begin + hold + timedelta(minutes=10)
