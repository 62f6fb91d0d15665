"""Fresh scheduling cases by chance: nodes, pods that fill them, one pod to be placed, and what must come of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.e2e import fresh_constraints, fresh_dependencies
from tests.e2e.fresh_maker import NODE_GPUS, REQUIRED, Case, Maker, without_gpus


def _shortage(make: Maker) -> None:
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


def _fragmentation(make: Maker) -> None:
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


def _never_fits(make: Maker) -> None:
    for _ in range(make.dice.randint(1, 3)):
        make.gpu_node(gpus=4)
    make.ask(8)
    make.case.expected, make.case.fits = ("gpu-never-fits",), False


def _taints(make: Maker) -> None:
    taint = {"key": "team", "value": "research", "effect": make.dice.choice(["NoSchedule", "NoExecute"])}
    for _ in range(make.dice.randint(1, 3)):
        make.gpu_node(taints=[taint])
    make.ask(make.dice.randint(1, 4))
    make.case.expected, make.case.fits = ("untolerated-taint",), False


def _tolerated(make: Maker) -> None:
    make.gpu_node(taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])
    make.ask(2, tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}])
    make.case.fits = True


def _selector(make: Maker) -> None:
    for _ in range(make.dice.randint(1, 3)):
        make.gpu_node(labels={"disk": "hdd"})
    make.ask(make.dice.randint(1, 4), node_selector={"disk": "nvme"})
    make.case.expected, make.case.fits = ("node-selector",), False


def _node_affinity(make: Maker) -> None:
    for generation in make.dice.sample(["1", "2", "3"], 2):
        make.gpu_node(labels={"generation": generation})
    needs = {"matchExpressions": [{"key": "generation", "operator": "Gt", "values": ["3"]}]}
    make.ask(1, affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [needs]}}})
    make.case.expected, make.case.fits = ("node-affinity",), False


def _anti_affinity(make: Maker) -> None:
    for _ in range(make.dice.randint(1, 3)):
        make.case.donors.append(make.fill(make.gpu_node(), 1, labels={"app": make.case.name}))
    term = {"labelSelector": {"matchLabels": {"app": make.case.name}}, "topologyKey": "kubernetes.io/hostname"}
    make.ask(1, affinity={"podAntiAffinity": {REQUIRED: [term]}})
    make.case.donors = make.case.donors[:1]
    make.case.expected, make.case.fits = ("pod-anti-affinity",), False


def _affinity(make: Maker) -> None:
    make.fill(make.gpu_node(), 1, labels={"app": "other"})
    term = {"labelSelector": {"matchLabels": {"app": "missing"}}, "topologyKey": "kubernetes.io/hostname"}
    make.ask(1, affinity={"podAffinity": {REQUIRED: [term]}})
    make.case.expected, make.case.fits = ("pod-affinity",), False


def _spread(make: Maker) -> None:
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


def _ports(make: Maker) -> None:
    port = make.dice.randint(20000, 29000)
    for _ in range(make.dice.randint(1, 2)):
        make.case.donors.append(make.fill(make.gpu_node(), host_port=port))
    make.case.donors = make.case.donors[:1]
    make.ask(0, host_port=port)
    make.case.expected, make.case.fits = ("host-port",), False


def _cordon(make: Maker) -> None:
    for _ in range(make.dice.randint(1, 3)):
        make.case.cordoned.append(make.gpu_node())
    make.ask(make.dice.randint(1, 4))
    make.case.expected, make.case.fits = ("cordoned",), False


def _cpu(make: Maker) -> None:
    """GPUs are free; cores are not."""
    for _ in range(make.dice.randint(1, 2)):
        make.case.donors.append(make.fill(make.gpu_node(), cpu="188"))
    make.case.donors = make.case.donors[:1]
    make.ask(2, cpu="16")
    make.case.expected, make.case.fits = ("cpu-shortage",), False


def _memory(make: Maker) -> None:
    for _ in range(make.dice.randint(1, 2)):
        make.case.donors.append(make.fill(make.gpu_node(), memory="2000Gi"))
    make.case.donors = make.case.donors[:1]
    make.ask(2, memory="200Gi")
    make.case.expected, make.case.fits = ("memory-shortage",), False


def _gated(make: Maker) -> None:
    make.gpu_node()
    make.ask(1, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    make.case.expected, make.case.fits = ("scheduling-gate", "kueue-waiting"), False


def _fits(make: Maker) -> None:
    """One node has room, and the others do not."""
    wanted = make.dice.choice([1, 2, 4])
    roomy = make.dice.randint(0, 2)
    for number in range(3):
        node = make.gpu_node()
        make.fill(node, NODE_GPUS - wanted if number == roomy else NODE_GPUS)
    make.ask(wanted)
    make.case.fits = True


def _mixture(make: Maker) -> None:
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
        spec["affinity"] = {dice.choice(["podAntiAffinity", "podAffinity"]): {REQUIRED: [term]}}
    make.ask(dice.choice([1, 2, 4, 8]), **spec)


RECIPES: dict[str, Callable[[Maker], None]] = {
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
    **fresh_constraints.RECIPES,
    **fresh_dependencies.RECIPES,
}
_OFTEN = ("shortage", "fragmentation", "fits", "fits", *("mixture",) * 4, *("wild",) * 8)


def fresh_cases(count: int, namespace: str, seed: int, *, first: int = 0, only: Sequence[str] = ()) -> list[Case]:
    """`count` cases: every recipe in turn, the usual ones more often; or `only` some."""
    dice = random.Random(seed + first)
    turns = only or [*RECIPES, *_OFTEN]
    cases = []
    for number in range(first, first + count):
        recipe = turns[number % len(turns)]
        make = Maker(f"c{number:03}", recipe, namespace, dice)
        RECIPES[recipe](make)
        closed = make.case.is_closed or without_gpus(make.case.subject)
        if not closed and dice.random() < 0.5:
            make.cpu_node()  # "Insufficient nvidia.com/gpu" there is no shortage of GPUs
        cases.append(make.case)
    return cases
