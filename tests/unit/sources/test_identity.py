"""Whom a bearer token stands for: only the API server's own word counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from sevenhop.sources.kubernetes.api import Access, ApiServer
from sevenhop.sources.kubernetes.identity import (
    PATH,
    UnansweredError,
    UnverifiedError,
    review_token,
    review_user,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
TOKEN = "header.payload.signature"


@asynccontextmanager
async def answering(answer: Any, status: int = 201) -> AsyncIterator[tuple[ApiServer, list[Any]]]:
    """An API server that answers every TokenReview like this, and what it was asked."""
    asked: list[Any] = []

    async def take(request: web.Request) -> web.Response:
        asked.append(await request.json())
        if isinstance(answer, bytes):
            return web.Response(status=status, body=answer)
        return web.json_response(answer, status=status)

    app = web.Application()
    app.router.add_post(PATH, take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with ApiServer(Access(base_url=f"http://127.0.0.1:{runner.addresses[0][1]}")) as api:
        yield api, asked
    await runner.cleanup()


def review(**status: Any) -> dict[str, Any]:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}, "status": status}


async def test_a_known_token() -> None:
    """User and groups as the API server says; an address as name is the same human elsewhere."""
    user = {"username": "Alice@corp", "uid": "1", "groups": ["llm-oncall", "system:authenticated"]}
    async with answering(review(authenticated=True, user=user)) as (api, asked):
        person = await review_token(api, TOKEN, NOW)

    assert person.id == "kubernetes:Alice@corp"
    assert person.groups == ("kubernetes-group:llm-oncall", "kubernetes-group:system:authenticated")
    assert person.is_same_as == ("email:alice@corp",)
    assert person.verified_at == NOW
    assert asked[0]["spec"] == {"token": TOKEN}


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        pytest.param(201, review(authenticated=False, error="expired"), id="unknown token"),
        pytest.param(201, review(user={"username": "alice"}), id="not said to be authenticated"),
        pytest.param(201, review(authenticated=True, user={"username": ""}), id="no name"),
        pytest.param(201, review(authenticated="true", user={"username": "alice"}), id="not a truth value"),
        pytest.param(201, b"<html>", id="not an API server"),
        pytest.param(403, {"kind": "Status", "code": 403, "reason": "Forbidden"}, id="we may not ask"),
        pytest.param(500, b"", id="a server's failure"),
        pytest.param(429, b"", id="throttled"),
    ],
)
async def test_whoever_is_not_known_is_nobody(status: int, answer: Any) -> None:
    """Whatever comes back but a clear yes with a name is a no, and the token is not in its words."""
    async with answering(answer, status) as (api, _):
        with pytest.raises(UnverifiedError) as told:
            await review_token(api, TOKEN, NOW)

    assert TOKEN not in str(told.value)


async def test_nobody_there() -> None:
    """An API server that cannot be reached knows nobody."""
    async with ApiServer(Access(base_url="http://127.0.0.1:1")) as api:
        with pytest.raises(UnverifiedError, match="could not be verified"):
            await review_token(api, TOKEN, NOW)


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "é", "x" * 20_000])
async def test_what_is_no_token_is_not_sent(token: str) -> None:
    """The API server is not bothered with it."""
    async with answering(review(authenticated=True, user={"username": "alice"})) as (api, asked):
        with pytest.raises(UnverifiedError):
            await review_token(api, token, NOW)

    assert not asked


async def test_what_a_token_is_bound_to() -> None:
    """Pod and node of a projected token, as the API server tells them."""
    node = {"authentication.kubernetes.io/node-name": ["gpu-01"]}
    user = {"username": "system:serviceaccount:sevenhop:gpu-agent", "extra": node}
    async with answering(review(authenticated=True, user=user)) as (api, asked):
        found = await review_user(api, TOKEN)

    assert found.extra == node
    assert asked[0]["spec"] == {"token": TOKEN}


@pytest.mark.parametrize(("audiences", "is_good"), [(["sevenhop"], True), (["https://api"], False), ([], False)])
async def test_for_whom_a_token_was_made(audiences: list[str], is_good: bool) -> None:
    """An API server that knows no audiences names none, and then nobody says that it was made for us."""
    status = review(authenticated=True, user={"username": "a"}, audiences=audiences)
    async with answering(status) as (api, asked):
        if is_good:
            assert (await review_user(api, TOKEN, "sevenhop")).username == "a"
        else:
            with pytest.raises(UnverifiedError, match="not made for the audience 'sevenhop'"):
                await review_user(api, TOKEN, "sevenhop")

    assert asked[0]["spec"] == {"token": TOKEN, "audiences": ["sevenhop"]}


@pytest.mark.parametrize(
    ("status", "answer", "is_for_now"),
    [
        pytest.param(403, {"kind": "Status"}, True, id="we may not ask"),
        pytest.param(500, {"kind": "Status"}, True, id="it fails"),
        pytest.param(201, b"{", True, id="it cannot be read"),
        pytest.param(201, review(authenticated=False), False, id="it does not know the token"),
    ],
)
async def test_no_answer_is_not_a_no(status: int, answer: Any, is_for_now: bool) -> None:
    """Who could not be asked about may be known a moment later."""
    async with answering(answer, status) as (api, _):
        with pytest.raises(UnverifiedError) as caught:
            await review_user(api, TOKEN)

    assert isinstance(caught.value, UnansweredError) is is_for_now
