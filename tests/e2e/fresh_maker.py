"""One fresh scheduling case put together: nodes, pods that fill them, one pod to be placed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.testbed import build
from tests.testbed.client import Object

CASE = "sevenhop.dev/case"
NODE_GPUS = 8
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GPU_SHORT = ("gpu-shortage", "gpu-fragmentation")


@dataclass
class Case:
    """
    One case.  Its nodes carry the label `CASE` with its name, and its pods select it, so cases do not mix.

    Attributes:
        cordoned: Names of nodes that are taken out of scheduling.
        not_ready: Names of nodes whose kubelet says that it is not ready.
        expected: Causes of which one is right; None where several things are wrong at once, and for a pod that fits.
        fits: What must come of it, as far as it is built so; None is for the scheduler to say.
        donors: Names of pods of which the scheduler is asked what comes of it without them.
        others: What else must be there before the pods, such as volumes and devices.
        is_closed: A further node would make another case of it.
    """

    name: str
    recipe: str
    nodes: list[Object] = field(default_factory=list)
    fillers: list[Object] = field(default_factory=list)
    subject: Object = field(default_factory=dict)
    cordoned: list[str] = field(default_factory=list)
    not_ready: list[str] = field(default_factory=list)
    expected: tuple[str, ...] | None = None
    fits: bool | None = None
    donors: list[str] = field(default_factory=list)
    others: list[Object] = field(default_factory=list)
    is_closed: bool = False


class Maker:
    """Puts one case together."""

    def __init__(self, name: str, recipe: str, namespace: str, dice: random.Random) -> None:
        self.case = Case(name, recipe)
        self.dice = dice
        self.namespace = namespace
        self._pods = 0

    def gpu_node(self, zone: str = "a", **how: Any) -> str:
        name = f"{self.case.name}-{len(self.case.nodes)}"
        labels = {CASE: self.case.name, **how.pop("labels", {})}
        self.case.nodes.append(build.gpu_node(name, labels=labels, zone=f"{self.case.name}-{zone}", **how))
        return name

    def cpu_node(self, **how: Any) -> str:
        name = f"{self.case.name}-{len(self.case.nodes)}"
        labels = {CASE: self.case.name, **how.pop("labels", {})}
        self.case.nodes.append(build.cpu_node(name, labels=labels, zone=f"{self.case.name}-a", **how))
        return name

    def fill(self, node: str, gpus: int = 0, *, labels: dict[str, str] | None = None, **spec: Any) -> str:
        """A pod that runs on a node; nothing if it would hold no GPUs and is not asked for otherwise."""
        if not gpus and not labels and not spec:
            return ""
        self._pods += 1
        name = f"{self.case.name}-filler-{self._pods}"
        self.case.fillers.append(self._pod(name, gpus, labels, {"nodeName": node, **spec}))
        return name

    def place(self, gpus: int, *, labels: dict[str, str] | None = None, **spec: Any) -> str:
        """A pod that the scheduler places before it looks at the one in question."""
        self._pods += 1
        name = f"{self.case.name}-filler-{self._pods}"
        self.case.fillers.append(self._pod(name, gpus, labels, self._on_own_nodes(spec)))
        return name

    def ask(self, gpus: int, *, labels: dict[str, str] | None = None, **spec: Any) -> None:
        """The pod in question."""
        self.case.subject = self._pod(f"{self.case.name}-subject", gpus, labels, self._on_own_nodes(spec))

    def priority(self, name: str, value: int, *, preempts: bool = True) -> str:
        """A PriorityClass of the case's own."""
        own = f"{self.case.name}-{self.namespace}-{name}"
        self.case.others.append(build.priority_class(own, value, preempts=preempts))
        return own

    def object(self, version: str, kind: str, name: str, *, namespaced: bool = True, **body: Any) -> str:
        """Anything else that must be there before the pods; its name is the case's own."""
        own = f"{self.case.name}-{name}"
        metadata = {"name": own, "namespace": self.namespace} if namespaced else {"name": own}
        self.case.others.append({"apiVersion": version, "kind": kind, "metadata": metadata, **body})
        return own

    def refused(self, *causes: str) -> None:
        """It fits nowhere, for one of these causes."""
        self.case.expected, self.case.fits = causes, False

    def _on_own_nodes(self, spec: dict[str, Any]) -> dict[str, Any]:
        return {**spec, "node_selector": {CASE: self.case.name, **spec.get("node_selector", {})}}

    def _pod(self, name: str, gpus: int, labels: dict[str, str] | None, spec: dict[str, Any]) -> Object:
        spec = {"cpu": "1", "memory": "1Gi", **spec}
        limits, ports = spec.pop("limits", {}), spec.pop("ports", ())
        claims, port = spec.pop("claims", ()), spec.pop("host_port", 0)
        made = build.pod(name, self.namespace, labels=labels, gpus=gpus, **spec)
        (container,) = made["spec"]["containers"]
        if limits:
            container["resources"].setdefault("limits", {}).update(limits)
        ports = [*ports, ("", "TCP", port)] if port else ports
        if ports:
            container["ports"] = [_port(*each) for each in ports]
        if claims:
            container["resources"]["claims"] = [{"name": each} for each in claims]
        return made


def _port(address: str, protocol: str, number: int) -> Object:
    found: Object = {"containerPort": number, "hostPort": number, "protocol": protocol}
    return {**found, "hostIP": address} if address else found


def without_gpus(pod: Object) -> bool:
    """Whether a pod asks for nothing but what every node has."""
    limits = pod["spec"]["containers"][0]["resources"].get("limits", {})
    return not limits and not pod["spec"].get("resourceClaims")
