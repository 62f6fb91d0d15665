"""
A play on the stage of the failover tests: nodes that turn, what is true of them, and what was told.

Each turn is one message, so what is lost, doubled or repeated can be counted.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from tests.e2e.scaled_stage import Stage

CLUSTERS = ("alpha", "beta", "gamma", "delta")
NODES = 30


class Play:
    """The nodes' true state, and what was told of them."""

    def __init__(self, at: Stage) -> None:
        self.at = at
        self.ready = {(cluster, f"n{number}"): True for cluster in CLUSTERS for number in range(NODES)}
        self.last_turned: list[tuple[str, str]] = []

    def names(self) -> list[str]:
        return [f"n{number}" for number in range(NODES)]

    def nodes(self, cluster: str) -> dict[str, bool]:
        """Its nodes as they truly are."""
        return {name: self.ready[cluster, name] for name in self.names()}

    def change(self, half: int) -> int:
        """Turn every second node; returns how many."""
        turned = self.last_turned = [place for place in self.ready if int(place[1][1:]) % 2 == half]
        for cluster, name in turned:
            self.ready[cluster, name] = not self.ready[cluster, name]
            self.at.edges[cluster].set_ready(name, ready=self.ready[cluster, name])
        return len(turned)

    def told(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """Node to (status, delivery), each delivery once, in the order in which they came."""
        seen: set[str] = set()
        found: dict[tuple[str, str], list[tuple[str, str]]] = {}
        with self.at.inbox.lock:
            deliveries = list(self.at.inbox.deliveries)
        for _, delivery, body in deliveries:
            if delivery in seen:
                continue
            seen.add(delivery)
            place = (body["incident"]["cluster"], body["incident"]["cause"].removeprefix("node:"))
            found.setdefault(place, []).append((body["status"], delivery))
        return found

    def lost(self) -> list[tuple[str, str]]:
        """Nodes of which what was told last is not true."""
        told = self.told()
        return [
            place
            for place, ready in self.ready.items()
            if (told.get(place, [("resolved", "")])[-1][0] == "resolved") is not ready
        ]

    def is_heard(self) -> bool:
        """Whether one change of each cluster, of those made last, was told."""
        lost = set(self.lost())
        return {cluster for cluster, name in self.last_turned if (cluster, name) not in lost} == set(CLUSTERS)

    def doubled(self) -> list[str]:
        """Deliveries that tell anew what was told before them."""
        return [
            delivery
            for told in self.told().values()
            for (before, _), (status, delivery) in pairwise(told)
            if before == status
        ]

    def repeated(self) -> int:
        return sum(count - 1 for count in Counter(self.at.inbox.ids()).values())
