"""An inventory that a test tells things, and asks for facts."""

from __future__ import annotations

from collections.abc import Iterable

from sevenhop.core.events import Event, SyncState
from sevenhop.core.facts.schema import FactValue, Unknown
from sevenhop.core.inventory.inventory import Inventory, Settled
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.base import Object
from sevenhop.core.subject import Subject
from sevenhop.frameworks import FRAMEWORKS
from tests.builders import Feed, at

SHORT = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."


class Scene:
    """
    Everything is listed already, unless a test says otherwise.  Time goes on by a second with every step, so that
    throttles do not hold back what a test looks at.
    """

    def __init__(self, *objects: Object, policy: Policy | None = None, synced: bool = True) -> None:
        self.inventory = Inventory("test", FRAMEWORKS, policy or Policy())
        self.feed = Feed()
        self.seconds = 0.0
        self.last = Settled({}, set())
        if synced:
            self.tell(self.feed.synced())
        self.put(*objects)

    def put(self, *objects: Object, seconds: float | None = None) -> Settled:
        self._go_on(seconds)
        return self.tell(self.feed.applied(*objects, seconds=self.seconds))

    def delete(self, *objects: Object, seconds: float | None = None) -> Settled:
        self._go_on(seconds)
        return self.tell(self.feed.deleted(*objects, seconds=self.seconds))

    def source(self, *kinds: str, state: SyncState) -> Settled:
        return self.tell(self.feed.synced(*kinds, state=state, seconds=self.seconds))

    def tell(self, events: Iterable[Event]) -> Settled:
        for event in events:
            self.inventory.apply(event)
        return self.wait(self.seconds)

    def wait(self, seconds: float) -> Settled:
        """Settle at this time after noon."""
        self.seconds = seconds
        self.last = self.inventory.settle(at(seconds))
        return self.last

    def fact(self, subject: str, name: str) -> FactValue | Unknown:
        """``component:prod/llama-70b/decode``, ``waiting.cause``; labels by their own name."""
        parsed = Subject.parse(subject)
        facts = self.inventory.facts[parsed]
        full = f"{parsed.kind}.{name}"
        return facts[full] if full in facts else facts[name]

    def knows(self, subject: str) -> bool:
        return Subject.parse(subject) in self.inventory.facts

    def _go_on(self, seconds: float | None) -> None:
        self.seconds = self.seconds + 1 if seconds is None else seconds
