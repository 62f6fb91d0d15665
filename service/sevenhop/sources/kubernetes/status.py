"""How the source of one kind is doing, for people: `sevenhop doctor`."""

from __future__ import annotations

from datetime import datetime

import msgspec

from sevenhop.core.events import SyncState


class KindStatus(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        kind: A name in `KINDS`.
        version: The API version that is watched; empty if none is.
        detail: Why the state is not better, and what to do; empty when all is well.
        objects: Told and not taken back.
        resource_version: Up to where the server was followed; empty before the first list.
        last_line_at: Last line of a watch, bookmarks included.
        last_success_at: Last line or complete list.
        lists: Complete lists so far; more than one means that watches had to start over.
        watches: Watches opened so far.
        silences: Watches given up because they said nothing: normal for a quiet kind after the API server's start.
        errors: Requests that failed, and streams that broke.
        unreadable: Objects and lines that could not be read.
        repeated: Lines that said what was known.
        next_try_at: While waiting after a failure.
        list_progress: (objects so far, objects the server expects in all) of a list on its way.
    """

    kind: str
    version: str = ""
    state: SyncState = SyncState.NOT_SYNCED
    detail: str = ""
    objects: int = 0
    resource_version: str = ""
    last_line_at: datetime | None = None
    last_success_at: datetime | None = None
    lists: int = 0
    watches: int = 0
    silences: int = 0
    errors: int = 0
    unreadable: int = 0
    repeated: int = 0
    next_try_at: datetime | None = None
    list_progress: tuple[int, int] | None = None
