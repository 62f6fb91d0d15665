"""The real source against a server that misbehaves on purpose: what it knows converges to what is true."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime

import pytest
from msgspec.structs import replace

from sevenhop.core.events import Applied, Deleted, Event, SyncState, Unreadable
from sevenhop.core.objects.cluster import Event as KubernetesEvent
from sevenhop.simulation import faults as f
from sevenhop.sources.kubernetes.api import Access, ApiServer, ConnectError
from sevenhop.sources.kubernetes.limits import Limits
from sevenhop.sources.kubernetes.source import KubernetesSource
from tests.unit.sources.harness import EVENT, NODE, POD, QUICK, SERVICE, Bench, bench, now, until


def some_objects(b: Bench) -> None:
    for name in ("a", "b", "c"):
        b.pod(name)
    b.node("n")


def assert_nothing_twice(b: Bench) -> None:
    """No state of an object was told twice, and no deletion."""
    for kind in ("Pod", "Node"):
        twice = [what for what, times in Counter(b.heard.changes_of(kind)).items() if times > 1]
        assert not twice


def change_everything(b: Bench) -> None:
    """An addition, two changes of one object, a deletion, and a new object under an old name."""
    b.pod("d")
    b.touch("a", "1")
    b.touch("a", "2")
    b.store.delete("Pod", "default", "b")
    b.store.delete("Pod", "default", "c")
    b.pod("c")


async def test_a_healthy_server() -> None:
    """Without any fault, additions, changes and deletions arrive once each, in order."""
    async with bench(prepare=some_objects) as b:
        await b.converges()
        before = len(b.heard.changes_of("Pod"))
        change_everything(b)
        await b.converges()

        told = [what for what, _ in b.heard.changes_of("Pod")[before:]]
        assert told == ["applied", "applied", "applied", "deleted", "deleted", "applied"]
        assert_nothing_twice(b)
        status = b.status("Pod")
        assert (status.state, status.version, status.objects, status.errors, status.lists) == (
            SyncState.SYNCED,
            "v1",
            3,
            0,
            1,
        )
        assert status.last_line_at is not None


STREAM_FAULTS = [
    pytest.param(lambda: f.Stall(plural="pods"), id="the watch stalls"),
    pytest.param(lambda: f.Drip(plural="pods"), id="the watch drips"),
    pytest.param(lambda: f.CutMidLine(plural="pods"), id="cut in the middle of a line"),
    pytest.param(lambda: f.EndMidLine(plural="pods"), id="ended in the middle of a line"),
    pytest.param(lambda: f.Duplicate(plural="pods"), id="every line twice"),
    pytest.param(lambda: f.Duplicate(plural="pods", late=True), id="old lines after newer ones"),
    pytest.param(lambda: f.Reorder(plural="pods"), id="lines in reverse"),
    pytest.param(lambda: f.ErrorLine(plural="pods"), id="410 as a line"),
    pytest.param(
        lambda: f.ErrorLine(plural="pods", status=b'{"metadata":{"uid":"u"},"code":410,"reason":"Gone"}'),
        id="410 as a line with metadata.uid",
    ),
    pytest.param(
        lambda: f.ErrorLine(plural="pods", status=b'{"code":500,"message":"etcd"}', times=5), id="500 as a line"
    ),
    pytest.param(lambda: f.ErrorLine(plural="pods", status=b'"?"', times=5), id="an error line without a status"),
    pytest.param(lambda: f.Garble(plural="pods"), id="a broken line"),
    pytest.param(lambda: f.Refuse(plural="pods", verbs=["watch"], status=410), id="410 as a status"),
    pytest.param(lambda: f.Refuse(plural="pods", verbs=["watch"], status=503, times=6), id="503"),
    pytest.param(lambda: f.Refuse(plural="pods", verbs=["watch"], status=429, retry_after="0"), id="429"),
    pytest.param(lambda: f.Hang(plural="pods", verbs=["watch"]), id="no answer to the watch"),
]


@pytest.mark.parametrize("fault", STREAM_FAULTS)
async def test_watches_that_go_wrong(fault: Callable[[], f.Fault]) -> None:
    """After any fault of a watch, what is known is what the server has, nothing was told twice, others saw nothing."""
    async with bench(prepare=some_objects) as b:
        await b.converges()
        made = b.faults.add(fault())
        b.server.drop_connections()
        await until(lambda: made.hits > 0)
        change_everything(b)
        b.node("m")
        await b.converges()
        b.touch("d", "later")
        await b.converges()

        assert_nothing_twice(b)
        assert b.status("Node").errors == 0
        assert b.status("Node").lists == 1 + b.status("Node").silences  # none, unless all of this process stood still


LIST_FAULTS = [
    pytest.param(lambda: f.Refuse(plural="pods", verbs=["list"], status=500, times=3), id="500 three times"),
    pytest.param(lambda: f.Refuse(plural="pods", verbs=["list"], status=429, retry_after="0", times=2), id="429"),
    pytest.param(lambda: f.Refuse(plural="pods", verbs=["list"], status=410, times=2), id="410"),
    pytest.param(lambda: f.Refuse(plural="pods", verbs=["list"], status=403, times=2), id="403 for a while"),
    pytest.param(lambda: f.Hang(plural="pods", verbs=["list"]), id="no answer to the list"),
    pytest.param(lambda: f.Slow(plural="pods", verbs=["list"], seconds=0.3), id="a slow list"),
    pytest.param(lambda: f.ExpireContinue(plural="pods"), id="a continue token expires"),
    pytest.param(lambda: f.ExpireContinue(plural="pods", times=2), id="continue tokens expire again"),
]


@pytest.mark.parametrize("fault", LIST_FAULTS)
async def test_lists_that_go_wrong(fault: Callable[[], f.Fault]) -> None:
    """A first list that fails is tried again until it is whole; other kinds are known long before."""

    def prepare(b: Bench) -> None:
        for n in range(25):
            b.pod(f"p{n}")
        b.node("n")
        b.faults.add(fault())

    limits = _limits(page_size=10)
    async with bench(prepare=prepare, limits=limits) as b:
        await until(lambda: b.heard.states.get("Node") is SyncState.SYNCED)
        await b.converges()

        assert_nothing_twice(b)
        assert b.status("Node").errors == 0


def _limits(**changed: float) -> Limits:
    return replace(QUICK, **changed)


async def test_objects_that_vanish_while_a_list_starts_over() -> None:
    """What an abandoned page held, and the finished list does not, is taken back."""

    def prepare(b: Bench) -> None:
        for n in range(25):
            b.pod(f"p{n:02}")
        b.faults.add(_DeleteThenExpire(b, plural="pods"))

    async with bench(prepare=prepare, limits=_limits(page_size=10)) as b:
        await b.converges()

        assert ("Pod", "default", "p00") not in b.heard.level
        assert [what for what, _ in b.heard.changes_of("Pod")].count("deleted") == 1


class _DeleteThenExpire(f.ExpireContinue):
    """An object of the first page is deleted, and the token for the second is refused."""

    def __init__(self, b: Bench, plural: str) -> None:
        super().__init__(plural=plural)
        self._b = b

    async def before(self, call: f.Call) -> f.Refusal | None:
        self._b.store.delete("Pod", "default", "p00")
        return await super().before(call)


async def test_a_restarted_server_has_forgotten_the_past() -> None:
    """Connections end and old versions are gone: one list mends it, deletions in between included."""
    async with bench(prepare=some_objects) as b:
        await b.converges()
        fault = b.faults.add(f.Refuse(status=503, times=None))
        b.server.drop_connections()
        await until(lambda: fault.hits >= 4)
        change_everything(b)
        b.store.forget_history("Pod")
        b.faults.remove(fault)
        await b.converges()

        deleted = [e for e in b.heard.of("Pod") if isinstance(e, Deleted)]
        assert {e.name for e in deleted} == {"b", "c"}
        assert b.status("Pod").lists >= 2
        assert_nothing_twice(b)


async def test_a_relist_is_a_diff_in_a_new_epoch() -> None:
    """Only what changed is told after a re-list, and later than everything before by (epoch, seq)."""
    async with bench(prepare=some_objects) as b:
        await b.converges()
        before = b.heard.of("Pod")
        b.faults.add(f.Refuse(plural="pods", verbs=["watch"], status=410))
        b.server.drop_connections()
        b.touch("a", "x")
        await b.converges()

        after = b.heard.of("Pod")[len(before) :]
        assert [e.obj.metadata.name for e in after if isinstance(e, Applied)] == ["a"]
        order = [(e.epoch, e.seq) for e in b.heard.of("Pod")]
        assert order == sorted(set(order))
        assert after[0].epoch > before[-1].epoch


async def test_a_quiet_kind_without_bookmarks() -> None:
    """A kind of which the server says nothing at all is listed again and again, stays synced, and is no error."""
    async with bench(prepare=some_objects, bookmark_s=60) as b:
        await until(lambda: b.status("Pod").lists >= 3)

        assert b.heard.states["Pod"] is SyncState.SYNCED
        assert (b.status("Pod").errors, b.status("Pod").silences >= 2) == (0, True)
        assert_nothing_twice(b)


async def test_stale_and_back() -> None:
    """A kind of which nothing is heard for two silences is stale, says why, and is synced again after one list."""
    async with bench(prepare=some_objects) as b:
        await b.converges()
        faults = [
            b.faults.add(f.Stall(plural="pods", times=None)),
            b.faults.add(f.Refuse(plural="pods", verbs=["list"], status=500, message="etcd is away", times=None)),
        ]
        b.server.drop_connections()
        await until(lambda: b.heard.states["Pod"] is SyncState.STALE)

        assert "500: etcd is away" in b.heard.details["Pod"]
        assert b.status("Pod").state is SyncState.STALE
        assert b.status("Pod").errors > 0
        assert b.heard.states["Node"] is SyncState.SYNCED
        for fault in faults:
            b.faults.remove(fault)
        b.server.drop_connections()
        await b.converges()
        assert b.status("Pod").detail == ""


async def test_a_forbidden_kind_names_the_permission() -> None:
    """What is missing is named with verb, resource and group; others work; granted later, it is picked up."""

    def prepare(b: Bench) -> None:
        some_objects(b)
        b.faults.add(f.Refuse(plural="services", status=403, reason="Forbidden", message="no", times=None))

    async with bench(POD, NODE, SERVICE, prepare=prepare) as b:
        await until(lambda: b.heard.states.get("Service") is SyncState.FORBIDDEN)
        await until(lambda: b.heard.states.get("Pod") is SyncState.SYNCED)

        assert "may not list services: grant verbs get, list, watch on services" in b.heard.details["Service"]
        b.faults.remove(b.faults._faults[0])
        await b.converges()


async def test_throttling_waits_as_long_as_asked() -> None:
    """429 with Retry-After is waited for, and the wait is visible."""

    def prepare(b: Bench) -> None:
        b.faults.add(f.Refuse(plural="pods", verbs=["list"], status=429, retry_after="1"))

    async with bench(prepare=prepare) as b:
        await until(lambda: b.status("Pod").next_try_at is not None)
        started = asyncio.get_running_loop().time()
        status = b.status("Pod")
        assert "throttles us (429)" in status.detail
        assert status.state is SyncState.NOT_SYNCED
        await b.converges()

        assert asyncio.get_running_loop().time() - started > 0.8
        assert b.status("Pod").next_try_at is None


async def test_a_rotated_token() -> None:
    """The old token is refused, one load brings the new one, and no kind loses anything."""
    tokens = iter(["new", "newer"])
    loads = 0

    def access(url: str) -> ApiServer:
        async def load() -> Access:
            nonlocal loads
            loads += 1
            return Access(base_url=url, headers={"Authorization": f"Bearer {next(tokens)}"})

        return ApiServer(Access(base_url=url, headers={"Authorization": "Bearer old"}), load)

    async with bench(prepare=some_objects, access=access, tokens={"old"}) as b:
        await b.converges()
        b.server.tokens = {"new"}
        b.server.drop_connections()
        change_everything(b)
        await b.converges()

        assert loads == 1
        assert b.status("Pod").errors == 0
        assert_nothing_twice(b)


async def test_an_expired_token_that_cannot_be_renewed() -> None:
    """With no new token, the source goes on trying, slowly, and says what to do; a token that comes is taken."""
    token = "old"

    def access(url: str) -> ApiServer:
        async def load() -> Access:
            if token == "old":
                raise ConnectError("the exec plug-in wants you to log in")
            return Access(base_url=url, headers={"Authorization": f"Bearer {token}"})

        return ApiServer(Access(base_url=url, headers={"Authorization": "Bearer old"}), load)

    async with bench(prepare=some_objects, access=access, tokens={"old"}) as b:
        await b.converges()
        b.server.tokens = {"new"}
        b.server.drop_connections()
        await until(lambda: b.heard.states["Pod"] is SyncState.STALE)
        assert "401" in b.heard.details["Pod"]
        assert "wants you to log in" in b.heard.details["Pod"]
        assert len(b.server.requests) < 400

        token = "new"
        change_everything(b)
        await b.converges()


async def test_a_large_object() -> None:
    """An object of two megabytes arrives by watch and by list."""
    large = "x" * 2_000_000
    async with bench() as b:
        await b.converges()
        b.store.create("Pod", {"metadata": {"name": "large", "annotations": {"a": large}}, "spec": {}})
        await b.converges()
        first = next(e for e in b.heard.of("Pod") if isinstance(e, Applied))
        assert first.obj.metadata.annotations["a"] == large

        b.faults.add(f.Refuse(plural="pods", verbs=["watch"], status=410))
        b.server.drop_connections()
        b.touch("large", "x")
        await b.converges()


async def test_many_failed_pods_of_one_owner() -> None:
    """12,000 failed pods are listed in pages and slices, and the loop is never held up for long."""

    def prepare(b: Bench) -> None:
        owner = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}]
        for n in range(12_000):
            meta = {"name": f"p{n}", "ownerReferences": owner}
            b.store.create("Pod", {"metadata": meta, "spec": {}, "status": {"phase": "Failed", "reason": "Evicted"}})
        b.node("n")

    patient = _limits(silence_s=60.0, list_silence_s=60.0, connect_s=60.0)  # a list that is tried again has more pages
    async with bench(prepare=prepare, limits=patient) as b:
        await b.converges(60)

        assert b.status("Pod").objects == 12_000
        assert max(map(len, b.heard.batches)) <= QUICK.slice_objects
        pages = [path for _, path in b.server.requests if path.startswith("/api/v1/pods?limit=500")]
        assert len(pages) == 24


async def test_events_without_times() -> None:
    """Events whose times are null, as those of the old API are, are read like others."""
    async with bench(EVENT, NODE) as b:
        await b.converges()
        nulls = dict.fromkeys(("eventTime", "firstTimestamp", "lastTimestamp", "series", "source"))
        about = {"kind": "Pod", "name": "p", "namespace": "default"}
        b.store.create(
            "Event",
            {"metadata": {"name": "e"}, "involvedObject": about, "reason": "FailedScheduling", "message": "m", **nulls},
        )
        await b.converges()

        event = next(e for e in b.heard.of("Event") if isinstance(e, Applied)).obj
        assert isinstance(event, KubernetesEvent)
        assert (event.about.name, event.text) == ("p", "m")
        assert isinstance(event.last_seen, datetime)


async def test_an_object_that_cannot_be_read() -> None:
    """It is told as unreadable with its name, counted, and told again once it can be read; others are not held up."""
    async with bench(prepare=some_objects) as b:
        await b.converges()
        b.store.create("Pod", {"metadata": {"name": "odd"}, "spec": {"containers": "none"}})
        b.pod("next")
        await until(lambda: ("Pod", "default", "next") in b.heard.level)

        unreadable = [e for e in b.heard.of("Pod") if isinstance(e, Unreadable)]
        assert [(e.name, e.namespace) for e in unreadable] == [("odd", "default")]
        assert "$.spec.containers" in unreadable[0].error
        assert b.status("Pod").unreadable == 1
        assert b.status("Pod").lists == 1 + b.status("Pod").silences

        b.store.change("Pod", "default", "odd", lambda pod: {**pod, "spec": {"containers": []}})
        await b.converges()


async def test_a_kind_that_comes_and_goes() -> None:
    """A CRD that is created later is picked up; deleted, its objects are gone and the kind absent; then back again."""
    async with bench(POD, SERVICE, limits=_limits(discovery_s=0.1)) as b:
        await b.converges()
        b.store.create("Service", {"metadata": {"name": "s"}})
        await b.converges()
        b.store.withdraw("Service")
        await until(lambda: b.heard.states["Service"] is SyncState.ABSENT)
        assert b.heard.level == {}
        assert b.status("Service").version == ""

        b.store.serve(SERVICE)
        b.store.create("Service", {"metadata": {"name": "t"}})
        await b.converges()
        assert [key[2] for key in b.heard.level] == ["t"]


async def test_a_kind_that_vanishes_is_asked_for_at_once() -> None:
    """404 on a watched kind does not wait for the next discovery."""
    async with bench(POD, SERVICE, limits=_limits(discovery_s=60)) as b:
        await b.converges()
        b.store.withdraw("Service")
        await until(lambda: b.heard.states["Service"] is SyncState.ABSENT)


@pytest.mark.parametrize("aggregated", [True, False], ids=["aggregated", "plain"])
async def test_discovery_forms(aggregated: bool) -> None:
    """Both forms of discovery give the same."""
    async with bench(POD, prepare=lambda b: b.pod("a"), source_kinds=[POD, NODE], aggregated=aggregated) as b:
        await until(lambda: b.heard.states.get("Node") is SyncState.ABSENT)
        await b.converges()


async def test_discovery_that_is_away_at_the_start() -> None:
    """Kinds are not synced, with the reason, until the server answers."""

    def prepare(b: Bench) -> None:
        some_objects(b)
        b.faults.add(f.Refuse(verbs=["discovery"], status=503, message="starting", times=8))

    async with bench(prepare=prepare) as b:
        await until(lambda: "503: starting" in b.heard.details.get("Pod", ""))
        assert b.heard.states["Pod"] is SyncState.NOT_SYNCED
        await b.converges()


async def test_a_taker_that_fails_ends_the_source() -> None:
    """What cannot be handed over must not be taken for told: the source ends with the taker's error."""
    b = Bench([POD])
    b.pod("a")

    async def full(_: list[Event]) -> None:
        raise OSError("disk full")

    async with b.server.serve() as url, ApiServer(Access(base_url=url)) as api:
        source = KubernetesSource(api, [POD], clock=now, limits=QUICK)
        with pytest.raises(OSError, match="disk full"):
            await asyncio.wait_for(source.run(full), 30)


async def test_a_watch_that_never_works() -> None:
    """Where one version cannot be watched, lists still bring what changed: no resourceVersion is repeated for ever."""
    async with bench(prepare=some_objects) as b:
        await b.converges()
        b.faults.add(f.Refuse(plural="pods", verbs=["watch"], status=500, times=None))
        b.server.drop_connections()
        change_everything(b)
        await b.converges()


async def test_the_unreadable_is_told_again_after_a_list() -> None:
    """A new epoch repeats what could not be read: it is still unknown."""
    async with bench() as b:
        await b.converges()
        b.store.create("Pod", {"metadata": {"name": "odd"}, "spec": {"containers": "none"}})
        await until(lambda: b.status("Pod").unreadable == 1)
        b.faults.add(f.Refuse(plural="pods", verbs=["watch"], status=410))
        b.server.drop_connections()
        await until(lambda: b.status("Pod").unreadable == 2)

        assert [e.epoch for e in b.heard.of("Pod") if isinstance(e, Unreadable)] == [1, 2]
