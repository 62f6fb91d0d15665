"""
Ray gives: a RayService through its live RayCluster, a RayCluster with Ray's autoscaler.

No Ray dashboard answers on the test bed: which cluster of a RayService is live is written by the test, with the
operator stopped; whatever happens to pods is then done by the real operator.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.e2e.remediation_scenes import DECODE, Open, Waiting
from tests.e2e.remediation_stage import ALLOWED, Stage, borrowed, later, pagerduty_process
from tests.e2e.slack import FakeSlack
from tests.testbed.client import Object
from tests.testbed.cluster import OPERATOR, Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

WORKERS = "ray.io/node-type=worker"
SERVICE = ("ray.io/v1", "RayService")
CLUSTER = ("ray.io/v1", "RayCluster")
STICKS_S = 8.0
"""Several rounds of the operator, which looks every two seconds at a RayService that is not ready."""


@pytest.fixture(scope="module")
def stage(testbed: Cluster, slack: FakeSlack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A service with remediation on approval."""
    with pagerduty_process() as pagerduty:
        stage = Stage(tmp_path_factory.mktemp("ray"), testbed, slack, pagerduty, name="ray", times={"lease": "2h"})
        with stage.playing():
            yield stage


def group_of(found: Object) -> Object:
    spec = found["spec"]
    (group,) = spec.get("rayClusterConfig", spec)["workerGroupSpecs"]
    return dict(group)


def counts_of(found: Object) -> tuple[int, int]:
    """Replicas, and the most that an autoscaler may make."""
    group = group_of(found)
    return group["replicas"], group["maxReplicas"]


def named_in(found: Object) -> list[str]:
    return list(group_of(found).get("scaleStrategy", {}).get("workersToDelete") or [])


def short_beside_ray(here: Waiting, *, served: bool = False, autoscaled: bool = False) -> None:
    """Four GPUs: Ray's workers hold three, a keeper one; then a decode worker asks for one."""
    node = here.node(4)
    here.keeper(node, 1)
    here.ray_donor("ranker", workers=3, gpus=1, served=served, autoscaled=autoscaled)
    here.runs(3, WORKERS)
    here.runs(1, f"app=keeper-{node[-1]}")


def say_which_is_live(here: Waiting, cluster: str) -> None:
    """As the operator does when Serve has answered it."""
    known = here.client.get(*SERVICE, "ranker", here.namespace).get("status", {}).get("conditions", [])
    status = {
        "activeServiceStatus": {"rayClusterName": cluster},
        "pendingServiceStatus": None,
        "conditions": [condition for condition in known if condition["type"] != "UpgradeInProgress"],
    }
    here.client.patch(*SERVICE, "ranker", here.namespace, {"status": status}, subresource="status")


def test_a_ray_service_gives_through_its_live_cluster(stage: Stage, opens: Open, testbed: Cluster) -> None:
    """
    The plan names the live RayCluster and the RayService; both get the number, the cluster the victim's name.  The real
    operator removes that worker, makes no second cluster and leaves the number alone; restored, both are as before.
    """
    here = opens("served")
    short_beside_ray(here, served=True)
    (cluster,) = here.client.list(*CLUSTER, here.namespace)
    live = cluster["metadata"]["name"]
    before = counts_of(cluster)
    with testbed.without(OPERATOR):
        say_which_is_live(here, live)
        here.llama(1)
        here.waits(1)
        plan = stage.plan(here.namespace)
        told = stage.describe(plan["plan"])
        print("", told["question"], *told["lines"], *told["notes"], sep="\n  ")
        assert f"RayCluster {here.namespace}/{live}" in told["question"]
        assert f"RayService {here.namespace}/ranker" in told["question"]
        assert any(f"RayService {here.namespace}/ranker" in line and "3 → 2" in line for line in told["lines"])
        assert any("lower num_replicas" in note for note in told["notes"])
        (victim,) = (name.rpartition("/")[2] for name in told["victims"])
        stage.wait_told(here.product, plan["plan"])
        stage.click(ALLOWED, "approve", here.product)
        stage.wait_for(plan["plan"], "running")
        later(lambda: counts_of(here.ray(live)) == (2, before[1]), what="the live cluster's number")
        assert named_in(here.ray(live)) == [victim]
        service = later(lambda: _with(here, 2), what="the number in the RayService")
        assert plan["plan"] in borrowed(service)

    done = stage.wait_for(plan["plan"], "succeeded", timeout=60)
    print("", *done["history"], sep="\n  ")
    here.runs(1, DECODE)
    assert victim not in {pod["metadata"]["name"] for pod in here.pods(WORKERS)}
    time.sleep(STICKS_S)
    assert [found["metadata"]["name"] for found in here.client.list(*CLUSTER, here.namespace)] == [live]
    assert counts_of(here.ray(live)) == (2, before[1])

    assert stage.service.ask("runs", "restore", plan["plan"]).returncode == 0
    done = stage.wait_for(plan["plan"], "restored", timeout=40)
    print("", *done["history"][-3:], sep="\n  ")
    assert counts_of(here.ray(live)) == before
    assert named_in(here.ray(live)) == []
    service = here.client.get(*SERVICE, "ranker", here.namespace)
    assert counts_of(service) == before
    assert not borrowed(service)
    later(lambda: len(here.pods(WORKERS)) == 3, what="the operator to ask for the worker again")


def _with(here: Waiting, replicas: int) -> Object | None:
    service = here.client.get(*SERVICE, "ranker", here.namespace)
    return service if counts_of(service)[0] == replicas else None


def test_a_ray_service_that_does_not_say_which_is_live_is_refused(stage: Stage, opens: Open) -> None:
    """The operator has not chosen yet: no plan, and the message says why."""
    here = opens("unsaid")
    short_beside_ray(here, served=True)
    here.llama(1)
    here.waits(1)
    said = stage.wait_told(here.product, "No plan", "ranker")
    print("", *[line for line in said.splitlines() if "ranker" in line], sep="\n  ")
    assert not stage.plans(here.namespace)


def test_rays_autoscaler_is_kept_from_going_back_up(stage: Stage, opens: Open) -> None:
    """
    Number, most and victim in one patch: the real operator removes that worker, and an autoscaler may not make another
    one; restored, the most is what it was.
    """
    here = opens("autoscaled")
    short_beside_ray(here, autoscaled=True)
    before = counts_of(here.ray("ranker"))
    here.llama(1)
    here.waits(1)
    plan = stage.plan(here.namespace)
    told = stage.describe(plan["plan"])
    (victim,) = (name.rpartition("/")[2] for name in told["victims"])
    assert any("maxReplicas" in note for note in told["notes"])
    stage.wait_told(here.product, plan["plan"])
    stage.click(ALLOWED, "approve", here.product)
    done = stage.wait_for(plan["plan"], "succeeded", timeout=60)
    print("", *done["history"], sep="\n  ")
    assert before == (3, 6)
    assert counts_of(here.ray("ranker")) == (2, 2)
    assert victim not in {pod["metadata"]["name"] for pod in here.runs(2, WORKERS)}

    assert stage.service.ask("runs", "restore", plan["plan"]).returncode == 0
    stage.wait_for(plan["plan"], "restored", timeout=40)
    assert counts_of(here.ray("ranker")) == before
    assert named_in(here.ray("ranker")) == []
    assert not borrowed(here.ray("ranker"))
