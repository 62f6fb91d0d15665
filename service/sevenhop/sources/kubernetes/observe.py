"""From raw objects of one kind to events: order, diff, and what to say of the unreadable.  No I/O."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from sevenhop.core.events import Applied, Deleted, Event, Unreadable
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.decode import UndecodableError, decode
from sevenhop.core.objects.kinds import Kind
from sevenhop.sources.kubernetes.lines import MalformedLineError, guess_line, parse_line
from sevenhop.sources.kubernetes.pods import PodReader
from sevenhop.sources.kubernetes.told import Key, Told

Record = Callable[[Event, "bytes | msgspec.Raw | None"], None]
"""Takes each event with the object as the server wrote it, if there is one."""


class _Version(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Bookmark(msgspec.Struct):
    metadata: _Version = msgspec.field(default_factory=_Version)


_bookmark_decoder = msgspec.json.Decoder(_Bookmark)


class ErrorLineError(Exception):
    """An ERROR line; carries its Status object."""

    def __init__(self, status: bytes) -> None:
        super().__init__("the watch ended with an error")
        self.status = status


class Observations:
    """
    The events of one kind, in the order of the server.

    Every list is an epoch; `seq` counts within it.  What was told already is not told again, so a re-list is a diff
    and a line that comes twice is silent.

    Attributes:
        resource_version: From where to watch on; empty before the first list.
        is_doubtful: A line was lost or came out of order: what is known may be wrong until the next list.
        repeated, unreadable: How many so far.
    """

    def __init__(self, kind: Kind, record: Record | None = None) -> None:
        self._kind = kind
        self._record = record
        self._listed: set[Key] = set()
        self._highest = 0
        self._pods = PodReader() if kind.name == "Pod" else None
        self.told = Told()
        self.epoch = 0
        self.seq = 0
        self.resource_version = ""
        self.is_doubtful = False
        self.repeated = 0
        self.unreadable = 0
        self.last_problem = ""

    def start_list(self) -> None:
        """A new epoch begins; nothing is taken back until `finish_list`."""
        self.epoch += 1
        self.seq = 0
        self._listed = set()

    def start_list_over(self) -> None:
        """The list begins again within its epoch: objects seen so far may be gone."""
        self._listed = set()

    def listed(self, raw: msgspec.Raw, at: datetime, into: list[Event]) -> None:
        """One object of a list."""
        self._apply(raw, at, into, is_listed=True)

    def finish_list(self, resource_version: str, at: datetime) -> list[Event]:
        """The list is complete: what it did not hold is gone."""
        events: list[Event] = []
        for key, uid in self.told.missing_from(self._listed):
            self._take_back(key, uid, at, events)
        self._listed = set()
        self.resource_version = resource_version
        self._highest = int(resource_version) if resource_version.isdecimal() else 0
        self.is_doubtful = False
        return events

    def line(self, line: bytes, at: datetime, into: list[Event]) -> None:
        """
        One line of a watch.  A malformed one is told as unreadable, and leaves doubt.

        Raises:
            ErrorLineError: The server ended the watch; the events before are in `into`.
        """
        guess = guess_line(line)
        if guess is not None and guess[0] in ("MODIFIED", "ADDED") and self._apply(guess[1], at, into, is_guess=True):
            return
        try:
            change, raw = parse_line(line)
        except MalformedLineError as error:
            self.is_doubtful = True
            self._tell_unreadable(Meta(), str(error), None, at, into)
            return
        if change in ("ADDED", "MODIFIED"):
            self._apply(raw, at, into)
        elif change == "DELETED":
            self._deleted(raw, at, into)
        elif change == "BOOKMARK":
            self._bookmark(raw, at, into)
        elif change == "ERROR":
            raise ErrorLineError(bytes(raw))
        else:
            self.is_doubtful = True
            self._tell_unreadable(Meta(), f"watch line of unknown type {change[:20]!r}", None, at, into)

    def withdraw_all(self, at: datetime) -> list[Event]:
        """The kind is no longer served: all its objects are gone."""
        events: list[Event] = []
        self.start_list()
        for key, uid in self.told.missing_from(set()):
            self._take_back(key, uid, at, events)
        self.resource_version = ""
        return events

    def _apply(
        self, raw: msgspec.Raw, at: datetime, into: list[Event], *, is_listed: bool = False, is_guess: bool = False
    ) -> bool:
        """False only for a guess that cannot be decoded: the caller looks at the line again, in full."""
        try:
            obj = self._pods.read(raw) if self._pods is not None else decode(self._kind, raw)
        except UndecodableError as error:
            if is_guess:
                return False
            self._undecodable(raw, str(error), at, into, is_listed=is_listed)
            return True
        meta = obj.metadata
        if is_listed:
            self._listed.add(meta.key)
        elif not self._follows(meta.resource_version):
            return True
        if not self.told.is_news(meta):
            if not is_listed:
                self.repeated += 1
            return True
        replaced_uid = self.told.tell(meta)
        if replaced_uid:
            self.seq += 1
            self._emit(
                Deleted(
                    at=at,
                    epoch=self.epoch,
                    seq=self.seq,
                    kind=self._kind.name,
                    namespace=meta.namespace,
                    name=meta.name,
                    uid=replaced_uid,
                ),
                None,
                into,
            )
        self.seq += 1
        self._emit(Applied(at=at, epoch=self.epoch, seq=self.seq, kind=self._kind.name, obj=obj), raw, into)
        return True

    def _undecodable(self, raw: msgspec.Raw, error: str, at: datetime, into: list[Event], *, is_listed: bool) -> None:
        meta = _identity(raw)
        if meta is None:
            # Whose state is unknown, and so is how to follow it: only a list that succeeds can tell.
            self.is_doubtful = self.is_doubtful or not is_listed
            meta = Meta()
        else:
            if is_listed:
                self._listed.add(meta.key)
            elif not self._follows(meta.resource_version):
                return
            self.told.tell(meta)
        self._tell_unreadable(meta, error, raw, at, into)

    def _deleted(self, raw: msgspec.Raw, at: datetime, into: list[Event]) -> None:
        meta = _identity(raw)
        if meta is None:
            self.is_doubtful = True
            self._tell_unreadable(Meta(), "a deleted object without a readable name", raw, at, into)
            return
        if not self._follows(meta.resource_version):
            return
        uid = self._forget(meta.key)
        if uid is None:
            self.repeated += 1
        else:
            self.seq += 1
            self._emit(self._gone(meta.key, uid, at), raw, into)

    def _bookmark(self, raw: msgspec.Raw, at: datetime, into: list[Event]) -> None:
        try:
            version = _bookmark_decoder.decode(raw).metadata.resource_version
        except (msgspec.DecodeError, RecursionError) as error:
            self._tell_unreadable(Meta(), f"malformed bookmark: {error}", None, at, into)
            return
        self._follows(version)

    def _follows(self, version: str) -> bool:
        """
        Whether a line comes after those before it, as all of one watch do; remembers how far we are.

        One that does not is left out, and doubted: the next list says what is true.  So no state is ever chosen by
        comparing versions, and a server whose versions are no numbers is not doubted for them.
        """
        if version.isdecimal() and self._highest:
            number = int(version)
            if number < self._highest:
                self.is_doubtful = True
                self.last_problem = "a watch line out of order"
                return False
            self._highest = number
        if version:
            self.resource_version = version
        return True

    def _take_back(self, key: Key, uid: str, at: datetime, into: list[Event]) -> None:
        self._forget(key)
        self.seq += 1
        self._emit(self._gone(key, uid, at), None, into)

    def _forget(self, key: Key) -> str | None:
        if self._pods is not None:
            self._pods.forget(key)
        return self.told.take_back(key)

    def _gone(self, key: Key, uid: str, at: datetime) -> Deleted:
        return Deleted(
            at=at, epoch=self.epoch, seq=self.seq, kind=self._kind.name, namespace=key[0], name=key[1], uid=uid
        )

    def _tell_unreadable(
        self, meta: Meta, error: str, raw: msgspec.Raw | None, at: datetime, into: list[Event]
    ) -> None:
        self.unreadable += 1
        self.last_problem = error
        self.seq += 1
        event = Unreadable(
            at=at,
            epoch=self.epoch,
            seq=self.seq,
            kind=self._kind.name,
            namespace=meta.namespace,
            name=meta.name,
            error=error,
        )
        self._emit(event, raw, into)

    def _emit(self, event: Event, raw: msgspec.Raw | None, into: list[Event]) -> None:
        into.append(event)
        if self._record is not None:
            self._record(event, raw)


class _Identity(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct):
    metadata: _Identity


_identity_decoder = msgspec.json.Decoder(_Identified)


def _identity(raw: msgspec.Raw) -> Meta | None:
    """Who an object is, however strange the rest of it; None if not even that can be read."""
    try:
        found = _identity_decoder.decode(raw).metadata
    except (msgspec.DecodeError, RecursionError):
        return None
    if not found.name:
        return None
    return Meta(name=found.name, namespace=found.namespace, uid=found.uid, resource_version=found.resource_version)
