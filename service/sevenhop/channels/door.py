"""Where people's decisions come in: what a channel with buttons needs of the service, and what it offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from sevenhop.core.effects import Message, Reply
from sevenhop.core.events import BreakerReset, Decided, Silenced, SwitchSet

Handler = Callable[[Any], Awaitable[Any]]
"""An aiohttp request to its response."""


class RefusedError(Exception):
    """Nothing was done; one line for whoever asked that says why."""


class Decider(Protocol):
    """Who takes decisions."""

    async def ask(self, event: Decided | SwitchSet | BreakerReset, cluster: str = "") -> Reply:
        """
        Hand a decision to the core; returns once it is stored what came of it.

        Args:
            cluster: Whose; empty where the decision says it (a plan is of one cluster), or where all are meant.

        Raises:
            TimeoutError: Nobody has answered yet; it may still be followed, and the same request again counts once.
        """
        ...


class Front(Decider, Protocol):
    """The service, as a door sees it."""

    async def silence(self, event: Silenced) -> None:
        """
        Returns once it is stored.

        Raises:
            RefusedError: It was not taken.
            TimeoutError: Nobody has stored it yet.
        """
        ...

    async def message(self, incident_id: str) -> Message | None:
        """The incident as it was last told; None if it is not known (any more)."""
        ...

    async def status(self) -> str:
        """One paragraph on the switch, the breaker and what runs."""
        ...


class Door(Protocol):
    """Takes clicks and commands until it is cancelled."""

    async def run(self) -> None: ...

    def routes(self) -> Mapping[str, Handler]:
        """Path to what answers a POST there; empty if nothing listens."""
        ...

    async def close(self) -> None: ...


DoorBuilder = Callable[[Any, Front, Sequence[str], Callable[[], Any]], Door]
"""(settings, front, ids and groups that may decide, clock) to a door."""
