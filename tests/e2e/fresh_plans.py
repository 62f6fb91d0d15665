"""
Generated clusters of plans (`tests.unit.remediation.planning.generated_clusters`) built on the live API server.

Each is an island: nodes and products of its own, and every pod selects its nodes.  Pods of donors are bound by hand to
the node that the generator gave them, so that nothing depends on where a scheduler would put them; who waits is left
to the real scheduler.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sevenhop.core.events import Applied, SourceChanged, SyncState
from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation.plan import Answer
from sevenhop.core.remediation.planning import Reservations, need_of, plan_for
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.frameworks.scaling import SCALING
from tests.e2e.scaling_cast import read_all
from tests.e2e.scenes import Scene, is_refused
from tests.testbed import build
from tests.testbed.client import Client, Object
from tests.testbed.waiting import eventually
from tests.unit.frameworks.running import objects_of
from tests.unit.remediation.planning.generated_clusters import PRODUCT_LABEL, Made, MadeDonor, MadeWaiting, made
from tests.unit.remediation.planning.planning_scene import playbook

ISLAND = "sevenhop.dev/island"
BY_HAND = "by-hand"
MOST_REPLICAS = 3


@dataclass
class Island:
    """One generated cluster; `name` begins the names of all that is in it."""

    name: str
    seed: int
    spec: Made

    @property
    def workload(self) -> str:
        return f"{self.name}-needy"

    def product(self, name: str) -> str:
        return f"{name}-{self.name}"


def islands(count: int, first_seed: int) -> Iterator[Island]:
    """So many of them that the live API server can hold: see `_told`."""
    seed, found = first_seed, 0
    while found < count:
        spec = made(seed)
        if spec is not None:
            yield Island(f"i{found:03}", seed, _told(spec))
            found += 1
        seed += 1


def _told(spec: Made) -> Made:
    """Without what this test does not build: donors of other choosers become Deployments, and none of them waits."""
    donors = []
    for donor in spec.donors:
        chooser = "highest" if donor.chooser == "highest" else "replica-set"
        pods = [pod for pod in donor.pods if pod[0]]
        donors.append(replace(donor, chooser=chooser, pods=pods, floor=0))
    return replace(spec, donors=donors)


def create(here: Scene, all_islands: Sequence[Island]) -> None:
    """Everything but who waits; returns when all donors stand as they should."""
    names = []
    for island in all_islands:
        for node, (gpus, product) in island.spec.nodes.items():
            manifest = build.gpu_node(
                f"{island.name}-{node}", product=island.product(product), gpus=gpus, labels={ISLAND: island.name}
            )
            names.append(here.client.create(manifest)["metadata"]["name"])
            here.pool.names.append(names[-1])
    for name in names:
        here.client.wait_for("v1", "Node", name, until=lambda node: not node["spec"].get("taints"))
    for island in all_islands:
        for donor in island.spec.donors:
            here.client.create(_donor(here.namespace, island, donor))
    for island in all_islands:
        for donor in island.spec.donors:
            _bind(here, island, donor)
    expected = sum(len(donor.pods) for island in all_islands for donor in island.spec.donors)
    _wait_for_ready(here, expected)
    eventually(lambda: all(map(_is_complete, here.client.list("apps/v1", "Deployment", here.namespace))))
    # Only now, or their Deployments would never have been rolled out.
    unready = [name for island in all_islands for donor in island.spec.donors for name in _bad(here, island, donor)]
    for name in unready:
        patch = {"metadata": {"annotations": {"sevenhop.dev/testbed": "unready"}}}
        here.client.patch("v1", "Pod", name, here.namespace, patch)
    _wait_for_ready(here, expected - len(unready))


def _wait_for_ready(here: Scene, count: int) -> None:
    eventually(lambda: sum(map(_is_ready, here.pods())) == count, timeout=90, every=0.5, what=f"{count} ready donors")


def _is_complete(deployment: Object) -> bool:
    conditions = deployment.get("status", {}).get("conditions", [])
    return any(c["type"] == "Progressing" and c["reason"] == "NewReplicaSetAvailable" for c in conditions)


def _bad(here: Scene, island: Island, donor: MadeDonor) -> list[str]:
    """Names of its pods that shall not be ready."""
    found = here.client.list("v1", "Pod", here.namespace, labels=f"app={island.name}-{donor.name}")
    names = sorted(str(pod["metadata"]["name"]) for pod in found)
    return [name for name, (_, ready) in zip(names, donor.pods, strict=True) if not ready]


def _donor(namespace: str, island: Island, donor: MadeDonor) -> Object:
    name = f"{island.name}-{donor.name}"
    manifest = build.vllm_deployment(
        name, namespace, f"org/{name}", gpus=donor.gpus, replicas=len(donor.pods), cpu="1m", memory="1Mi",
        annotations={"sevenhop.dev/tier": donor.tier}, node_selector={ISLAND: island.name},
        priority_class=class_of(island.spec.priority), schedulerName=BY_HAND,
    )  # fmt: skip
    if donor.chooser == "highest":
        manifest["kind"] = "StatefulSet"
        manifest["spec"] |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return manifest


def _bind(here: Scene, island: Island, donor: MadeDonor) -> None:
    """Its pods to their nodes, in order of name."""
    name = f"{island.name}-{donor.name}"

    def look() -> list[Object] | None:
        pods = here.client.list("v1", "Pod", here.namespace, labels=f"app={name}")
        return pods if len(pods) == len(donor.pods) else None

    found = eventually(look, timeout=60, every=0.2, what=f"pods of {name}")
    for pod, (node, _) in zip(sorted(found, key=lambda p: str(p["metadata"]["name"])), donor.pods, strict=True):
        at = pod["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": f"{island.name}-{node}"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": at}, "target": target}
        path = here.client.path("v1", "Pod", at, here.namespace, "binding")
        status, text = here.client.request("POST", path, json.dumps(binding).encode(), "application/json")
        assert status == 201, text


def ask(here: Scene, all_islands: Sequence[Island]) -> None:
    """Create who waits, those that wait longer first and more than a second apart, until the scheduler has refused."""
    asked = [(each, island) for island in all_islands for each in island.spec.waiting]
    count = 0
    for since in sorted({each.since for each, _ in asked}):
        now = [(each, island) for each, island in asked if each.since == since]
        for each, island in sorted(now, key=lambda row: row[0] is row[1].spec.need):
            here.client.create(_waiting(here.namespace, island, each))
            count += each.pods
        eventually(
            lambda want=count: sum(map(is_refused, _asking(here))) == want,  # type: ignore[misc]
            timeout=60, every=0.3, what=f"{count} pods that wait",
        )  # fmt: skip
        time.sleep(1.1)


def _asking(here: Scene) -> list[Object]:
    return [pod for pod in here.pods("asks=true") if not pod["spec"].get("nodeName")]


def _waiting(namespace: str, island: Island, each: MadeWaiting) -> Object:
    where = {ISLAND: island.name}
    if each.product:
        where[PRODUCT_LABEL] = island.product(each.product)
    name = f"{island.name}-{each.name}"
    return build.vllm_deployment(
        name, namespace, f"org/{name}", gpus=each.gpus, replicas=each.pods, cpu="1m", memory="1Mi",
        labels={"asks": "true"}, annotations={"sevenhop.dev/tier": each.tier}, node_selector=where,
        priority_class=class_of(each.priority),
    )  # fmt: skip


def class_of(priority: int) -> str:
    return f"fresh-{priority}" if priority else ""


def state_of(client: Client, namespace: str) -> tuple[State, datetime]:
    """The inventory of what the API server has now, as the service would build it, and when."""
    inventory = Inventory("fresh", FRAMEWORKS, Policy())
    manifests = read_all(client, namespace)
    now = datetime.now(UTC)
    seq, seen = 0, objects_of(manifests)
    for kind in KINDS:
        for obj in seen.of(kind).values():
            seq += 1
            inventory.apply(Applied(at=now, epoch=1, seq=seq, kind=kind, obj=obj))
    for kind in KINDS:
        inventory.apply(SourceChanged(at=now, epoch=1, seq=seq + 1, kind=kind, state=SyncState.SYNCED))
    inventory.settle(now)
    return inventory.state, now


def plan(state: State, namespace: str, island: Island, now: datetime) -> Answer:
    """What planning says of the island's need."""
    need = need_of(state, ((namespace, island.workload), "engine"), now)
    if isinstance(need, Answer):
        return need
    return plan_for(
        state, need, playbook=playbook(MOST_REPLICAS, 64), incident=island.name, scaling=SCALING,
        reserved=Reservations(), now=now,
    )  # fmt: skip


def _is_ready(pod: Object) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def nodes_of(pods: Iterable[Object]) -> dict[str, str]:
    """Pod to its node, empty without one."""
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}
