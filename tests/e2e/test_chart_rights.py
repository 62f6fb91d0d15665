"""
The chart's roles on the real API server: with them the whole story is told, and without any one of their verbs
something that has a name goes missing.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from sevenhop.core.objects.kinds import KINDS
from sevenhop.runtime.leader import Lease
from sevenhop.sources.kubernetes.connect import connect
from sevenhop.sources.kubernetes.identity import UnverifiedError, review_token
from tests.e2e.chart import CHART, Object, granted, of_kind, rendered
from tests.e2e.scenes import scene
from tests.e2e.service import Service
from tests.e2e.slack import FakeSlack, shown
from tests.e2e.test_story import RECOVERED, SHORT, Told
from tests.e2e.test_story import _tell as tell
from tests.saying import Say
from tests.testbed.cluster import Cluster
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

Right = tuple[str, str, str]


class Installed:
    """The accounts and roles of a release, and nothing else of it; gone when the block ends."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        values: Path | Mapping[str, Any],
        without: frozenset[Right] = frozenset(),
        *,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self._client = cluster.client
        self.namespace = f"rights-{uuid.uuid4().hex[:8]}"
        objects = rendered(values, more or {}, folder=folder, namespace=self.namespace)
        kinds = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
        self.objects = [each for kind in kinds for each in of_kind(objects, kind)]
        self.granted = {right for role in of_kind(objects, "ClusterRole") for right in granted(role)}
        for role in of_kind(self.objects, "ClusterRole"):
            role["rules"] = _rules(granted(role) - without)
        self.user = f"system:serviceaccount:{self.namespace}:sevenhop"

    def __enter__(self) -> Installed:
        self._client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        for each in self.objects:
            self._client.create(each)
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.objects:
            metadata = each["metadata"]
            self._client.delete(each["apiVersion"], each["kind"], metadata["name"], metadata.get("namespace", ""))
        self._client.delete("v1", "Namespace", self.namespace)


def _rules(rights: set[Right]) -> list[Object]:
    return [{"apiGroups": [group], "resources": [what], "verbs": [verb]} for group, what, verb in sorted(rights)]


@pytest.fixture(scope="module")
def told(testbed: Cluster, slack: FakeSlack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Told, Any]]:
    """The whole story of tests/e2e/test_story.py, by the account that the chart makes; and the doctor's last report."""
    folder = tmp_path_factory.mktemp("chart-story")
    with Installed(testbed, folder, {}) as installed, scene(testbed) as here:
        kubeconfig = testbed.kubeconfig(installed.user)
        service = Service(folder / "service", kubeconfig, slack=slack, rules=(SHORT,), name=here.namespace)
        told = Told(here.namespace)
        try:
            tell(here, service, slack, told)
            service.start()
            yield told, service.doctor()
        finally:
            service.stop()


def test_the_whole_story_is_told_with_the_rendered_role(told: tuple[Told, Any]) -> None:
    """One message from the first alert to green again, over restarts and a lost state."""
    story, _ = told
    assert set(story.posts.values()) == {1}, story.posts
    assert RECOVERED in shown(story.last)
    assert [code for code, _ in story.stops] == [0, 0, 0]


def test_nothing_is_hidden_with_the_rendered_role(told: tuple[Told, Any]) -> None:
    """The doctor has no kind to complain about."""
    _, report = told
    assert report["trouble"] == []
    assert not report["discovery_error"]


def test_every_verb_of_the_reading_role_is_needed(testbed: Cluster, slack: FakeSlack, tmp_path: Path, say: Say) -> None:
    """
    Without a verb of a kind, the doctor names that kind and that verb, and no other.

    In two installations each verb is missing once: of each kind `list` in one of them and `watch` in the other.
    """
    kinds = sorted(KINDS.values(), key=lambda kind: kind.name)
    rows: list[str] = []
    unserved: set[str] = set()
    for turn in (0, 1):
        missing = {kind.name: ("list", "watch")[(number + turn) % 2] for number, kind in enumerate(kinds)}
        without = frozenset((KINDS[name].group, KINDS[name].plural, verb) for name, verb in missing.items())
        folder = tmp_path / str(turn)
        folder.mkdir()
        with Installed(testbed, folder, {}, without) as installed:
            assert installed.granted >= without
            assert {verb for _, _, verb in installed.granted} == {"list", "watch"}
            kubeconfig = testbed.kubeconfig(installed.user)
            service = Service(folder / "service", kubeconfig, slack=slack, name=installed.namespace, only_console=True)
            service.start()
            try:
                states = {row["kind"]: row["state"] for row in service.rows("sources")}
                served = {name for name in missing if states.get(name, "absent") != "absent"}
                unserved |= set(missing) - served
                found = eventually(lambda: _named(service, len(served)), timeout=30, what="every kind to be refused")  # noqa: B023
            finally:
                service.stop()
        assert found == {name: missing[name] for name in served}
        for name, verb in found.items():
            kind = KINDS[name]
            rows.append(f"{verb:5} {kind.plural}{'.' + kind.group if kind.group else ''}: doctor, {name}: {kind.why}")
    say("\n".join([f"{len(rows)} verbs, each with what is unknown without it:", *(f"  {row}" for row in sorted(rows))]))
    if unserved:
        say(f"not served here, so not tried: {', '.join(sorted(unserved))}")
    assert len(rows) > 40


def _named(service: Service, count: int) -> dict[str, str]:
    """Kind to the verb that the doctor names; empty until there are so many."""
    refused = [row for row in service.doctor()["trouble"] if row["state"] == "forbidden"]
    if len(refused) != count:
        return {}
    return {
        row["kind"]: next(v for v in ("list", "watch") if f"`{v}`" in row["detail"] or f" {v} " in row["detail"])
        for row in refused
    }


@pytest.mark.parametrize("switch", ["gpuAgent", "remediation"])
async def test_who_sent_it_is_asked_only_where_somebody_may_send(testbed: Cluster, tmp_path: Path, switch: str) -> None:
    """With agents or approvals the account may review tokens; without, the refusal names the right that is missing."""
    token = testbed.token()
    answers = []
    cases: list[dict[str, Any]] = [{}, {switch: {"enabled": True}}]
    for values in cases:
        with Installed(testbed, tmp_path, values) as installed:
            async with await connect(str(testbed.kubeconfig(installed.user))) as api:
                try:
                    answers.append((await review_token(api, token, datetime.now(UTC))).name)
                except UnverifiedError as error:
                    answers.append(str(error))
    assert "tokenreviews.authentication.k8s.io" in answers[0]
    assert answers[1] == "admin"


def test_only_remediation_may_write(testbed: Cluster, tmp_path: Path) -> None:
    """Every verb that changes something comes with `remediation.enabled`, and nodes with `remediation.nodes`."""
    harmless = {"get", "list", "watch"}
    plain = Installed(testbed, tmp_path, {}).granted
    acting = Installed(testbed, tmp_path, {"remediation": {"enabled": True}}).granted
    cordoning = Installed(testbed, tmp_path, {"remediation": {"enabled": True, "nodes": True}}).granted
    assert {verb for *_, verb in plain} <= harmless
    assert {verb for *_, verb in acting - plain} > harmless - {"watch", "list"}
    assert ("", "nodes", "patch") not in acting
    assert cordoning - acting == {("", "nodes", "get"), ("", "nodes", "patch")}


LEASE_VERBS = ["get", "create", "update"]


@pytest.mark.parametrize("without", ["", *LEASE_VERBS], ids=lambda verb: f"without {verb}" if verb else "with all")
async def test_every_verb_on_the_lease_is_needed(
    testbed: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture, without: str
) -> None:
    """An edge's account takes, keeps and gives back its Lease; without any one verb the log names the right."""
    values = yaml.safe_load((CHART / "ci" / "edge-values.yaml").read_text("utf-8"))
    with Installed(testbed, tmp_path, values) as installed:
        (role,) = of_kind(installed.objects, "Role")
        verbs = sorted({verb for rule in role["rules"] for verb in rule["verbs"]})
        rules = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != without]} for rule in role["rules"]]
        path = ("rbac.authorization.k8s.io/v1", "Role", role["metadata"]["name"], installed.namespace)
        testbed.client.patch(*path, {"rules": [rule for rule in rules if rule["verbs"]]})
        async with await connect(str(testbed.kubeconfig(installed.user))) as api:
            lease = Lease(api, f"{installed.namespace}/sevenhop", "me")
            taken = await _within(lease.acquire(), 2.5)
            kept = taken is not None and await _within(lease.hold(), 2.5) is None
            await lease.release()
    assert verbs == sorted(LEASE_VERBS)
    refused = [
        record.getMessage() for record in caplog.records if "grant get, create and update" in record.getMessage()
    ]
    assert (bool(kept), bool(refused)) == (taken is not None, bool(without))
    assert (taken is not None) == (without in ("", "update"))


async def _within(work: Coroutine[Any, Any, Any], seconds: float) -> Any:
    """What comes of it, or None."""
    try:
        return await asyncio.wait_for(work, seconds)
    except TimeoutError:
        return None
