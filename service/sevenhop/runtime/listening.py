"""What listens for people beside the sources, run with them; and when the service is ready to be asked."""

from __future__ import annotations

from typing import Protocol

from sevenhop.runtime.embedded import Embedded, Emit
from sevenhop.sources.kubernetes.source import KubernetesSource


class Listener(Protocol):
    """A door, or a server."""

    async def run(self) -> None: ...

    async def close(self) -> None: ...


class Listening:
    """A listener as a source: what it hears goes another way than through `emit`."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    async def run(self, emit: Emit) -> None:  # noqa: ARG002
        await self._listener.run()


def why_not_ready(source: KubernetesSource, embedded: Embedded) -> str:
    """Empty once every kind was listed once, or cannot be, and while state is stored."""
    if embedded.stalled:
        return f"state is not stored: {embedded.stalled}"
    waiting = [row.kind for row in source.status() if row.state.value == "not_synced"]
    return f"not listed yet: {', '.join(waiting[:5])}" if waiting else ""
