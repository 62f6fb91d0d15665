"""
An approved change on a bad road to the API server: its answer is lost, somebody else is first, the right is gone.

What is lost or refused here is so on the real API server; only the road between is ours.  Admission policies that say
no, and an API server that hangs, are in `test_remediation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e import remediation_objects as objects
from tests.e2e.api_proxy import ApiProxy, Trouble
from tests.e2e.remediation_kills import WRITES
from tests.e2e.remediation_scenes import DECODE, Open, Waiting
from tests.e2e.remediation_stage import ALLOWED, Row, Stage, borrowed, events_on, later, pagerduty_process
from tests.e2e.slack import FakeSlack
from tests.testbed.client import Client
from tests.testbed.cluster import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SERVICE = "system:serviceaccount:troubled:sevenhop"
BINDINGS = ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding")
DEPLOYMENT = ("apps/v1", "Deployment", "summarizer")


@pytest.fixture(scope="module")
def proxy(testbed: Cluster) -> Iterator[ApiProxy]:
    """The road that the service takes."""
    with ApiProxy(testbed) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def stage(
    testbed: Cluster, proxy: ApiProxy, slack: FakeSlack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """With just the documented rights, by way of the proxy."""
    objects.install(testbed.client, SERVICE)
    folder = tmp_path_factory.mktemp("troubles")
    times = {"lease": "2h", "cooldown": "1s"}
    with pagerduty_process() as pagerduty:
        road = proxy.kubeconfig(SERVICE, folder)
        stage = Stage(folder, testbed, slack, pagerduty, name="troubled", times=times, kubeconfig=road)
        with stage.playing():
            yield stage


def offered(stage: Stage, here: Waiting) -> tuple[Row, int]:
    """A plan that people were asked about, and the donor's generation, which counts every write of mark or number."""
    return stage.plan_told(here), generation(here)


def generation(here: Waiting) -> int:
    return int(here.deployment()["metadata"]["generation"])


def of_the_donor(here: Waiting) -> str:
    return f"/namespaces/{here.namespace}/deployments/summarizer"


@pytest.mark.parametrize("skip", range(WRITES), ids=["mark", "number"])
def test_an_answer_that_is_lost(stage: Stage, proxy: ApiProxy, opens: Open, skip: int) -> None:
    """
    The API server has done it, and its answer never comes, on the way there and on the way back: it is looked at first,
    and each change is made once.
    """
    here = opens(f"lost-{skip}")
    plan, before = offered(stage, here)
    there = proxy.meet(Trouble(of_the_donor(here), skip, loses_answer=True))
    stage.click(ALLOWED, "approve", here.product)
    done = stage.wait_for(plan["plan"], "succeeded", timeout=40)
    print("", there.met, *done["history"], sep="\n  ")
    assert there.met
    assert generation(here) - before == WRITES
    assert here.replicas() == 2
    assert plan["plan"] in borrowed(here.deployment())
    here.runs(1, DECODE)

    back = proxy.meet(Trouble(of_the_donor(here), skip, loses_answer=True))
    assert stage.service.ask("runs", "restore", plan["plan"]).returncode == 0
    done = stage.wait_for(plan["plan"], "restored", timeout=40)
    print("", back.met, *done["history"][-4:], sep="\n  ")
    assert back.met
    assert generation(here) - before == 2 * WRITES
    assert here.replicas() == 3
    assert not borrowed(here.deployment())
    assert events_on(stage.cluster, here.namespace, "summarizer") == ["RemediationApplied", "RemediationRestored"]


@pytest.mark.parametrize("skip", range(WRITES), ids=["mark", "number"])
def test_somebody_else_is_first(stage: Stage, proxy: ApiProxy, opens: Open, skip: int) -> None:
    """
    A person scales the donor when our patch is on its way already: the API server's own test refuses it, their number
    stays, nothing of ours does, and the message says what was found.
    """
    here = opens(f"first-{skip}")
    plan, _ = offered(stage, here)

    def scale() -> None:
        here.client.patch(*DEPLOYMENT, here.namespace, {"spec": {"replicas": 4}})

    met = proxy.meet(Trouble(of_the_donor(here), skip, first=scale))
    stage.click(ALLOWED, "approve", here.product)
    done = stage.wait_for(plan["plan"], "failed", "superseded", timeout=40)
    print("", met.met, *done["history"], sep="\n  ")
    assert met.met
    assert here.replicas() == 4
    assert not borrowed(here.deployment())
    assert not objects.steered(here.pods("app=summarizer"))
    assert events_on(stage.cluster, here.namespace, "summarizer") == []
    assert "4" in done["why"]


def test_the_right_was_taken_away(stage: Stage, opens: Open, testbed: Cluster) -> None:
    """
    Between question and click somebody unbound the role: 403 in the dry run, one line that names the right, a record,
    and nothing half done; with the role bound again the next plan runs.
    """
    here = opens("forbidden")
    plan, before = offered(stage, here)
    with unbound(testbed.client):
        stage.click(ALLOWED, "approve", here.product)
        done = stage.wait_for(plan["plan"], "failed", timeout=40)
    print("", *done["history"], sep="\n  ")
    told, *_ = later(
        lambda: [text for text in stage.slack.replies() if plan["plan"] in text and "(403)" in text],
        what="the refusal in the thread",
    )
    print("", told)
    assert "Sevenhop may not" in done["why"]
    assert "(403); add to its role" in done["why"]
    assert '"deployments"' in done["why"]
    assert generation(here) == before
    assert here.replicas() == 3
    trail = stage.service.ask("audit", "export").stdout.splitlines()
    assert any(plan["plan"] in line and "(403)" in line for line in trail)

    again = stage.plan(here.namespace, but=plan["plan"])
    stage.wait_told(here.product, again["plan"])
    stage.click(ALLOWED, "approve", here.product)
    stage.wait_for(again["plan"], "succeeded", timeout=40)


@contextmanager
def unbound(client: Client) -> Iterator[None]:
    """Without the role that lets the service change anything."""
    namespace = SERVICE.split(":")[2]
    (binding,) = [
        each
        for each in client.list(*BINDINGS)
        if "remediation" in each["roleRef"]["name"]
        and any(subject.get("namespace") == namespace for subject in each.get("subjects", []))
    ]
    client.delete(*BINDINGS, binding["metadata"]["name"])
    try:
        yield
    finally:
        name = {"name": binding["metadata"]["name"]}
        client.create({**binding, "apiVersion": BINDINGS[0], "kind": BINDINGS[1], "metadata": name})
