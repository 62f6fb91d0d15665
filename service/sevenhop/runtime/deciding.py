"""
Decisions over HTTP: from the local socket (whose peer the kernel names) or, with a bearer token, over TLS.

    POST /decide    {"verb", "plan", "hash", "comment"}      approve, reject, undo, extend, restore
    POST /switch    {"on", "comment"}                        the kill switch
    POST /breaker   {"comment"}                              close the circuit breaker

Where many clusters are decided about, ``"cluster"`` says which.  Each answers ``{"accepted", "text"}``, with 200 if it
was accepted and 409 if not; 401 where nobody can say who asks.
"""

from __future__ import annotations

import asyncio
import pwd
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from sevenhop.channels.body import read_body
from sevenhop.channels.door import Decider, Handler
from sevenhop.channels.often import TOO_OFTEN, Often
from sevenhop.core.effects import Reply
from sevenhop.core.events import BreakerReset, Decided, SwitchSet, Verb
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.clock import Clock

Review = Callable[[str], Awaitable[Person]]
"""A bearer token to who that is; raises `IdentityError`."""

MAX_COMMENT = 500
MAX_BODY = 10_000
PATIENCE_S = 30.0


class IdentityError(Exception):
    """Nobody can say who asks; one line for that person."""


class DecideRequest(msgspec.Struct, forbid_unknown_fields=True):
    """`plan` is the whole id: a prefix may mean another one tomorrow.  `request` names the command: it counts once."""

    verb: Verb
    plan: str
    hash: str = ""
    comment: str = ""
    request: str = ""
    cluster: str = ""


class SwitchRequest(msgspec.Struct, forbid_unknown_fields=True):
    on: bool
    comment: str = ""
    request: str = ""
    cluster: str = ""


class BreakerRequest(msgspec.Struct, forbid_unknown_fields=True):
    comment: str = ""
    request: str = ""
    cluster: str = ""


T = TypeVar("T", DecideRequest, SwitchRequest, BreakerRequest)


class Deciding:
    """
    Args:
        review: Says whom a token stands for; None where no API server can be asked.
        takes_peers: The local socket: who is on the other end is known without a token.
        via: How it is told afterwards: ``terminal`` or ``http``.
        instead: Where somebody with a token goes if there is no `review`.
    """

    def __init__(
        self,
        front: Decider,
        review: Review | None,
        clock: Clock,
        *,
        takes_peers: bool,
        via: str,
        instead: str = "tokens cannot be reviewed here; nothing was done",
    ) -> None:
        self._front = front
        self._review = review
        self._clock = clock
        self._takes_peers = takes_peers
        self._via = via
        self._instead = instead
        self._often = Often(clock)

    def routes(self) -> Mapping[str, Handler]:
        """Path to what answers a POST there."""
        return {"/decide": self._decide, "/switch": self._switch, "/breaker": self._breaker}

    async def _decide(self, request: web.Request) -> web.Response:
        return await self._answer(request, DecideRequest, self._decision)

    async def _switch(self, request: web.Request) -> web.Response:
        return await self._answer(request, SwitchRequest, self._switching)

    async def _breaker(self, request: web.Request) -> web.Response:
        return await self._answer(request, BreakerRequest, self._resetting)

    def _decision(self, wanted: DecideRequest, person: Person, now: datetime) -> Decided:
        return Decided(
            at=now,
            request_id=_request_id(f"{wanted.verb} {wanted.plan}", wanted.request, person, now),
            person=person,
            verb=wanted.verb,
            plan_id=wanted.plan,
            plan_hash=wanted.hash,
            via=self._via,
            comment=wanted.comment[:MAX_COMMENT],
        )

    def _switching(self, wanted: SwitchRequest, person: Person, now: datetime) -> SwitchSet:
        return SwitchSet(
            at=now,
            request_id=_request_id(f"switch {wanted.on}", wanted.request, person, now),
            person=person,
            is_on=wanted.on,
            comment=wanted.comment[:MAX_COMMENT],
        )

    def _resetting(self, wanted: BreakerRequest, person: Person, now: datetime) -> BreakerReset:
        return BreakerReset(
            at=now,
            request_id=_request_id("breaker", wanted.request, person, now),
            person=person,
            comment=wanted.comment[:MAX_COMMENT],
        )

    async def _answer(
        self,
        request: web.Request,
        shape: type[T],
        event_of: Callable[[T, Person, datetime], Decided | SwitchSet | BreakerReset],
    ) -> web.Response:
        try:
            person = await self._who(request)
        except IdentityError as error:
            return _json(401, {"error": str(error)})
        if self._often.is_too_often(person.id):
            return _json(429, {"error": TOO_OFTEN})
        try:
            body = await read_body(request, MAX_BODY)
            if len(body) > MAX_BODY:
                return _json(400, {"error": f"more than {MAX_BODY} bytes; nothing was done"})
            wanted = msgspec.json.decode(body, type=shape)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            return _json(400, {"error": str(error)})
        except TimeoutError:
            return _json(408, {"error": "the request did not come to its end; nothing was done"})
        try:
            async with asyncio.timeout(PATIENCE_S):
                reply: Reply = await self._front.ask(event_of(wanted, person, self._clock()), cluster=wanted.cluster)
        except TimeoutError as error:
            text = "no answer yet, the state cannot be stored; look with `sevenhop runs list`"
            return _json(503, {"error": str(error) or text})
        return _json(200 if reply.accepted else 409, {"accepted": reply.accepted, "text": reply.text, "as": person.id})

    async def _who(self, request: web.Request) -> Person:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        peer = peer_of(request, self._clock()) if self._takes_peers else None
        if scheme.lower() != "bearer":
            if peer is None:
                raise IdentityError("send a bearer token (Authorization: Bearer …); nothing was done")
            return peer
        if self._review is None:
            raise IdentityError(self._instead)
        if not self._takes_peers and request.transport is not None and not _is_private(request):
            raise IdentityError("a token is taken over TLS only; nothing was done")
        person = await self._review(token.strip())
        if peer is None:
            return person
        return msgspec.structs.replace(person, is_same_as=(*person.is_same_as, peer.id))


def peer_of(request: web.Request, now: datetime) -> Person:
    """
    Who is on the other end of a unix socket, by the kernel's word (SO_PEERCRED).

    Raises:
        IdentityError: It is no such socket, or nobody has that number.
    """
    connection = request.transport.get_extra_info("socket") if request.transport is not None else None
    if connection is None or connection.family != socket.AF_UNIX:
        raise IdentityError("who you are cannot be seen on this connection; nothing was done")
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)  # a container's user may have no name
    return Person(id=f"unix:{name}", name=name, verified_at=now)


def _is_private(request: web.Request) -> bool:
    """Over TLS, or from this very host."""
    if request.secure:
        return True
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    return isinstance(peer, tuple) and peer[0] in ("127.0.0.1", "::1")


def _request_id(wish: str, given: str, person: Person, now: datetime) -> str:
    """Another wish under the same name is another request: an answer must not be given to the wrong question."""
    place = "\0".join((person.id, given or now.isoformat(), wish))
    return f"http-{sha256(place.encode()).hexdigest()[:16]}"


def _json(status: int, data: Any) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(data), content_type="application/json")
