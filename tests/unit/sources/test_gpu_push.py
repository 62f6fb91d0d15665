"""GPU samples over HTTP: from the agent's buffer to the engine's events, and who may not be heard."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.agent.buffer import Buffer
from sevenhop.agent.sender import PATH as AGENT_PATH
from sevenhop.agent.sender import Sender
from sevenhop.core.events import Event, GpusSampled, XidSeen
from sevenhop.core.gpu_sample import ContainerUsage, GpuReading, Holder
from sevenhop.core.gpu_wire import JSON, MSGPACK, VERSION, Batch, WireError, decode, encode
from sevenhop.sources.gpu_push.receiver import PATH, GpuPush
from sevenhop.sources.gpu_push.senders import KEEP, NODE, Refusal, Senders
from sevenhop.sources.gpu_push.settings import GpuPushSettings
from sevenhop.sources.kubernetes.identity import UnansweredError, UnverifiedError, UserInfo
from sevenhop.web.server import WebServer

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
AGENT = "system:serviceaccount:sevenhop:gpu-agent"

USERS: dict[str, UserInfo | Exception] = {
    "good": UserInfo(username=AGENT, extra={NODE: ["gpu-01"], "authentication.kubernetes.io/pod-name": ["agent-x"]}),
    "tenant": UserInfo(username="system:serviceaccount:prod:default", extra={NODE: ["gpu-01"]}),
    "unbound": UserInfo(username=AGENT),
    "two nodes": UserInfo(username=AGENT, extra={NODE: ["gpu-01", "gpu-02"]}),
    "stale": UnverifiedError("the API server does not know your token (expired?); log in again"),
    "unanswered": UnansweredError("who you are could not be verified: connection refused"),
}

SAMPLE = GpusSampled(
    at=AT, epoch=1, seq=1, node="gpu-01", is_whole=True, readings=(GpuReading(index=0, uuid="GPU-0", sm_active=0.5),),
    usage=(ContainerUsage(holder=Holder("a", "b", "c"), cpu_cores=1.5),),
)  # fmt: skip
XID = XidSeen(at=AT, epoch=1, seq=2, node="gpu-01", xid=79, pci="0000:3b:00.0")


class Service:
    """The receiving side on a port of its own."""

    def __init__(self) -> None:
        self.now = AT
        self.asked: list[str] = []
        self.events: list[Event] = []
        self.emit: Callable[[list[Event]], Any] = self._take
        settings = GpuPushSettings(accounts=["sevenhop/gpu-agent"])
        self.push = GpuPush(settings, self._review, lambda events: self.emit(events), lambda: self.now, emit_s=0.2)

    async def _review(self, token: str) -> UserInfo:
        self.asked.append(token)
        found = USERS.get(token, UnverifiedError("unknown"))
        if isinstance(found, Exception):
            raise found
        return found

    async def _take(self, events: list[Event]) -> None:
        self.events += events


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[str]:
    server = WebServer("127.0.0.1:0", posts=service.push.routes())
    await server.start()
    try:
        yield server.address
    finally:
        await server.close()


def batch(**changes: Any) -> Batch:
    fields: dict[str, Any] = {"version": VERSION, "node": "gpu-01", "sent_at": AT, "samples": (SAMPLE,), "xids": (XID,)}
    return Batch(**{**fields, **changes})


async def post(
    address: str, body: bytes, token: str | None = "good", content_type: str = MSGPACK
) -> tuple[int, dict[str, Any]]:
    headers = {"Content-Type": content_type, **({"Authorization": f"Bearer {token}"} if token is not None else {})}
    async with aiohttp.ClientSession() as session, session.post(address + PATH, data=body, headers=headers) as answer:
        return answer.status, await answer.json()


@pytest.mark.parametrize("content_type", [MSGPACK, JSON])
async def test_a_batch_becomes_events(content_type: str) -> None:
    """In the order in which they were seen, with the time by our clock."""
    service = Service()
    async with serving(service) as address:
        assert await post(address, encode(batch(), content_type), content_type=content_type) == (200, {"taken": 2})
    assert service.events == [msgspec.structs.replace(SAMPLE, received_at=AT), XID]
    assert (service.push.taken, sum(service.push.refused.values())) == (2, 0)


async def test_a_sample_that_waited_is_not_skewed() -> None:
    """Our time of a sample is its own, moved by what the agent's clock is off; waiting in an outage is no skew."""
    service = Service()
    service.now = AT + timedelta(minutes=10, seconds=3)
    late = batch(sent_at=AT + timedelta(minutes=10))  # the XID keeps the agent's time: the core sets it right
    async with serving(service) as address:
        await post(address, encode(late))
    assert isinstance(service.events[0], GpusSampled)
    assert service.events[0].received_at == AT + timedelta(seconds=3)
    assert service.events[1] == XID


async def test_a_node_whose_clock_was_set_back() -> None:
    """An agent that starts then is newer all the same; what it says is not older than what the one before said."""
    service = Service()
    async with serving(service) as address:
        for epoch in (5, 5, 3, 3, 4, 9):
            sample = msgspec.structs.replace(SAMPLE, epoch=epoch)
            await post(address, encode(batch(samples=(sample,), xids=())))
    assert [event.epoch for event in service.events] == [5, 5, 6, 6, 7, 9]


@pytest.mark.parametrize(
    ("token", "changes", "status", "reason"),
    [
        pytest.param(None, {}, 401, Refusal.NO_TOKEN, id="no token"),
        pytest.param("  ", {}, 401, Refusal.NO_TOKEN, id="an empty one"),
        pytest.param("stale", {}, 401, Refusal.UNKNOWN_TOKEN, id="expired"),
        pytest.param("tenant", {}, 403, Refusal.OTHER_ACCOUNT, id="another pod of the same node"),
        pytest.param("unbound", {}, 403, Refusal.NOT_BOUND, id="bound to no node"),
        pytest.param("two nodes", {}, 403, Refusal.NOT_BOUND, id="bound to two"),
        pytest.param(
            "good",
            {"node": "gpu-02", "samples": (msgspec.structs.replace(SAMPLE, node="gpu-02"),), "xids": ()},
            403,
            Refusal.OTHER_NODE,
            id="another node",
        ),
        pytest.param(
            "good", {"xids": (msgspec.structs.replace(XID, node="gpu-02"),)}, 400, Refusal.UNREADABLE, id="smuggled in"
        ),
        pytest.param("good", {"version": 2}, 400, Refusal.UNREADABLE, id="a later version"),
        pytest.param("unanswered", {}, 503, Refusal.UNANSWERED, id="the API server is away"),
    ],
)
async def test_who_is_refused(token: str | None, changes: dict[str, Any], status: int, reason: Refusal) -> None:
    """With its reason, counted, and nothing of it reaches the engine."""
    service = Service()
    async with serving(service) as address:
        got, said = await post(address, encode(batch(**changes)), token)
    assert (got, said["reason"]) == (status, reason.value)
    assert service.events == []
    assert {why: count for why, count in service.push.refused.items() if count} == {reason: 1}
    assert f"{reason.value} 1" in service.push.report()["problems"][0]


async def test_behind_is_not_lost() -> None:
    """Who is told 503 keeps what it has."""
    service = Service()

    async def full(_: list[Event]) -> None:
        await asyncio.sleep(60)

    service.emit = full
    async with serving(service) as address:
        got, said = await post(address, encode(batch()))
    assert (got, said["reason"]) == (503, "behind")
    assert service.push.taken == 0


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param(b"", MSGPACK, id="empty"),
        pytest.param(b"\xc1", MSGPACK, id="no MessagePack"),
        pytest.param(b"{", JSON, id="cut off"),
        pytest.param(b"[1]", JSON, id="a list"),
        pytest.param(b'{"version": 1}', JSON, id="no node"),
        pytest.param(b'{"version": 1, "node": "gpu-01", "samples": [{}]}', JSON, id="an empty sample"),
        pytest.param(encode(batch()), "text/plain", id="another type"),
        pytest.param(encode(batch(), JSON).replace(b"+00:00", b"").replace(b"Z", b""), JSON, id="no zone"),
        pytest.param(encode(batch(), JSON).replace(b'"GPU-0"', b'""'), JSON, id="no uuid"),
        pytest.param(encode(batch(), JSON).replace(b"0.5", b"-1.0"), JSON, id="negative"),
        pytest.param(encode(batch(), JSON).replace(b'"up_s":null', b'"up_s":-1.0'), JSON, id="booted in the future"),
        pytest.param(encode(batch(samples=(msgspec.structs.replace(SAMPLE, readings=SAMPLE.readings * 2),))), MSGPACK,
                     id="twice the same"),
        pytest.param(encode(batch(samples=(msgspec.structs.replace(SAMPLE, readings=(
            GpuReading(index=0, uuid="GPU-0", power_w=float("nan")),)),))), MSGPACK, id="not a number"),
    ],
)  # fmt: skip
async def test_bodies_that_are_none(body: bytes, content_type: str) -> None:
    """Refused in a line, counted; the next one is read."""
    service = Service()
    async with serving(service) as address:
        assert (await post(address, body, content_type=content_type))[0] == 400
        assert (await post(address, encode(batch())))[0] == 200
    assert service.push.refused[Refusal.UNREADABLE] == 1


@given(st.binary(max_size=200), st.sampled_from([MSGPACK, JSON]))
def test_bytes_of_any_sort(body: bytes, content_type: str) -> None:
    """A batch or a `WireError`, never anything else."""
    with contextlib.suppress(WireError):
        decode(body, content_type)


def test_a_newer_agent_may_say_more() -> None:
    """Keys that we do not know are left alone."""
    body = encode(batch(), JSON).replace(b'"index":0', b'"index":0,"fan_speed":7')
    assert decode(body, JSON).samples[0].readings[0].uuid == "GPU-0"


async def test_the_api_server_is_not_asked_for_every_sample() -> None:
    """Once for a while; then again, because a pod's token ends with its pod."""
    service = Service()
    async with serving(service) as address:
        for _ in range(5):
            assert (await post(address, encode(batch())))[0] == 200
        assert service.asked == ["good"]
        service.now += KEEP + timedelta(seconds=1)
        await post(address, encode(batch()))
    assert service.asked == ["good", "good"]


async def test_an_unanswered_question_is_asked_again() -> None:
    """It is no word about the token."""
    service = Service()
    async with serving(service) as address:
        for _ in range(2):
            assert (await post(address, encode(batch()), "unanswered"))[0] == 503
    assert service.asked == ["unanswered"] * 2


async def test_made_up_tokens_cost_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of them is bounded, and they themselves are not kept."""
    monkeypatch.setattr("sevenhop.sources.gpu_push.senders.MAX_KEPT", 10)

    async def review(_: str) -> UserInfo:
        raise UnverifiedError("unknown")

    senders = Senders(review, ["a/b"], lambda: AT)
    for number in range(50):
        with contextlib.suppress(Exception):
            await senders.node_of(f"token-{number}")
    assert 0 < len(senders._kept) <= 10
    assert "token" not in repr(senders._kept.keys())


@pytest.mark.parametrize("account", ["gpu-agent", "a/b/c", "/b", "a/", "a b/c"])
def test_accounts_are_named_in_full(account: str) -> None:
    """A name without a namespace would be anybody's."""
    with pytest.raises(ValueError, match="namespace/name"):
        GpuPushSettings(accounts=[account])


def test_both_sides_mean_the_same_path() -> None:
    """Neither knows the other's code."""
    assert AGENT_PATH == PATH


class Sending:
    """The agent's side, with a token file, sending to an address until it is ended."""

    def __init__(self, folder: Path, address: str, token: str = "good") -> None:
        file = folder / "token"
        file.write_text(f"{token}\n")
        self.token = file
        self.buffer = Buffer()
        self.sender = Sender(address, "gpu-01", self.buffer, lambda: AT, token=file, version="1.2", call_s=30)

    async def until(self, true: Callable[[], bool]) -> None:
        task = asyncio.create_task(self.sender.run())
        try:
            async with asyncio.timeout(30):
                while not true():  # noqa: ASYNC110  the sender has no reason to tell
                    await asyncio.sleep(0.02)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def test_the_agent_sends_what_waits(tmp_path: Path) -> None:
    """What was taken waits no longer."""
    service = Service()
    async with serving(service) as address:
        agent = Sending(tmp_path, address)
        agent.buffer.add(SAMPLE)
        agent.buffer.add(XID)
        await agent.until(lambda: len(agent.buffer) == 0)
    assert [type(event).__name__ for event in service.events] == ["GpusSampled", "XidSeen"]
    assert (agent.sender.sent, agent.sender.problem) == (2, "")


async def test_an_outage_loses_nothing_that_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens, then the service is behind, then it takes all of it, once and in order."""
    monkeypatch.setattr("sevenhop.agent.sender.FIRST_RETRY_S", 0.02)
    agent = Sending(tmp_path, "http://127.0.0.1:1")
    for seq in range(1, 30):
        agent.buffer.add(msgspec.structs.replace(SAMPLE, seq=seq))
    await agent.until(lambda: "cannot be reached" in agent.sender.problem)

    service = Service()
    take, service.emit = service.emit, lambda _: asyncio.sleep(60)
    async with serving(service) as address:
        agent.sender._url = address + PATH
        await agent.until(lambda: "503" in agent.sender.problem)
        service.emit = take
        await agent.until(lambda: len(agent.buffer) == 0)
    assert [event.seq for event in service.events] == list(range(1, 30))


async def test_a_renewed_token_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet writes another one in time; a refused token is no reason to drop anything."""
    monkeypatch.setattr("sevenhop.agent.sender.REFUSED_S", 0.05)
    service = Service()
    async with serving(service) as address:
        agent = Sending(tmp_path, address, "stale")
        agent.buffer.add(SAMPLE)
        await agent.until(lambda: "401" in agent.sender.problem)
        assert len(agent.buffer) == 1
        agent.token.write_text("good")
        await agent.until(lambda: len(agent.buffer) == 0)
    assert len(service.events) == 1


async def test_what_will_never_be_taken_blocks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is let go, and counted."""
    monkeypatch.setattr("sevenhop.agent.sender.FIRST_RETRY_S", 0.02)
    monkeypatch.setattr("sevenhop.agent.sender.MAX_BATCH", 1)
    service = Service()
    async with serving(service) as address:
        agent = Sending(tmp_path, address)
        agent.buffer.add(msgspec.structs.replace(SAMPLE, readings=SAMPLE.readings * 2))
        agent.buffer.add(XID)
        await agent.until(lambda: len(agent.buffer) == 0)
    assert (agent.sender.rejected, agent.sender.sent) == (1, 1)
    assert service.events == [XID]


async def test_a_token_that_is_not_there(tmp_path: Path) -> None:
    """It is said, and what waits goes on waiting."""
    agent = Sending(tmp_path, "http://127.0.0.1:1")
    agent.token.unlink()
    agent.buffer.add(SAMPLE)
    await agent.until(lambda: "No such file" in agent.sender.problem)
    assert len(agent.buffer) == 1
