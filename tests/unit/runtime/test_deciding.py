"""Decisions over HTTP: nobody is heard whom the kernel or the API server does not name."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from sevenhop.core.effects import Message, Reply
from sevenhop.core.events import BreakerReset, Decided, Silenced, SwitchSet, Verb
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.deciding import Deciding, IdentityError

TOKEN = "a-token"


class Core:
    def __init__(self) -> None:
        self.asked: list[Decided | SwitchSet | BreakerReset] = []
        self.accepts = True

    async def ask(self, event: Decided | SwitchSet | BreakerReset, cluster: str = "") -> Reply:
        self.asked.append(event)
        return Reply(request_id=event.request_id, accepted=self.accepts, text="said")

    async def silence(self, event: Silenced) -> None:
        raise NotImplementedError

    async def message(self, incident_id: str) -> Message | None:
        raise NotImplementedError

    async def status(self) -> str:
        raise NotImplementedError


async def review(token: str) -> Person:
    if token != TOKEN:
        raise IdentityError("the API server does not know your token (expired?); log in again")
    return Person(id="kubernetes:alice@corp", name="alice@corp", groups=("kubernetes-group:llm-oncall",))


class Doors:
    def __init__(self, core: Core, tcp: str, unix: str) -> None:
        self.core, self.tcp, self.unix = core, tcp, unix

    async def post(
        self, path: str, body: Any, *, over: str = "unix", token: str = "", raw: bytes | None = None
    ) -> tuple[int, dict[str, Any]]:
        connector = aiohttp.UnixConnector(self.unix) if over == "unix" else aiohttp.TCPConnector()
        address = "http://localhost" if over == "unix" else self.tcp
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        given: dict[str, Any] = {"json": body} if raw is None else {"data": raw}
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(f"{address}{path}", headers=headers, **given) as answer,
        ):
            return answer.status, await answer.json()


@pytest.fixture
async def doors(tmp_path: Path) -> AsyncIterator[Doors]:
    core = Core()
    runners = []
    for takes_peers in (True, False):
        app = web.Application()
        deciding = Deciding(core, review, Clock(), takes_peers=takes_peers, via="terminal" if takes_peers else "http")
        for path, handler in deciding.routes().items():
            app.router.add_post(path, handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
    await web.UnixSite(runners[0], str(tmp_path / "door")).start()
    await web.TCPSite(runners[1], "127.0.0.1", 0).start()
    yield Doors(core, f"http://127.0.0.1:{runners[1].addresses[0][1]}", str(tmp_path / "door"))
    for runner in runners:
        await runner.cleanup()


APPROVE = {"verb": "approve", "plan": "7f3a0001", "hash": "h"}


async def test_the_peer_of_the_local_socket(doors: Doors) -> None:
    """Without a token it is the user of the process on the other end, as the kernel says."""
    status, said = await doors.post("/decide", APPROVE)

    [asked] = doors.core.asked
    assert isinstance(asked, Decided)
    assert (status, said["text"]) == (200, "said")
    assert asked.person.id == f"unix:{getpass.getuser()}"
    assert (asked.verb, asked.plan_id, asked.plan_hash, asked.via) == (Verb.APPROVE, "7f3a0001", "h", "terminal")


async def test_a_token_names_a_person_of_the_cluster(doors: Doors) -> None:
    """With a token it is whom the API server knows by it; over the socket it is known to be the local user too."""
    await doors.post("/decide", APPROVE, token=TOKEN)
    await doors.post("/decide", APPROVE, token=TOKEN, over="tcp")

    local, remote = (each.person for each in doors.core.asked)
    assert local.id == remote.id == "kubernetes:alice@corp"
    assert remote.groups == ("kubernetes-group:llm-oncall",)
    assert f"unix:{getpass.getuser()}" in local.is_same_as
    assert not remote.is_same_as


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_over_the_network_nobody_is_heard_without_a_known_token(doors: Doors, token: str) -> None:
    """Nothing reaches the core; the answer says what to do."""
    status, said = await doors.post("/decide", APPROVE, token=token, over="tcp")

    assert status == 401
    assert said["error"]
    assert not doors.core.asked


async def test_a_wrong_token_is_not_forgiven_over_the_socket(doors: Doors) -> None:
    """Who claims to be somebody and is not, is not heard as somebody else instead."""
    status, _ = await doors.post("/decide", APPROVE, token="wrong")

    assert status == 401
    assert not doors.core.asked


async def test_a_refusal_is_told(doors: Doors) -> None:
    """409, with the core's words."""
    doors.core.accepts = False

    assert await doors.post("/decide", APPROVE) == (
        409,
        {"accepted": False, "text": "said", "as": f"unix:{getpass.getuser()}"},
    )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/decide", b"{"),
        ("/decide", b"[]"),
        ("/decide", b'{"verb": "approve"}'),
        ("/decide", b'{"verb": "destroy", "plan": "x"}'),
        ("/decide", b'{"verb": "approve", "plan": "x", "person": {"id": "unix:root"}}'),
        ("/switch", b"{}"),
        ("/switch", b'{"on": "yes"}'),
        ("/decide", b" " * 20_000),
    ],
)
async def test_what_cannot_be_read(doors: Doors, path: str, body: bytes) -> None:
    """400 with the reason; who somebody is can never be said in the body."""
    status, said = await doors.post(path, None, raw=body)

    assert status == 400
    assert said["error"]
    assert not doors.core.asked


async def test_the_switch_and_the_breaker(doors: Doors) -> None:
    """Both carry who, and why."""
    await doors.post("/switch", {"on": True, "comment": "maintenance"})
    await doors.post("/breaker", {"comment": "looked at it"})

    switch, breaker = doors.core.asked
    assert isinstance(switch, SwitchSet)
    assert (switch.is_on, switch.comment) == (True, "maintenance")
    assert isinstance(breaker, BreakerReset)
    assert breaker.comment == "looked at it"


async def test_the_same_command_twice_is_one_request(doors: Doors) -> None:
    """A command that is sent again after a time-out has the same name, so that the core knows it."""
    for _ in range(2):
        await doors.post("/decide", {**APPROVE, "request": "r1"})
    await doors.post("/decide", {**APPROVE, "request": "r2"})

    first, again, other = (each.request_id for each in doors.core.asked)
    assert first == again != other


async def test_a_request_that_comes_in_pieces(doors: Doors) -> None:
    """Head and body travel in packets of their own."""

    async def pieces() -> AsyncIterator[bytes]:
        for part in (b'{"verb": "approve", ', b'"plan": "7f3a0001", ', b'"hash": "h"}'):
            yield part
            await asyncio.sleep(0.02)

    connector = aiohttp.UnixConnector(doors.unix)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.post("http://localhost/decide", data=pieces()) as answer,
    ):
        assert answer.status == 200
    assert len(doors.core.asked) == 1


async def test_nobody_fills_the_trail(doors: Doors) -> None:
    """Anybody with a token of the cluster may ask, and each refusal is kept: not more than so many a minute."""
    statuses = [(await doors.post("/decide", APPROVE))[0] for _ in range(40)]
    assert statuses == [200] * 30 + [429] * 10
    assert len(doors.core.asked) == 30
    assert (await doors.post("/decide", APPROVE, over="tcp", token=TOKEN))[0] == 200


async def test_one_name_for_two_wishes_is_two_requests(doors: Doors) -> None:
    """Who reuses the name of a request is not told about another plan."""
    for plan in ("7f3a0001", "7f3a0002"):
        await doors.post("/decide", {**APPROVE, "plan": plan, "request": "mine"})
    await doors.post("/switch", {"on": True, "request": "mine"})
    await doors.post("/switch", {"on": False, "request": "mine"})
    assert len({event.request_id for event in doors.core.asked}) == 4


async def test_more_than_a_decision_needs(doors: Doors) -> None:
    """What is too long is said to be that, and nothing is decided by its beginning."""
    status, said = await doors.post("/decide", {**APPROVE, "comment": "x" * 20_000})
    assert (status, doors.core.asked) == (400, [])
    assert "nothing was done" in said["error"]
