"""Fresh scheduling cases about what nodes and pods permit: spreads, affinities, ports, taints, products, priority."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.fresh_maker import NODE_GPUS, REQUIRED, Maker
from tests.testbed.client import Object

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
HASH = "pod-template-hash"


def spread(make: Maker, key: str, **more: Any) -> Object:
    """A constraint that counts the pods of the case's application."""
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": make.case.name}},
        **more,
    }


def _apart(make: Maker, app: str, key: str = HOST, **more: Any) -> Object:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}


def _spread_full(make: Maker) -> None:
    """The only zone that the spread allows is full."""
    app = {"app": make.case.name}
    held = make.dice.randint(1, 2)
    for _ in range(held):
        make.case.donors.append(make.fill(make.gpu_node("a"), 1, labels=app))
    full = make.gpu_node("b")
    make.case.donors.append(make.fill(full, NODE_GPUS))
    make.case.donors = make.dice.sample(make.case.donors, 1)
    make.ask(2, labels=app, topologySpreadConstraints=[spread(make, ZONE, maxSkew=held)])
    make.case.is_closed = True
    make.refused("topology-spread", "gpu-shortage")


def _spread_tainted(make: Maker) -> None:
    """The emptier zone is tainted; whether it counts is the constraint's policy."""
    app = {"app": make.case.name}
    make.fill(make.gpu_node("a"), 1, labels=app)
    make.gpu_node("b", taints=[{"key": "team", "value": "x", "effect": "NoSchedule"}])
    policy = make.dice.choice([{}, {"nodeTaintsPolicy": "Ignore"}, {"nodeTaintsPolicy": "Honor"}])
    make.ask(1, labels=app, topologySpreadConstraints=[spread(make, ZONE, **policy)])
    make.case.is_closed = True
    if policy.get("nodeTaintsPolicy") == "Honor":
        make.case.fits = True
    else:
        make.refused("topology-spread", "untolerated-taint")


def _spread_affinity(make: Maker) -> None:
    """A zone that the pod may not go to counts if the constraint ignores affinity."""
    app = {"app": make.case.name}
    make.fill(make.gpu_node("a", labels={"disk": "nvme"}), 1, labels=app)
    make.gpu_node("b", labels={"disk": "hdd"})
    policy = make.dice.choice(["Ignore", "Honor"])
    constraint = spread(make, ZONE, nodeAffinityPolicy=policy)
    make.ask(1, labels=app, node_selector={"disk": "nvme"}, topologySpreadConstraints=[constraint])
    make.case.is_closed = True
    if policy == "Honor":
        make.case.fits = True
    else:
        # Zones of other cases count as well, and are empty.
        make.refused("topology-spread", "node-selector")


def _spread_revision(make: Maker) -> None:
    """Old pods of the application count unless the constraint looks at the revision."""
    make.fill(make.gpu_node("a"), 1, labels={"app": make.case.name, HASH: "old"})
    make.fill(make.gpu_node("b"), NODE_GPUS)
    same = make.dice.random() < 0.5
    keys = {"matchLabelKeys": [HASH]} if same else {}
    make.ask(1, labels={"app": make.case.name, HASH: "new"}, topologySpreadConstraints=[spread(make, ZONE, **keys)])
    make.case.is_closed = True
    if same:
        make.case.fits = True
    else:
        make.refused("topology-spread", "gpu-shortage")


def _affinity_full(make: Maker) -> None:
    """The only zone that the affinity allows is full."""
    make.fill(make.gpu_node("a"), NODE_GPUS, labels={"app": make.case.name})
    make.gpu_node("b")
    make.case.donors = [make.fill(make.gpu_node("a"), NODE_GPUS)]
    make.ask(make.dice.choice([1, 4]), affinity={"podAffinity": {REQUIRED: [_apart(make, make.case.name, ZONE)]}})
    make.case.is_closed = True
    make.refused("pod-affinity", "gpu-shortage")


def _first_of_its_kind(make: Maker) -> None:
    """A pod with affinity to itself may start where nobody of its kind is yet."""
    make.gpu_node()
    term = _apart(make, make.case.name, ZONE)
    make.ask(1, labels={"app": make.case.name}, affinity={"podAffinity": {REQUIRED: [term]}})
    make.case.fits = True


def _repelled(make: Maker) -> None:
    """It is the others that do not want it beside them, in the namespaces that they name."""
    scope: dict[str, Any] = make.dice.choice([{}, {"namespaceSelector": {}}, {"namespaces": ["elsewhere"]}])
    term = _apart(make, make.case.name, make.dice.choice([HOST, ZONE]), **scope)
    make.case.donors = [
        make.fill(make.gpu_node(), 1, labels={"app": "guard"}, affinity={"podAntiAffinity": {REQUIRED: [term]}})
    ]
    make.ask(1, labels={"app": make.case.name})
    make.case.is_closed = True
    if "namespaces" in scope:
        make.case.fits = True
    else:
        make.refused("pod-anti-affinity")


def _port_forms(make: Maker) -> None:
    """Address and protocol tell ports apart, and every address conflicts with each single one."""
    dice, number = make.dice, make.dice.randint(20000, 29000)
    held, wanted, clash = dice.choice([
        (("", "TCP", number), ("", "UDP", number), False),
        (("127.0.0.1", "TCP", number), ("127.0.0.2", "TCP", number), False),
        (("127.0.0.1", "TCP", number), ("", "TCP", number), True),
        (("", "UDP", number), ("127.0.0.1", "UDP", number), True),
    ])  # fmt: skip
    for _ in range(dice.randint(1, 2)):
        make.case.donors.append(make.fill(make.gpu_node(), ports=[held]))
    make.case.donors = make.case.donors[:1]
    make.ask(1, ports=[wanted])
    make.case.is_closed = True
    if clash:
        make.refused("host-port")
    else:
        make.case.fits = True


def _toleration_forms(make: Maker) -> None:
    """What a toleration covers: any key, any effect, or not quite what is there."""
    taints = [{"key": "team", "value": "x", "effect": "NoSchedule"}, {"key": "gpu", "effect": "NoExecute"}]
    forms: list[tuple[list[dict[str, str]], bool]] = [
        ([{"operator": "Exists"}], True),
        ([{"key": "team", "value": "x"}, {"key": "gpu", "operator": "Exists"}], True),
        ([{"key": "team", "value": "x"}], False),
        ([{"key": "team", "value": "y"}, {"key": "gpu", "operator": "Exists"}], False),
        ([{"key": "team", "operator": "Exists", "effect": "NoExecute"}, {"key": "gpu", "operator": "Exists"}], False),
        ([{"key": "gpu", "value": "", "effect": "NoExecute"}, {"key": "team", "operator": "Exists"}], True),
    ]
    tolerations, covers = make.dice.choice(forms)
    make.gpu_node(taints=taints)
    make.ask(1, tolerations=tolerations)
    make.case.is_closed = True
    if covers:
        make.case.fits = True
    else:
        make.refused("untolerated-taint")


def _preferred_only(make: Maker) -> None:
    """What is only preferred keeps no pod away."""
    make.gpu_node(taints=[{"key": "team", "value": "x", "effect": "PreferNoSchedule"}])
    soft = spread(make, ZONE, whenUnsatisfiable="ScheduleAnyway")
    make.ask(1, topologySpreadConstraints=[soft])
    make.case.fits = True


def _products(make: Maker) -> None:
    """The product that it names is taken; GPUs of another are free, and no help."""
    for _ in range(make.dice.randint(1, 2)):
        make.gpu_node(product="NVIDIA-L40S")
    node = make.gpu_node()
    make.case.donors = [make.fill(node, 4)]
    make.fill(node, 4)
    make.ask(2, node_selector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    make.refused("gpu-shortage")


def _any_product(make: Maker) -> None:
    """It names two products, and one of them is free."""
    make.fill(make.gpu_node(), NODE_GPUS)
    make.gpu_node(product="NVIDIA-L40S")
    make.gpu_node(product="NVIDIA-L4", gpus=1)
    wanted = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S"]}
    make.ask(2, affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}})
    make.case.fits = True


def _sliced(make: Maker, count: int, profile: str) -> str:
    node = make.gpu_node(gpus=NODE_GPUS, allocatable=0)
    status = make.case.nodes[-1]["status"]
    for amounts in (status["capacity"], status["allocatable"]):
        del amounts["nvidia.com/gpu"]
        amounts[f"nvidia.com/mig-{profile}"] = str(count)
    return node


def _mig(make: Maker) -> None:
    """Slices of the wanted profile are taken; others are free."""
    wanted = make.dice.choice(["1g.10gb", "3g.40gb"])
    for _ in range(make.dice.randint(1, 2)):
        node = _sliced(make, 4, wanted)
        make.case.donors.append(make.fill(node, 0, limits={f"nvidia.com/mig-{wanted}": "2"}))
        make.fill(node, 0, limits={f"nvidia.com/mig-{wanted}": "1"})
    _sliced(make, 4, "2g.20gb")
    make.case.donors = make.case.donors[:1]
    make.ask(0, limits={f"nvidia.com/mig-{wanted}": "2"})
    make.refused("mig-shortage")


def _not_offered(make: Maker) -> None:
    """No node has a resource of that name."""
    make.gpu_node()
    make.ask(0, limits={"vendor.example/npu": "1"})
    make.refused("extended-resource-unknown")


def _plugin_silent(make: Maker) -> None:
    """Labels speak of GPUs, and nothing offers them."""
    for _ in range(make.dice.randint(1, 2)):
        make.gpu_node(allocatable=0)
        status = make.case.nodes[-1]["status"]
        for amounts in (status["capacity"], status["allocatable"]):
            amounts["nvidia.com/gpu"] = "0"
    make.ask(make.dice.randint(1, 8))
    make.refused("device-plugin-not-advertising")


def _not_ready(make: Maker) -> None:
    """The kubelet says that its node is not ready."""
    make.case.not_ready.append(make.gpu_node())
    make.ask(make.dice.randint(1, 4))
    make.refused("node-not-ready")


def _other_scheduler(make: Maker) -> None:
    """Nobody looks at it who is here."""
    make.gpu_node()
    make.ask(1, schedulerName="volcano")
    make.refused("other-scheduler")


def _unhealthy(make: Maker) -> None:
    """The GPUs that turned bad are the ones that it would need."""
    for _ in range(make.dice.randint(1, 2)):
        make.gpu_node(allocatable=make.dice.randint(2, 3))
    make.ask(4)
    make.refused("gpus-unhealthy")


def _combination(make: Maker) -> None:
    """GPUs are free on one node, and cores on the other."""
    other: dict[str, Any] = make.dice.choice([{"cpu": "188"}, {"memory": "2000Gi"}])
    make.case.donors.append(make.fill(make.gpu_node(), **other))
    make.case.donors.append(make.fill(make.gpu_node(), NODE_GPUS))
    make.case.donors = make.dice.sample(make.case.donors, 1)
    make.ask(2, cpu="16", memory="200Gi")
    make.refused("resource-combination")


def _crowded(make: Maker) -> None:
    """The kubelet takes no more pods."""
    node = make.gpu_node()
    for amounts in (make.case.nodes[-1]["status"]["capacity"], make.case.nodes[-1]["status"]["allocatable"]):
        amounts["pods"] = "2"
    make.case.donors = [make.fill(node, labels={"a": "b"}), make.fill(node, labels={"a": "b"})][:1]
    make.ask(1)
    make.case.is_closed = True
    make.refused("too-many-pods")


def _scratch_space(make: Maker) -> None:
    """GPUs are free; the node's disk is not."""
    make.case.donors = [make.fill(make.gpu_node(), limits={"ephemeral-storage": "2Ti"})]
    make.ask(1, limits={"ephemeral-storage": "2Ti"})
    make.refused("ephemeral-storage-shortage")


def _never_preempts(make: Maker) -> None:
    """It ranks higher than who has the GPUs, and its class forbids to push them out."""
    low, high = make.priority("low", 10), make.priority("high", 1000, preempts=False)
    node = make.gpu_node()
    make.case.donors = [make.fill(node, 4, priority_class=low)]
    make.fill(node, 4, priority_class=low)
    make.ask(2, priority_class=high)
    make.refused("gpu-shortage")


def _preempts(make: Maker) -> None:
    """The scheduler pushes out who ranks lower."""
    low, high = make.priority("low", 10), make.priority("high", 1000)
    for _ in range(make.dice.randint(1, 2)):
        node = make.gpu_node()
        make.fill(node, 4, priority_class=low)
        make.fill(node, 4, priority_class=make.dice.choice([low, high]))
    make.ask(make.dice.choice([2, 4]), priority_class=high)
    make.case.fits = True


def _starts_big(make: Maker) -> None:
    """An init container asks for more than the pod runs with, and a sidecar adds up."""
    node = make.gpu_node()
    make.fill(node, 4)
    big = make.dice.choice(["100", "189"])
    init = {"name": "fetch", "image": "busybox:1.37", "resources": {"requests": {"cpu": big}}}
    sidecar = {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}
    order = [sidecar, init] if make.dice.random() < 0.5 else [init, sidecar]
    make.ask(2, initContainers=order)  # 1 core for the filler: 191 are left


def wild(make: Maker) -> None:
    """Many demands at once, in two zones, on nodes of two products; the scheduler alone knows."""
    dice = make.dice
    products = ["NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S"]
    low, high = make.priority("low", -10), make.priority("high", 1000)
    for _ in range(dice.randint(2, 5)):
        taints = [{"key": "team", "value": dice.choice("xy"), "effect": "NoSchedule"}] if dice.random() < 0.2 else []
        labels = {"disk": dice.choice(["nvme", "hdd"]), "generation": dice.choice("123")}
        node = make.gpu_node(dice.choice("abc"), labels=labels, taints=taints, product=dice.choice(products))
        port_is_free = True  # a kubelet takes no second pod with the same one
        for _ in range(dice.randint(0, 3)):
            more: dict[str, Any] = {"cpu": dice.choice(["1", "60"]), "priority_class": dice.choice([low, "", high])}
            if port_is_free and dice.random() < 0.3:
                port_is_free = False
                more["ports"] = [(dice.choice(["", "127.0.0.1"]), dice.choice(["TCP", "UDP"]), 23456)]
            if dice.random() < 0.2:
                term = _apart(make, dice.choice("mn"), dice.choice([HOST, ZONE]))
                more["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}
            held = make.fill(node, dice.choice([0, 1, 2]), labels={"app": dice.choice("mno"), HASH: "1"}, **more)
            make.case.donors.append(held)
        if dice.random() < 0.1:
            make.case.cordoned.append(node)
    make.case.donors = dice.sample(make.case.donors, min(len(make.case.donors), dice.randint(1, 3)))
    rank = dice.choice(["", "", high, make.priority("patient", 1000, preempts=False)])
    make.ask(
        dice.choice([1, 2, 4, 6]),
        priority_class=rank,
        labels={"app": dice.choice("mno"), HASH: dice.choice("12")},
        **_demands(make),
    )


def _demands(make: Maker) -> dict[str, Any]:
    dice = make.dice
    spec: dict[str, Any] = {"cpu": dice.choice(["1", "60", "130"])}
    if dice.random() < 0.3:
        spec["node_selector"] = {"disk": "nvme"}
    if dice.random() < 0.4:
        spec["tolerations"] = [dice.choice([{"key": "team", "operator": "Exists"}, {"key": "team", "value": "x"}])]
    if dice.random() < 0.3:
        spec["ports"] = [(dice.choice(["", "127.0.0.1"]), "TCP", 23456)]
    if dice.random() < 0.5:
        selector = {"matchLabels": {"app": dice.choice("mno")}}
        more: dict[str, Any] = {"labelSelector": selector, "maxSkew": dice.choice([1, 2])}
        more |= dice.choice([{}, {"minDomains": 2}, {"nodeTaintsPolicy": "Honor"}, {"matchLabelKeys": [HASH]}])
        spec["topologySpreadConstraints"] = [spread(make, dice.choice([HOST, ZONE]), **more)]
    affinity: dict[str, Any] = {}
    if dice.random() < 0.3:
        affinity["podAntiAffinity"] = {REQUIRED: [_apart(make, dice.choice("mno"), dice.choice([HOST, ZONE]))]}
    if dice.random() < 0.3:
        affinity["podAffinity"] = {REQUIRED: [_apart(make, dice.choice("mno"), dice.choice([HOST, ZONE]))]}
    if dice.random() < 0.3:
        terms = [
            {"matchExpressions": [{"key": "generation", "operator": "Gt", "values": ["1"]}]},
            {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["hdd"]}]},
        ]
        affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": dice.sample(terms, dice.randint(1, 2))}}
    if affinity:
        spec["affinity"] = affinity
    return spec


RECIPES: dict[str, Callable[[Maker], None]] = {
    "spread-full": _spread_full,
    "spread-tainted": _spread_tainted,
    "spread-affinity": _spread_affinity,
    "spread-revision": _spread_revision,
    "affinity-full": _affinity_full,
    "first-of-its-kind": _first_of_its_kind,
    "repelled": _repelled,
    "port-forms": _port_forms,
    "toleration-forms": _toleration_forms,
    "preferred-only": _preferred_only,
    "products": _products,
    "any-product": _any_product,
    "mig": _mig,
    "not-offered": _not_offered,
    "plugin-silent": _plugin_silent,
    "unhealthy": _unhealthy,
    "not-ready": _not_ready,
    "other-scheduler": _other_scheduler,
    "combination": _combination,
    "crowded": _crowded,
    "scratch-space": _scratch_space,
    "never-preempts": _never_preempts,
    "preempts": _preempts,
    "starts-big": _starts_big,
    "wild": wild,
}
