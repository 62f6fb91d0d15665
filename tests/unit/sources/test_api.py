"""One API server: renewal of access, lists in pages, and errors in one line with what to do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from sevenhop.core.objects.kinds import KINDS
from sevenhop.simulation.faults import ExpireContinue, Refuse
from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.simulation.store import Store
from sevenhop.sources.kubernetes.api import Access, ApiError, ApiServer, ConnectError, error_from_status
from sevenhop.sources.kubernetes.discovery import Availability, Served, discover
from sevenhop.sources.kubernetes.limits import Limits
from sevenhop.sources.kubernetes.pages import list_pages
from tests.unit.sources.harness import NODE, POD, SERVICE, now


def server_of(*, tokens: set[str] | None = None, pods: int = 0) -> ApiServerSimulation:
    store = Store(now, [POD, NODE])
    for n in range(pods):
        store.create("Pod", {"metadata": {"name": f"p{n:03}"}})
    return ApiServerSimulation(store, tokens=tokens)


async def test_many_refused_at_once_load_once() -> None:
    """Ten requests that meet 401 together cause one load, and all succeed."""
    server = server_of(tokens={"new"})
    loads = 0
    async with server.serve() as url:

        async def load() -> Access:
            nonlocal loads
            loads += 1
            await asyncio.sleep(0.02)
            return Access(base_url=url, headers={"Authorization": "Bearer new"})

        async with ApiServer(Access(base_url=url, headers={"Authorization": "Bearer old"}), load) as api:
            await asyncio.gather(*(api.read("/api/v1/pods") for _ in range(10)))

    assert loads == 1


async def test_access_is_loaded_again_when_it_is_old() -> None:
    """A token that lives in a file is read again every so often, before the server refuses the old one."""
    server = server_of(tokens={"new"})
    clock = [0.0]
    async with server.serve() as url:

        async def load() -> Access:
            return Access(base_url=url, headers={"Authorization": "Bearer new"}, max_age_s=60)

        old = Access(base_url=url, headers={"Authorization": "Bearer old"}, max_age_s=60)
        async with ApiServer(old, load, monotonic=lambda: clock[0]) as api:
            clock[0] = 61
            await api.read("/api/v1/pods")
            assert (api.renewals, len(server.requests)) == (1, 1)


async def test_a_token_is_not_sent_elsewhere() -> None:
    """A redirect is an error, not followed: it would carry the token to whoever it names."""

    async def redirect(_: web.Request) -> web.Response:
        raise web.HTTPFound("http://example.invalid/")

    async with plain_server(redirect) as url, ApiServer(Access(base_url=url)) as api:
        with pytest.raises(ApiError) as caught:
            await api.read("/api")

    assert caught.value.status == 302


async def test_pages() -> None:
    """Pages follow each other at one resourceVersion and say how much is left."""
    server = server_of(pods=25)
    async with server.serve() as url, ApiServer(Access(base_url=url)) as api:
        pages = [page async for page in list_pages(api, POD, "v1", Limits(page_size=10))]

    assert [(len(p.items), p.remaining, p.is_last) for p in pages] == [(10, 15, False), (10, 5, False), (5, 0, True)]
    assert len({p.resource_version for p in pages}) == 1


async def test_a_token_that_expires_starts_the_list_over() -> None:
    """Expired once: again in pages; expired twice: in one piece.  410 without a token is the caller's."""
    server = server_of(pods=25)
    server.faults.add(ExpireContinue(times=2))
    async with server.serve() as url, ApiServer(Access(base_url=url)) as api:
        pages = [page async for page in list_pages(api, POD, "v1", Limits(page_size=10))]
        assert [(len(p.items), p.starts_over) for p in pages] == [(10, False), (10, True), (25, True)]

        server.faults.add(Refuse(verbs=["list"], status=410))
        with pytest.raises(ApiError) as caught:
            _ = [page async for page in list_pages(api, POD, "v1", Limits())]
        assert caught.value.is_gone


@asynccontextmanager
async def plain_server(
    handler: Callable[[web.Request], object], context: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/{path:.*}", handler)  # type: ignore[arg-type]
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield f"http{'s' if context else ''}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def answer(status: int, body: str = "", **headers: str) -> Callable[[web.Request], object]:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body, headers=headers)

    return handler


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        pytest.param(
            401, "", "refuses our credentials (401): the token has expired or is wrong; log in again", id="401"
        ),
        pytest.param(403, '{"message":"no"}', "forbids it (403): no; grant get, list and watch", id="403"),
        pytest.param(502, "<html>", "answered 502", id="a proxy's page"),
        pytest.param(200, "<html>", "answers, but not as a Kubernetes API server", id="not Kubernetes"),
        pytest.param(200, "[]", "answers, but not as a Kubernetes API server", id="not a version"),
    ],
)
async def test_check_says_what_to_do(status: int, body: str, message: str) -> None:
    """Every answer that is not a version is one line that names the server and the fix."""
    async with plain_server(answer(status, body)) as url, ApiServer(Access(base_url=url)) as api:
        with pytest.raises(ConnectError) as caught:
            await api.check()

    assert str(caught.value).startswith(url)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param("http://127.0.0.1:1", "cannot be reached (Connect call failed", id="nobody listens"),
        pytest.param("http://no-such-host.invalid", "host name not found", id="no such host"),
    ],
)
async def test_unreachable(url: str, message: str) -> None:
    """A server that cannot be reached is one line with its address."""
    async with ApiServer(Access(base_url=url)) as api:
        with pytest.raises(ConnectError) as caught:
            await api.check()

    assert url in str(caught.value)
    assert message in str(caught.value)


async def test_no_answer_in_time() -> None:
    """A server that takes the request and says nothing is given up."""

    async def silent(_: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    async with plain_server(silent) as url, ApiServer(Access(base_url=url), connect_s=0.1) as api:
        with pytest.raises(ConnectError, match="did not answer in time"):
            await api.check()


async def test_tls_to_a_plain_port() -> None:
    """TLS where there is none says so."""
    async with plain_server(answer(200)) as url:
        access = Access(base_url=url.replace("http://", "https://"), ssl=ssl.create_default_context())
        async with ApiServer(access) as api:
            with pytest.raises(ConnectError, match=r"TLS with .* failed"):
                await api.check()


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        pytest.param("7", b"{}", 7.0, id="seconds"),
        pytest.param("", b'{"details":{"retryAfterSeconds":3}}', 3.0, id="in the body"),
        pytest.param("", b"{}", None, id="nowhere"),
        pytest.param("soon", b"{}", None, id="nonsense"),
        pytest.param("Mon, 01 Jan 2001 00:00:00 GMT", b"{}", 0.0, id="a date that has passed"),
        pytest.param("99999999", b"{}", 3600.0, id="an hour at most"),
    ],
)
def test_retry_after(header: str, body: bytes, expected: float | None) -> None:
    """Every form of the server's wish to be left alone is understood, within reason."""
    assert error_from_status(body, 429, header).retry_after_s == expected


def discovery_of(answers: dict[str, tuple[int, str]]) -> Callable[[web.Request], object]:
    async def handler(request: web.Request) -> web.Response:
        status, body = answers.get(request.path, (404, "{}"))
        return web.Response(status=status, text=body)

    return handler


CORE = '{"kind":"APIVersions","versions":["v1"]}'
PODS = (
    '{"kind":"APIResourceList",'
    '"resources":[{"name":"pods","verbs":["list","watch"]},{"name":"nodes","verbs":["list"]}]}'
)
DYNAMO = '{"kind":"APIGroupList","groups":[{"name":"nvidia.com","versions":[{"version":"%s"}]}]}'
DGD = "DynamoGraphDeployment.nvidia.com"


def aggregated(version: str, freshness: str, verbs: str = '["list","watch"]') -> str:
    resource = f'{{"resource":"dynamographdeployments","verbs":{verbs}}}'
    served = f'{{"version":"{version}","freshness":"{freshness}","resources":[{resource}]}}'
    return f'{{"kind":"APIGroupDiscoveryList","items":[{{"metadata":{{"name":"nvidia.com"}},"versions":[{served}]}}]}}'


@pytest.mark.parametrize(
    ("apis", "group", "expected"),
    [
        pytest.param(aggregated("v1beta1", "Current"), (404, ""), (Availability.SERVED, "v1beta1"), id="served"),
        pytest.param(
            aggregated("v1alpha1", "Current"), (404, ""), (Availability.SERVED, "v1alpha1"), id="older version"
        ),
        pytest.param(aggregated("v1beta1", "Stale"), (404, ""), (Availability.UNCERTAIN, ""), id="its server is away"),
        pytest.param(
            aggregated("v1beta1", "Stale").replace(
                '"versions":[',
                '"versions":[{"version":"v1alpha1","resources":[{"resource":"dynamographdeployments","verbs":["list","watch"]}]},',
            ),
            (404, ""),
            (Availability.UNCERTAIN, ""),
            id="the preferred version is away",
        ),
        pytest.param(aggregated("v9", "Current"), (404, ""), (Availability.UNREADABLE, ""), id="a version not ours"),
        pytest.param(
            aggregated("v1beta1", "Current", '["get"]'),
            (404, ""),
            (Availability.UNREADABLE, ""),
            id="not to be watched",
        ),
        pytest.param('{"kind":"APIGroupList","groups":[]}', (404, ""), (Availability.ABSENT, ""), id="absent"),
        pytest.param(DYNAMO % "v1beta1", (503, ""), (Availability.UNCERTAIN, ""), id="plain: its server is away"),
        pytest.param(DYNAMO % "v1beta1", (404, ""), (Availability.ABSENT, ""), id="plain: gone meanwhile"),
        pytest.param(
            DYNAMO % "v9",
            (200, '{"resources":[{"name":"dynamographdeployments","verbs":["list","watch"]}]}'),
            (Availability.UNREADABLE, ""),
            id="plain: a version not ours",
        ),
    ],
)
async def test_discovery(apis: str, group: tuple[int, str], expected: tuple[Availability, str]) -> None:
    """Served, absent, unreadable and uncertain are told apart, in both forms of discovery."""

    pages = {"/api": (200, CORE), "/api/v1": (200, PODS), "/apis": (200, apis)}
    pages |= {"/apis/nvidia.com/v1beta1": group, "/apis/nvidia.com/v9": group}
    async with plain_server(discovery_of(pages)) as url, ApiServer(Access(base_url=url)) as api:
        served = await discover(api, [POD, NODE, SERVICE, KINDS[DGD]])

    assert (served[DGD].availability, served[DGD].version) == expected
    assert served["Pod"] == Served(Availability.SERVED, "v1")
    assert served["Node"].availability is Availability.UNREADABLE
    assert served["Service"].availability is Availability.ABSENT


def test_a_token_is_never_printed() -> None:
    """Access in a log or a traceback holds no token."""
    access = Access(base_url="https://a", headers={"Authorization": "Bearer s3cret"})

    assert "s3cret" not in repr(access)
