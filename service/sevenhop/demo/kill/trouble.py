"""The simulated cluster under the killed service: a decode worker is lost, helped and relieved, round after round."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp

from sevenhop.demo.kill.clock import SharedClock
from sevenhop.demo.manifests import GPU
from sevenhop.runtime.control_path import SOCKET, way_to_door
from sevenhop.simulation.cluster import SimulatedCluster
from sevenhop.simulation.store import Data

ISVC = "InferenceService.serving.kserve.io"
DONOR = ("docs", "summarizer")
_DECODE = "llama-70b-decode"
_AFTER_A_YES = ("succeeded", "restored", "undone", "failed", "unknown")
_MOVE_S = 0.05
_LOOK_S = 0.03
_ASK_WITHIN_S = 2.0

Row = dict[str, Any]


class Cluster:
    """
    A cluster whose time runs.

    Attributes:
        numbers: What the donor's InferenceService asked for at most, as it was set one after the other.
    """

    def __init__(self, cluster: SimulatedCluster, clock: SharedClock) -> None:
        self.simulated = cluster
        self._clock = clock
        self.numbers: list[int] = []
        cluster.store.listeners.append(self._note)
        self._note(ISVC)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self.simulated.advance(max(self._clock() - self.simulated.clock(), timedelta(0)))
            await asyncio.sleep(_MOVE_S)

    def lose(self) -> str:
        """A node with a decode worker loses GPUs until there is no room for another; gives the node."""
        store = self.simulated.store
        victim = min(
            (pod for pod in store.all("Pod", "chat") if _is_decode(pod) and pod["spec"].get("nodeName")),
            key=lambda pod: (-self._bound(pod["spec"]["nodeName"]), pod["metadata"]["name"]),
        )
        node = victim["spec"]["nodeName"]
        self._offer(node, self._bound(node) - 2 + 1)
        store.delete("Pod", "chat", victim["metadata"]["name"], grace_s=0)
        return str(node)

    def repair(self, node: str) -> None:
        self._offer(node, 8)

    def is_well(self) -> bool:
        """The donor has what it had, and every replica that is asked for serves."""
        donor = self.simulated.store.get("Deployment.apps", DONOR[0], f"{DONOR[1]}-predictor")
        everything = self.simulated.store.all("Deployment.apps")
        return donor["spec"]["replicas"] == self.numbers[-1] == self.numbers[0] and all(map(_serves, everything))

    def _bound(self, node: str) -> int:
        return sum(_gpus(pod) for pod in self.simulated.store.all("Pod") if pod["spec"].get("nodeName") == node)

    def _offer(self, node: str, gpus: int) -> None:
        amount = {GPU: str(gpus)}

        def offering(data: Data) -> Data:
            status = data["status"]
            sides = {side: {**status[side], **amount} for side in ("allocatable", "capacity")}
            return {**data, "status": {**status, **sides}}

        self.simulated.store.change("Node", "", node, offering)

    def _note(self, kind: str) -> None:
        if kind == ISVC:
            most = int(self.simulated.store.get(ISVC, *DONOR)["spec"]["predictor"]["maxReplicas"])
            if not self.numbers or self.numbers[-1] != most:
                self.numbers.append(most)


class Caller:
    """What a person at a terminal does: look at the plans, and say yes."""

    def __init__(self, state: Path) -> None:
        self._state = state

    async def plans(self) -> list[Row] | None:
        """None while nobody answers."""
        found = await self._ask("GET", "/get/plans")
        return found if isinstance(found, list) else None

    async def approve(self, plan_id: str) -> bool:
        """Whether it was answered; the same again is the same decision."""
        body = {"verb": "approve", "plan": plan_id, "request": f"yes-{plan_id}"}
        return await self._ask("POST", "/decide", body) is not None

    async def _ask(self, method: str, path: str, body: Row | None = None) -> Any:
        if not (self._state / SOCKET).exists():
            return None
        timeout = aiohttp.ClientTimeout(total=_ASK_WITHIN_S)
        try:
            with way_to_door(self._state) as way:
                async with (
                    aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=way), timeout=timeout) as session,
                    session.request(method, f"http://sevenhop{path}", json=body) as response,
                ):
                    return await response.json()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None  # it is starting, or was killed in the middle


class Rounds:
    """
    Lost, helped, relieved, and again.

    Attributes:
        done: Rounds that came to their end.
        approved: Plans that were approved, as far as the answer was heard.
        ends: Plans that are over, and how they ended.
        on_approve: Told when a yes is on its way.
    """

    def __init__(self, cluster: Cluster, caller: Caller, is_told: Callable[[], bool]) -> None:
        """
        Args:
            is_told: Whether all messages say that it is over.
        """
        self.done = 0
        self.approved: set[str] = set()
        self.ends: dict[str, str] = {}
        self.on_approve: Callable[[], None] = lambda: None
        self._cluster = cluster
        self._caller = caller
        self._is_told = is_told
        self._stops = asyncio.Event()

    def stop(self) -> None:
        """No further round is begun."""
        self._stops.set()

    async def run(self) -> None:
        while not self._stops.is_set():
            await self._one()
            self.done += 1

    async def _one(self) -> None:
        node = self._cluster.lose()
        helped = await self._approve_what_comes()
        self._cluster.repair(node)
        while not (self._cluster.is_well() and self._is_told() and await self._is_over(helped)):  # noqa: ASYNC110  it is in another process
            await asyncio.sleep(_LOOK_S)

    async def _approve_what_comes(self) -> str:
        """The plan that reached its goal, or ended otherwise."""
        while True:
            for row in await self._caller.plans() or ():
                if row["state"] == "proposed":
                    self.on_approve()
                    if await self._caller.approve(row["plan"]):
                        self.approved.add(row["plan"])
                elif row["plan"] not in self.ends and row["state"] in _AFTER_A_YES:
                    return str(row["plan"])
            await asyncio.sleep(_LOOK_S)

    async def _is_over(self, plan_id: str) -> bool:
        rows = await self._caller.plans()
        for row in rows or ():
            if row["stage"] == "over":
                self.ends[row["plan"]] = row["state"]
        return rows is not None and plan_id in self.ends and all(row["stage"] == "over" for row in rows)


def user() -> str:
    """Who this process runs as, as the service sees it on its socket."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _serves(deployment: Data) -> bool:
    status = deployment.get("status") or {}
    wanted = deployment["spec"]["replicas"]
    seen = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return bool(seen and status.get("readyReplicas") == wanted == status.get("replicas"))


def _is_decode(pod: Data) -> bool:
    return str(pod["metadata"]["name"]).startswith(_DECODE) and not pod["metadata"].get("deletionTimestamp")


def _gpus(pod: Data) -> int:
    containers = pod["spec"]["containers"]
    return sum(int(each.get("resources", {}).get("limits", {}).get(GPU, 0)) for each in containers)
