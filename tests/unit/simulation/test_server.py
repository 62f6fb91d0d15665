"""The simulated API server answers as the real one does, as far as we use it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from sevenhop.simulation.clock import VirtualClock
from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.simulation.store import Store
from sevenhop.sources.kubernetes.api import Access, ApiError, ApiServer

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
PODS = "/api/v1/namespaces/x/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/x/deployments"
MERGE = "application/merge-patch+json"


class Client:
    """Requests with JSON in and out; what went wrong as (status, reason)."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api

    async def __call__(
        self, method: str, path: str, body: Any = None, style: str = "application/json", **query: str
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = await self._api.read(path, query, method=method, body=data, headers={"Content-Type": style})
        except ApiError as error:
            return error.status, error.reason
        return json.loads(answer)

    async def watch(self, path: str, lines: int, **query: str) -> list[dict[str, Any]]:
        read: list[dict[str, Any]] = []
        async with self._api.open(path, {"watch": "1", **query}, silence_s=5) as response:
            while len(read) < lines:
                read.append(json.loads(await response.content.readline()))
        return read


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


@pytest.fixture
def store(clock: VirtualClock) -> Store:
    return Store(clock, history=20)


@pytest_asyncio.fixture
async def client(store: Store) -> AsyncIterator[Client]:
    server = ApiServerSimulation(store, bookmark_s=0.05)
    async with server.serve() as url, ApiServer(Access(base_url=url)) as api:
        yield Client(api)


def pod(name: str, **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **meta}, "spec": {"containers": []}}


async def test_create_and_get(client: Client) -> None:
    """Identity, time and defaults are the server's; status is not taken from the creator."""
    made = await client("POST", PODS, {**pod("a"), "status": {"phase": "Running"}})
    got = await client("GET", f"{PODS}/a")

    assert made == got
    meta = got["metadata"]
    assert (meta["namespace"], meta["generation"], meta["creationTimestamp"]) == ("x", 1, "2026-11-30T12:00:00Z")
    assert meta["uid"]
    assert meta["resourceVersion"].isdecimal()
    assert (got["status"], got["spec"]["restartPolicy"]) == ({"phase": "Pending"}, "Always")


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        pytest.param("GET", f"{PODS}/none", None, (404, "NotFound"), id="no such object"),
        pytest.param("GET", "/apis/none/v1/things", None, (404, "NotFound"), id="no such kind"),
        pytest.param("GET", "/api/v2/pods", None, (404, "NotFound"), id="no such version"),
        pytest.param("POST", PODS, pod("a"), (409, "AlreadyExists"), id="it exists"),
        pytest.param("POST", PODS, {"metadata": {}}, (422, "Invalid"), id="no name"),
        pytest.param("POST", PODS, pod("b", namespace="y"), (400, "BadRequest"), id="another namespace"),
        pytest.param("PUT", f"{PODS}/a", pod("a", resourceVersion="1"), (409, "Conflict"), id="an old version"),
        pytest.param("PUT", f"{PODS}/a", pod("a", uid="other"), (409, "Conflict"), id="another incarnation"),
        pytest.param("PUT", f"{PODS}/none", pod("none"), (404, "NotFound"), id="nothing to replace"),
        pytest.param("DELETE", f"{PODS}/none", None, (404, "NotFound"), id="nothing to delete"),
        pytest.param("DELETE", f"{PODS}/a", {"preconditions": {"uid": "other"}}, (409, "Conflict"), id="precondition"),
        pytest.param("GET", f"{PODS}/a/scale", None, (404, "NotFound"), id="no scale"),
    ],
)
async def test_refusals(client: Client, method: str, path: str, body: Any, expected: tuple[int, str]) -> None:
    """What cannot be done is refused with the API's own status and reason."""
    await client("POST", PODS, pod("a"))

    assert await client(method, path, body) == expected


@pytest.mark.parametrize(
    ("style", "patch"),
    [
        pytest.param(MERGE, {"spec": {"replicas": 3}}, id="merge"),
        pytest.param("application/strategic-merge-patch+json", {"spec": {"replicas": 3}}, id="strategic"),
        pytest.param(
            "application/json-patch+json", [{"op": "replace", "path": "/spec/replicas", "value": 3}], id="json"
        ),
        pytest.param("application/apply-patch+yaml", {"spec": {"replicas": 3}}, id="apply"),
    ],
)
async def test_patches(client: Client, store: Store, style: str, patch: Any) -> None:
    """Each kind of patch changes the spec, its generation, and names its manager."""
    await client("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"replicas": 1, "template": {}}})

    after = await client("PATCH", f"{DEPLOYMENTS}/d", patch, style, fieldManager="me")

    assert (after["spec"], after["metadata"]["generation"]) == ({"replicas": 3, "template": {}}, 2)
    assert [m["manager"] for m in after["metadata"]["managedFields"]] == ["me"]
    assert store.get("Deployment.apps", "x", "d")["spec"]["replicas"] == 3


async def test_patch_preconditions(client: Client) -> None:
    """A patch that names a version or uid applies to no other; a failing test refuses the whole patch."""
    made = await client("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"replicas": 1}})
    old = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "spec": {"replicas": 2}}

    assert (await client("PATCH", f"{DEPLOYMENTS}/d", old, MERGE))["spec"]["replicas"] == 2
    assert await client("PATCH", f"{DEPLOYMENTS}/d", old, MERGE) == (409, "Conflict")
    test = [{"op": "test", "path": "/spec/replicas", "value": 1}, {"op": "remove", "path": "/spec/replicas"}]
    assert await client("PATCH", f"{DEPLOYMENTS}/d", test, "application/json-patch+json") == (422, "Invalid")


async def test_dry_run_changes_nothing(client: Client, store: Store) -> None:
    """A dry run answers as the real thing would, and leaves no trace."""
    await client("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"replicas": 1}})
    before = store.revision

    patched = await client("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"replicas": 5}}, MERGE, dryRun="All")
    await client("POST", PODS, pod("a"), dryRun="All")
    await client("DELETE", f"{DEPLOYMENTS}/d", dryRun="All")

    assert patched["spec"]["replicas"] == 5
    assert store.revision == before


async def test_subresources(client: Client) -> None:
    """Status and scale change their part alone, and the object itself leaves status alone."""
    await client("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"replicas": 1}})
    await client("PATCH", f"{DEPLOYMENTS}/d/status", {"status": {"replicas": 1}, "spec": {"replicas": 9}}, MERGE)
    await client("PATCH", f"{DEPLOYMENTS}/d", {"status": {"replicas": 7}}, MERGE)
    scale = await client("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 4}}, MERGE)
    got = await client("GET", f"{DEPLOYMENTS}/d")

    assert (scale["kind"], scale["spec"], scale["status"]["replicas"]) == ("Scale", {"replicas": 4}, 1)
    assert (got["spec"]["replicas"], got["status"]["replicas"]) == (4, 1)
    assert await client("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}}, MERGE) == (422, "Invalid")


async def test_deletion_takes_its_time(client: Client, store: Store, clock: VirtualClock) -> None:
    """A bound pod terminates for its grace period, a waiting one is gone at once, finalizers hold an object."""
    await client("POST", PODS, pod("waits"))
    await client("POST", PODS, {**pod("runs"), "spec": {"nodeName": "n", "containers": []}})
    await client("POST", PODS, pod("held", finalizers=["a/b"]))
    clock.advance(timedelta(seconds=10))
    for name in ("waits", "runs", "held"):
        await client("DELETE", f"{PODS}/{name}")

    assert store.find("Pod", "x", "waits") is None
    assert store.get("Pod", "x", "runs")["metadata"]["deletionTimestamp"] == "2026-11-30T12:00:40Z"
    await client("DELETE", f"{PODS}/runs", {"gracePeriodSeconds": 0})
    await client("PATCH", f"{PODS}/held", {"metadata": {"finalizers": None}}, MERGE)
    assert store.all("Pod") == []


async def test_watch(client: Client, store: Store) -> None:
    """A watch continues after its version, in order, with bookmarks; a deletion has a version of its own."""
    await client("POST", PODS, pod("a"))
    start = (await client("GET", "/api/v1/pods"))["metadata"]["resourceVersion"]
    store.change("Pod", "x", "a", lambda p: {**p, "status": {"phase": "Running"}})
    store.delete("Pod", "x", "a")

    lines = await client.watch("/api/v1/pods", 3, resourceVersion=start, allowWatchBookmarks="true")

    assert [line["type"] for line in lines] == ["MODIFIED", "DELETED", "BOOKMARK"]
    versions = [int(line["object"]["metadata"]["resourceVersion"]) for line in lines]
    assert versions[0] < versions[1] <= versions[2]


async def test_watch_from_nothing_begins_with_what_is_there(client: Client) -> None:
    """Without a version, what exists comes as additions, then what happens."""
    await client("POST", PODS, pod("a"))
    watching = asyncio.create_task(client.watch(PODS, 2))
    await asyncio.sleep(0.05)
    await client("POST", PODS, pod("b"))

    assert [(e["type"], e["object"]["metadata"]["name"]) for e in await watching] == [("ADDED", "a"), ("ADDED", "b")]


async def test_old_versions_are_gone(client: Client, store: Store) -> None:
    """A version that is no longer known is an ERROR line with 410."""
    for n in range(60):
        store.create("Pod", pod(f"p{n}"))

    line = (await client.watch("/api/v1/pods", 1, resourceVersion="2"))[0]

    assert (line["type"], line["object"]["code"], line["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_selectors(client: Client, store: Store) -> None:
    """Labels and fields select in lists, and in watches an object that stops matching is deleted."""
    await client("POST", PODS, pod("a", labels={"app": "x", "tier": "batch"}))
    await client("POST", PODS, pod("b", labels={"app": "y"}))

    async def names(**query: str) -> list[str]:
        return [item["metadata"]["name"] for item in (await client("GET", PODS, **query))["items"]]

    assert await names(labelSelector="app=x") == ["a"]
    assert await names(labelSelector="app in (x, y),!tier") == ["b"]
    assert await names(labelSelector="app!=x") == ["b"]
    assert await names(labelSelector="tier") == ["a"]
    assert await names(fieldSelector="metadata.name=b") == ["b"]
    assert await names(fieldSelector="spec.nodeName=") == ["a", "b"]
    start = str(store.revision)
    for labels in ({}, {"app": "x"}):
        known = store.get("Pod", "x", "a")
        store.update("Pod", {**known, "metadata": {**known["metadata"], "labels": labels}})
    seen = await client.watch(PODS, 2, labelSelector="app=x", resourceVersion=start)
    assert [e["type"] for e in seen] == ["DELETED", "ADDED"]


async def test_no_change_is_no_version(client: Client, store: Store) -> None:
    """A write that changes nothing is not told to anybody."""
    await client("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"replicas": 1}})
    before = store.revision

    await client("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"replicas": 1}}, MERGE)

    assert store.revision == before


async def test_the_official_client_reads_it(store: Store) -> None:
    """The Kubernetes project's own client lists and scales on it."""
    from kubernetes.aio import client as official

    store.create("Deployment.apps", {"metadata": {"name": "d", "namespace": "x"}, "spec": SPEC})
    server = ApiServerSimulation(store)
    async with server.serve() as url, official.ApiClient(official.Configuration(host=url)) as raw:
        apps: Any = official.AppsV1Api(raw)
        listed = await apps.list_namespaced_deployment("x")
        scaled = await apps.patch_namespaced_deployment_scale("d", "x", {"spec": {"replicas": 3}})

    assert [item.metadata.name for item in listed.items] == ["d"]
    assert scaled.spec.replicas == 3


SPEC = {
    "replicas": 1,
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
}


async def test_eviction_asks_the_budget(client: Client, store: Store) -> None:
    """Another incarnation is a conflict, a budget without room is 429, and a dry run deletes nothing."""
    labels = {"app": "x"}
    made = await client("POST", PODS, pod("a", labels=labels))
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    store.change("Pod", "x", "a", lambda data: {**data, "status": ready})
    budget = {
        "metadata": {"name": "b", "namespace": "x"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    store.create("PodDisruptionBudget.policy", budget)
    assert await client("POST", f"{PODS}/a/eviction", {}) == (429, "TooManyRequests")
    store.delete("PodDisruptionBudget.policy", "x", "b")
    other = {"deleteOptions": {"preconditions": {"uid": "other"}}}
    assert await client("POST", f"{PODS}/a/eviction", other) == (409, "Conflict")
    same = {"deleteOptions": {"preconditions": {"uid": made["metadata"]["uid"]}}}
    await client("POST", f"{PODS}/a/eviction", {"deleteOptions": {**same["deleteOptions"], "dryRun": ["All"]}})
    assert store.find("Pod", "x", "a") is not None
    await client("POST", f"{PODS}/a/eviction", same)
    assert store.find("Pod", "x", "a") is None


async def test_an_event_of_the_new_group_is_the_same_object(client: Client) -> None:
    """It is written in events.k8s.io and read in core; what is required there is asked for."""
    event = {
        "metadata": {"name": "e", "namespace": "x"},
        "eventTime": "2026-11-30T12:00:00.000000Z",
        "reportingController": "sevenhop.dev/test",
        "reportingInstance": "test",
        "action": "Test",
        "reason": "Tested",
        "type": "Normal",
        "note": "well",
        "regarding": {"kind": "Pod", "name": "a", "namespace": "x"},
    }
    path = "/apis/events.k8s.io/v1/namespaces/x/events"
    await client("POST", path, event)
    got = await client("GET", "/api/v1/namespaces/x/events/e")

    assert (got["message"], got["involvedObject"]["name"]) == ("well", "a")
    assert await client("POST", path, event) == (409, "AlreadyExists")
    assert await client("POST", path, {**event, "metadata": {"name": "f"}, "action": ""}) == (422, "Invalid")
