"""What a partition needs of Kafka beside its stream."""

from __future__ import annotations

from typing import Any, Protocol

from sevenhop.runtime.codec import Read


class Kafka(Protocol):
    """One partition of the topics."""

    async def ends(self, topic: str) -> tuple[int, int]: ...

    def records(self, topic: str, start: int, end: int) -> Any: ...

    def read(self, record: Any) -> Read:
        """What a record holds; `RecordError` where that is not to be taken."""
        ...

    async def bury(self, topic: str, record: Any, reason: str) -> None: ...
