"""Engines with the shipped rules, driven in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import cache

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.effects import Notify, Row
from sevenhop.core.engine import Engine, Step
from sevenhop.core.events import Event
from sevenhop.core.facts.table import FACTS
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.base import Object
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.rulebook.load import load_rulebook
from tests.builders import Feed, at, deployment, dynamo, dynamo_pod, node, pod_of, replicaset
from tests.shared import ROOT

SHORT = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
LLAMA = dynamo("llama-70b", decode=3, annotations={"sevenhop.dev/tier": "critical"})
SUMMARIZER = deployment("summarizer", replicas=2, gpus=2, annotations={"sevenhop.dev/tier": "batch"})
REPLICAS = replicaset(SUMMARIZER)


@cache
def shipped_rules() -> tuple[Rule, ...]:
    return tuple(load_rulebook([ROOT / "rules"], FACTS).rules)


def engine(rules: Iterable[Rule] | None = None) -> Engine:
    settings = DeskSettings(receivers=("console",), group_wait=timedelta(0))
    return Engine("test", FRAMEWORKS, shipped_rules() if rules is None else rules, Policy(), settings)


def full_cluster() -> list[Object]:
    """Two nodes of four H100s, all of them in use, and one decode worker of three that is not there yet."""
    placed = [dynamo_pod(LLAMA, "decode", str(n), node=f"gpu-{n}") for n in (0, 1)]
    others = [pod_of(REPLICAS, str(n), node=f"gpu-{n}") for n in (0, 1)]
    return [node("gpu-0", gpus=4), node("gpu-1", gpus=4), LLAMA, SUMMARIZER, REPLICAS, *placed, *others]


def waiting_pod(suffix: str = "2", since: float = 10) -> Object:
    return dynamo_pod(LLAMA, "decode", suffix, unschedulable=SHORT, since=at(since))


class Machine:
    """
    One engine with its outbox and its store; `until` lets time pass, calling the engine when it wants to be called.
    """

    def __init__(self, store: dict[tuple[str, str], bytes] | None = None, *, seconds: float = 0) -> None:
        self.engine = engine()
        self.feed = Feed()
        self.store = {} if store is None else store
        self.sent: list[Notify] = []
        self.seconds = seconds
        self.steps: list[Step] = []
        if store is not None:
            rows = [Row(table, key, value) for (table, key), value in store.items()]
            self._take(self.engine.load(rows, at(seconds)))

    def tell(self, events: Sequence[Event], seconds: float | None = None) -> Step:
        self.seconds = self.seconds if seconds is None else seconds
        return self._take(self.engine.handle(events, at(self.seconds)))

    def put(self, *objects: Object, seconds: float) -> Step:
        return self.tell(self.feed.applied(*objects, seconds=seconds), seconds)

    def delete(self, *objects: Object, seconds: float) -> Step:
        return self.tell(self.feed.deleted(*objects, seconds=seconds), seconds)

    def until(self, seconds: float) -> None:
        while (wake := self.steps[-1].next_wake) is not None and wake <= at(seconds):
            self.tell((), max(self.seconds, (wake - at(0)).total_seconds()))
        self.tell((), seconds)

    def said(self) -> list[tuple[str, str, float]]:
        """(status, title, seconds after noon) of every message asked for, in order."""
        return [(n.message.status, n.message.title, (n.message.at - at(0)).total_seconds()) for n in self.sent]

    def _take(self, step: Step) -> Step:
        self.steps.append(step)
        self.sent += [effect for effect in step.effects if isinstance(effect, Notify)]
        for row in step.saves:
            if row.value is None:
                self.store.pop((row.table, row.key), None)
            else:
                self.store[(row.table, row.key)] = row.value
        return step
