"""The simulated cluster as a whole: store, API server, controllers, scheduler and kubelets in one virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from sevenhop.core.objects.kinds import Kind
from sevenhop.simulation.clock import VirtualClock
from sevenhop.simulation.controllers import Deployments, Garbage, Kubelets, ReplicaSets
from sevenhop.simulation.scheduler import Scheduler
from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.simulation.store import Data, Store

_MOST_ROUNDS = 1000


class Controller(Protocol):
    """Brings the store closer to what is wanted."""

    def step(self) -> datetime | None:
        """Do what can be done now; gives the time at which more will be due, if it is known."""
        ...


class UnsettledError(Exception):
    """The controllers do not come to rest: two of them undo each other's work."""


class SimulatedCluster:
    """
    Nothing happens by itself: `settle` lets the controllers work, `advance` lets time pass.

    Args:
        clock: Virtual time; moved by `advance` alone.
        load_s: Seconds that a pod needs from running to ready.
        controllers: More of them, such as an operator's; made with the store.
        kinds: What the API server serves; all of ours if not given.
    """

    def __init__(
        self,
        clock: VirtualClock,
        *,
        load_s: Callable[[Data], float] = lambda _: 3.0,
        controllers: Sequence[Callable[[Store], Controller]] = (),
        kinds: Iterable[Kind] | None = None,
        bookmark_s: float = 10.0,
    ) -> None:
        self.clock = clock
        self.store = Store(clock, kinds)
        self.server = ApiServerSimulation(self.store, bookmark_s=bookmark_s)
        self.kubelets = Kubelets(self.store, clock, load_s=load_s)
        self._controllers: list[Controller] = [
            *(make(self.store) for make in controllers),
            Deployments(self.store),
            ReplicaSets(self.store),
            Scheduler(self.store, clock),
            self.kubelets,
            Garbage(self.store),
        ]

    def add(self, make: Callable[[Store], Controller]) -> None:
        """One more controller, such as an operator that takes over a world as it stands."""
        self._controllers.insert(0, make(self.store))

    def settle(self) -> datetime | None:
        """
        Let the controllers work until nothing changes; gives the time at which something is due next.

        Raises:
            UnsettledError: They do not come to rest.
        """
        for _ in range(_MOST_ROUNDS):
            before = self.store.revision
            due = [at for controller in self._controllers if (at := controller.step()) is not None]
            if self.store.revision == before:
                return min(due, default=None)
        raise UnsettledError(f"no rest after {_MOST_ROUNDS} rounds")

    def advance(self, by: timedelta) -> None:
        """Let time pass, stopping wherever something is due."""
        until = self.clock() + by
        while (due := self.settle()) is not None and due <= until:
            self.clock.advance_to(due)
        self.clock.advance_to(until)
        self.settle()

    def apply(self, kind: str, data: Data) -> Data:
        """Create an object, or replace one of that name; its status only if `data` has one."""
        meta: dict[str, Any] = dict(data["metadata"])
        namespaced = next(k for k in self.store.kinds() if k.name == kind).namespaced
        namespace = meta.get("namespace", "default") if namespaced else ""
        before = self.store.find(kind, namespace, meta["name"])
        if before is None:
            return self.store.create(kind, data)
        status = {"status": before["status"]} if "status" in before and "status" not in data else {}
        return self.store.update(kind, {**data, **status, "metadata": {**before["metadata"], **meta}})


def gpu_node(name: str, product: str, gpus: int, *, cpu: int = 96, memory: str = "1Ti", **labels: str) -> Data:
    """A ready node with GPUs of a product, labelled as NVIDIA's feature discovery does; `gpus` 0 for a plain node."""
    amounts: Data = {"cpu": str(cpu), "memory": memory, "pods": "110", "ephemeral-storage": "1Ti"}
    own: dict[str, str] = {"kubernetes.io/hostname": name}
    if gpus:
        amounts["nvidia.com/gpu"] = str(gpus)
        own |= {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(gpus)}
    return {
        "metadata": {"name": name, "labels": {**own, **labels}},
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3"},
        },
    }
