"""Fresh scheduling cases by chance: nodes, pods that fill them, one pod to be placed, and what must come of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.testbed import build
from tests.testbed.client import Object

CASE = "sevenhop.dev/case"
NODE_GPUS = 8
GPU_SHORT = ("gpu-shortage", "gpu-fragmentation")


@dataclass
class Case:
    """
    One case.  Its nodes carry the label `CASE` with its name, and its pods select it, so cases do not mix.

    Attributes:
        cordoned: Names of nodes that are taken out of scheduling.
        expected: Causes of which one is right; None where several things are wrong at once, and for a pod that fits.
        fits: What must come of it, as far as it is built so; None is for the scheduler to say.
        donors: Names of pods of which the scheduler is asked what comes of it without them.
    """

    name: str
    recipe: str
    nodes: list[Object] = field(default_factory=list)
    fillers: list[Object] = field(default_factory=list)
    subject: Object = field(default_factory=dict)
    cordoned: list[str] = field(default_factory=list)
    expected: tuple[str, ...] | None = None
    fits: bool | None = None
    donors: list[str] = field(default_factory=list)


class _Maker:
    """Puts one case together."""

    def __init__(self, name: str, recipe: str, namespace: str, dice: random.Random) -> None:
        self.case = Case(name, recipe)
        self.dice = dice
        self._namespace = namespace
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
        self.case.fillers.append(
            build.pod(name, self._namespace, labels=labels, gpus=gpus, nodeName=node, **self._spec(spec))
        )
        return name

    def ask(self, gpus: int, *, labels: dict[str, str] | None = None, **spec: Any) -> None:
        selector = {CASE: self.case.name, **spec.pop("node_selector", {})}
        self.case.subject = build.pod(
            f"{self.case.name}-subject",
            self._namespace,
            labels=labels,
            gpus=gpus,
            node_selector=selector,
            **self._spec(spec),
        )

    def _spec(self, spec: dict[str, Any]) -> dict[str, Any]:
        port = spec.pop("host_port", 0)
        made = {"cpu": "1", "memory": "1Gi", **spec}
        if port:
            container = build.pod_spec(cpu=made["cpu"], memory=made["memory"])["containers"][0]
            container["ports"] = [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]
            made["containers"] = [container]
        return made


def _shortage(make: _Maker) -> None:
    """Too few free on all nodes together."""
    free = make.dice.choice([0, 0, 1])
    first = make.gpu_node()
    for node in [first, *(make.gpu_node() for _ in range(make.dice.randint(0, 2)))]:
        left = free if node == first else 0
        make.case.donors.append(make.fill(node, 2))
        make.fill(node, NODE_GPUS - 2 - left)
    make.case.donors = make.dice.sample(make.case.donors, 1)
    make.ask(make.dice.choice([2, 4]))
    make.case.expected, make.case.fits = ("gpu-shortage",), False


def _fragmentation(make: _Maker) -> None:
    """Enough together, on no single node."""
    wanted = make.dice.choice([2, 4])
    count = make.dice.randint(2, 4)
    for _ in range(count):
        node = make.gpu_node()
        held = NODE_GPUS - (wanted - 1)
        make.case.donors.append(make.fill(node, 1))
        make.fill(node, held - 1)
    make.case.donors = make.dice.sample(make.case.donors, make.dice.randint(1, 2))
    make.ask(wanted)
    make.case.expected, make.case.fits = ("gpu-fragmentation",), False


def _never_fits(make: _Maker) -> None:
    for _ in range(make.dice.randint(1, 3)):
        make.gpu_node(gpus=4)
    make.ask(8)
    make.case.expected, make.case.fits = ("gpu-never-fits",), False


def _taints(make: _Maker) -> None:
    taint = {"key": "team", "value": "research", "effect": make.dice.choice(["NoSchedule", "NoExecute"])}
    for _ in range(make.dice.randint(1, 3)):
        make.gpu_node(taints=[taint])
    make.ask(make.dice.randint(1, 4))
    make.case.expected, make.case.fits = ("untolerated-taint",), False


def _tolerated(make: _Maker) -> None:
    make.gpu_node(taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])
    make.ask(2, tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}])
    make.case.fits = True


def _selector(make: _Maker) -> None:
    for _ in range(make.dice.randint(1, 3)):
        make.gpu_node(labels={"disk": "hdd"})
    make.ask(make.dice.randint(1, 4), node_selector={"disk": "nvme"})
    make.case.expected, make.case.fits = ("node-selector",), False


def _node_affinity(make: _Maker) -> None:
    for generation in make.dice.sample(["1", "2", "3"], 2):
        make.gpu_node(labels={"generation": generation})
    needs = {"matchExpressions": [{"key": "generation", "operator": "Gt", "values": ["3"]}]}
    make.ask(1, affinity={"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [needs]}}})
    make.case.expected, make.case.fits = ("node-affinity",), False


def _anti_affinity(make: _Maker) -> None:
    for _ in range(make.dice.randint(1, 3)):
        make.case.donors.append(make.fill(make.gpu_node(), 1, labels={"app": make.case.name}))
    term = {"labelSelector": {"matchLabels": {"app": make.case.name}}, "topologyKey": "kubernetes.io/hostname"}
    make.ask(1, affinity={"podAntiAffinity": {_REQUIRED: [term]}})
    make.case.donors = make.case.donors[:1]
    make.case.expected, make.case.fits = ("pod-anti-affinity",), False


def _affinity(make: _Maker) -> None:
    make.fill(make.gpu_node(), 1, labels={"app": "other"})
    term = {"labelSelector": {"matchLabels": {"app": "missing"}}, "topologyKey": "kubernetes.io/hostname"}
    make.ask(1, affinity={"podAffinity": {_REQUIRED: [term]}})
    make.case.expected, make.case.fits = ("pod-affinity",), False


def _spread(make: _Maker) -> None:
    """A third zone is demanded that no node has: wherever it went, it would be two against none."""
    for zone in ("a", "b"):
        make.fill(make.gpu_node(zone), 1, labels={"app": make.case.name})
    constraint = {
        "maxSkew": 1,
        "minDomains": 3,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": make.case.name}},
    }
    make.case.donors = [make.case.fillers[0]["metadata"]["name"]]
    make.ask(1, labels={"app": make.case.name}, topologySpreadConstraints=[constraint])
    make.case.expected, make.case.fits = ("topology-spread",), False


def _ports(make: _Maker) -> None:
    port = make.dice.randint(20000, 29000)
    for _ in range(make.dice.randint(1, 2)):
        make.case.donors.append(make.fill(make.gpu_node(), host_port=port))
    make.case.donors = make.case.donors[:1]
    make.ask(0, host_port=port)
    make.case.expected, make.case.fits = ("host-port",), False


def _cordon(make: _Maker) -> None:
    for _ in range(make.dice.randint(1, 3)):
        make.case.cordoned.append(make.gpu_node())
    make.ask(make.dice.randint(1, 4))
    make.case.expected, make.case.fits = ("cordoned",), False


def _cpu(make: _Maker) -> None:
    """GPUs are free; cores are not."""
    for _ in range(make.dice.randint(1, 2)):
        make.case.donors.append(make.fill(make.gpu_node(), cpu="188"))
    make.case.donors = make.case.donors[:1]
    make.ask(2, cpu="16")
    make.case.expected, make.case.fits = ("cpu-shortage",), False


def _memory(make: _Maker) -> None:
    for _ in range(make.dice.randint(1, 2)):
        make.case.donors.append(make.fill(make.gpu_node(), memory="2000Gi"))
    make.case.donors = make.case.donors[:1]
    make.ask(2, memory="200Gi")
    make.case.expected, make.case.fits = ("memory-shortage",), False


def _gated(make: _Maker) -> None:
    make.gpu_node()
    make.ask(1, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    make.case.expected, make.case.fits = ("scheduling-gate", "kueue-waiting"), False


def _fits(make: _Maker) -> None:
    """One node has room, and the others do not."""
    wanted = make.dice.choice([1, 2, 4])
    roomy = make.dice.randint(0, 2)
    for number in range(3):
        node = make.gpu_node()
        make.fill(node, NODE_GPUS - wanted if number == roomy else NODE_GPUS)
    make.ask(wanted)
    make.case.fits = True


def _mixture(make: _Maker) -> None:
    """Anything at once; the scheduler alone knows."""
    dice = make.dice
    for _ in range(dice.randint(2, 4)):
        taints = [{"key": "team", "value": "x", "effect": "NoSchedule"}] if dice.random() < 0.3 else []
        node = make.gpu_node(dice.choice("ab"), labels={"disk": dice.choice(["nvme", "hdd"])}, taints=taints)
        held = dice.choice([0, 4, 6, 7, 8])
        if held:
            make.case.donors.append(make.fill(node, held, labels={"app": dice.choice(["m", "n"])}))
        if dice.random() < 0.3:
            make.fill(node, cpu=dice.choice(["100", "190"]))
        if dice.random() < 0.2:
            make.case.cordoned.append(node)
    make.case.donors = dice.sample(make.case.donors, min(len(make.case.donors), dice.randint(1, 2)))
    spec: dict[str, Any] = {"cpu": dice.choice(["1", "16", "100"])}
    if dice.random() < 0.4:
        spec["node_selector"] = {"disk": "nvme"}
    if dice.random() < 0.3:
        spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
    if dice.random() < 0.3:
        term = {"labelSelector": {"matchLabels": {"app": "m"}}, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {dice.choice(["podAntiAffinity", "podAffinity"]): {_REQUIRED: [term]}}
    make.ask(dice.choice([1, 2, 4, 8]), **spec)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

RECIPES: dict[str, Callable[[_Maker], None]] = {
    "shortage": _shortage,
    "fragmentation": _fragmentation,
    "never-fits": _never_fits,
    "taints": _taints,
    "tolerated": _tolerated,
    "selector": _selector,
    "node-affinity": _node_affinity,
    "anti-affinity": _anti_affinity,
    "affinity": _affinity,
    "spread": _spread,
    "ports": _ports,
    "cordon": _cordon,
    "cpu": _cpu,
    "memory": _memory,
    "gated": _gated,
    "fits": _fits,
    "mixture": _mixture,
}
_OFTEN = ("shortage", "fragmentation", "fits", "fits", "mixture", "mixture", "mixture", "mixture")


def fresh_cases(count: int, namespace: str, seed: int, *, first: int = 0) -> list[Case]:
    """`count` cases: every recipe in turn, the usual ones more often."""
    dice = random.Random(seed + first)
    turns = [*RECIPES, *_OFTEN]
    cases = []
    for number in range(first, first + count):
        recipe = turns[number % len(turns)]
        make = _Maker(f"c{number:03}", recipe, namespace, dice)
        RECIPES[recipe](make)
        if recipe != "ports" and dice.random() < 0.5:
            make.cpu_node()  # "Insufficient nvidia.com/gpu" there is no shortage of GPUs
        cases.append(make.case)
    return cases
