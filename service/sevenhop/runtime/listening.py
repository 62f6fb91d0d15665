"""What listens for people beside the sources, run with them; and when the service is ready to be asked."""

from __future__ import annotations

import time
from collections.abc import Callable
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


MAY_TAKE_S = 60.0
"""A step takes milliseconds, and the first one over a large cluster some seconds."""


def why_unhealthy(embedded: Embedded) -> str:
    """
    Empty while the process can go on by itself; else why only a new one would help.

    A store that refuses for now is not in it: a new process would meet the same full disk, and lose what is in memory.
    """
    behind_s = embedded.behind_s
    if behind_s < MAY_TAKE_S or embedded.stalled:
        return ""
    return f"the engine makes no progress: a step is under way for {behind_s:.0f} s"


def why_not_well(embedded: Embedded) -> str:
    """Empty while people would be told; else why not."""
    return why_unhealthy(embedded) or (f"state is not stored: {embedded.stalled}" if embedded.stalled else "")


TRY_EVERY_S = 5.0


class Writable:
    """
    Whether the store takes a write, tried now and then: in a quiet cluster nothing is stored for hours.

    Asked more often it gives the last answer, so that whoever can ask cannot make us write.
    """

    def __init__(self, why_not: Callable[[], str], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._why_not = why_not
        self._monotonic = monotonic
        self._tried_at: float | None = None
        self._answer = ""

    def __call__(self) -> str:
        """Empty, or why not."""
        now = self._monotonic()
        if self._tried_at is None or now - self._tried_at >= TRY_EVERY_S:
            self._tried_at, self._answer = now, self._why_not()
        return self._answer


def why_not_ready(source: KubernetesSource, embedded: Embedded, why_not_writable: Callable[[], str]) -> str:
    """Empty once every kind was listed once, or cannot be, and while state can be stored."""
    if unwell := why_not_well(embedded):
        return unwell
    if unwritable := why_not_writable():
        return f"state cannot be stored: {unwritable}"
    waiting = [row.kind for row in source.status() if row.state.value == "not_synced"]
    return f"not listed yet: {', '.join(waiting[:5])}" if waiting else ""
