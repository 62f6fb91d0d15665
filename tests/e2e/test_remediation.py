"""
The story of remediation on a real control plane: asked, approved, carried out, proven, given back.

One service for all of it; each story plays on nodes, with a GPU product and in a namespace of its own.
"""

from __future__ import annotations

import getpass
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e import remediation_objects as objects
from tests.e2e.remediation_scenes import DECODE, GRAPH, Open, Waiting, opened_scenes
from tests.e2e.remediation_stage import (
    ALLOWED,
    ALLOWED_TOO,
    APPROVER,
    LEASE_S,
    STRANGER,
    Row,
    Stage,
    borrowed,
    events_on,
    later,
    pagerduty_process,
)
from tests.e2e.service import sevenhop
from tests.e2e.slack import FakeSlack
from tests.testbed import build
from tests.testbed.cluster import Cluster
from tests.testbed.ports import free_ports

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SERVICE = "system:serviceaccount:sevenhop:sevenhop"
RECOVERED = "🟢 RECOVERED"
WORKERS = "ray.io/node-type=worker"
SUMMARIZER = "app=summarizer"


@dataclass
class Lent:
    """What was lent in an earlier story, for the story of its end."""

    scenes: dict[str, Waiting] = field(default_factory=dict)
    plans: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def stage(testbed: Cluster, slack: FakeSlack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A service with remediation on approval and no rights but those that are documented; its lease is short."""
    (port,) = free_ports(1)
    objects.install(testbed.client, SERVICE)
    objects.service_account(testbed.client, APPROVER)
    with pagerduty_process() as pagerduty:
        times = {"lease": f"{LEASE_S}s", "no_progress": "45s", "cooldown": "10m"}
        more = {"web": {"listen": f"127.0.0.1:{port}"}}
        folder = tmp_path_factory.mktemp("remediation")
        stage = Stage(folder, testbed, slack, pagerduty, name="remedied", times=times, more=more, user=SERVICE)
        stage.port = port
        with stage.playing():
            yield stage


@pytest.fixture(scope="module")
def lent() -> Lent:
    return Lent()


@pytest.fixture(scope="module")
def stays(testbed: Cluster) -> Iterator[Open]:
    """Opens scenes that stay until the last test."""
    with opened_scenes(testbed) as stays:
        yield stays


def full_node(here: Waiting, *, donor: bool = True, annotations: dict[str, str] | None = None) -> None:
    """Four GPUs: a donor holds three, a keeper one; then a decode worker asks for one."""
    node = here.node(4)
    here.keeper(node, 1)
    if donor:
        here.plain_donor(replicas=3)
        here.runs(3, SUMMARIZER)
    here.runs(1, f"app=keeper-{node[-1]}")
    here.llama(1, annotations=annotations)
    here.waits(1)


def is_done(stage: Stage, plan: Row) -> Row:
    done = stage.wait_for(plan["plan"], "succeeded", timeout=30)
    print("", plan["title"], *done["history"], sep="\n  ")
    return done


def test_a_ray_cluster_gives(stage: Stage, stays: Open, lent: Lent) -> None:
    """
    Approved in Slack: the RayCluster gives the worker that the plan names, the decode worker gets Ready, the message
    turns green, the one page resolves, and the object carries the mark and an Event.
    """
    here = stays("ray")
    here.node(8)
    here.llama(2, 1)
    here.ray_donor("ranker", workers=2, gpus=2)
    here.plain_donor(gpus=2, replicas=1, tier="standard")
    here.runs(1, DECODE)
    workers = {pod["metadata"]["name"] for pod in here.runs(2, WORKERS)}
    here.runs(1, SUMMARIZER)

    here.ask_for_decode(2)
    here.waits(1)
    plan = stage.plan(here.namespace)
    (victim,) = stage.describe(plan["plan"])["victims"]
    said = stage.wait_told(here.product, f"PLAN {plan['plan']}")
    stage.click(ALLOWED, "approve", here.product)
    is_done(stage, plan)
    lent.scenes["ray"], lent.plans["ray"] = here, plan["plan"]

    assert "ranker" in said
    assert "ranks lower" in said
    left = {pod["metadata"]["name"] for pod in here.runs(1, WORKERS)}
    assert left == workers - {victim.rpartition("/")[2]}
    here.runs(2, DECODE)
    ranker = here.ray("ranker")
    assert ranker["spec"]["workerGroupSpecs"][0]["replicas"] == 1
    assert plan["plan"] in borrowed(ranker)
    green = stage.wait_told(here.product, RECOVERED)
    assert plan["plan"] in green
    assert "Kim" in green
    (page,) = later(
        lambda: [p for p in stage.pagerduty.about(here.product) if p["status"] == "resolved"], what="a resolved page"
    )
    assert page["notified"] == 1
    assert events_on(stage.cluster, here.namespace, "ranker") == ["RemediationApplied"]


def test_the_pod_that_helps_is_steered_to_go(stage: Stage, stays: Open, lent: Lent) -> None:
    """A Deployment has a pod on each of two nodes and only one of them helps: just that one goes."""
    here = stays("steered")
    helps, other = here.node(4), here.node(4)
    here.keeper(helps, 2)
    here.keeper(other, 3)
    here.plain_donor(spread=True)
    pods = here.runs(2, SUMMARIZER)
    (victim,) = [pod["metadata"]["name"] for pod in pods if pod["spec"]["nodeName"] == helps]
    here.llama(2)
    here.waits(1)

    plan = stage.plan(here.namespace)
    stage.click(ALLOWED_TOO, "approve", here.product)
    is_done(stage, plan)
    lent.scenes["steered"], lent.plans["steered"] = here, plan["plan"]

    assert [pod["spec"]["nodeName"] for pod in here.runs(1, DECODE)] == [helps]
    (left,) = here.runs(1, SUMMARIZER)
    assert left["metadata"]["name"] != victim
    assert here.replicas() == 1
    assert plan["plan"] in borrowed(here.deployment())


def test_a_dynamo_graph_gives(stage: Stage, opens: Open) -> None:
    """The graph itself is changed, through its own API version; its operator (played here) takes the pod away."""
    here = opens("graph")
    node = here.node(4)
    here.keeper(node, 1)
    here.dynamo_donor("drafts", 3)
    graph = "nvidia.com/dynamo-graph-deployment-name"
    here.runs(3, f"{graph}=drafts")
    here.llama(1)
    here.waits(1, f"{DECODE},{graph}=llama-70b")

    plan = stage.plan(here.namespace)
    stage.click(ALLOWED, "approve", here.product)
    is_done(stage, plan)
    here.runs(2, f"{graph}=drafts")
    here.runs(1, f"{DECODE},{graph}=llama-70b")
    drafts = here.client.get(*GRAPH, "drafts", here.namespace)
    assert [component["replicas"] for component in drafts["spec"]["components"]] == [2]
    assert plan["plan"] in borrowed(drafts)
    assert "RemediationApplied" in events_on(stage.cluster, here.namespace, "drafts")


@pytest.mark.parametrize("how", ["crash-loop", "unready"])
def test_a_pod_that_gets_worse_is_approved(stage: Stage, stays: Open, lent: Lent, how: str) -> None:
    """The worker is placed, and then fails, or never gets Ready: how that ends is judged below."""
    here = stays(how)
    full_node(here, annotations={"sevenhop.dev/testbed": how})
    plan = stage.plan(here.namespace)
    stage.click(ALLOWED, "approve", here.product)
    stage.wait_for(plan["plan"], "running")
    lent.scenes[how], lent.plans[how] = here, plan["plan"]
    later(lambda: here.replicas() == 2)


def test_a_rejected_plan_is_not_asked_again(stage: Stage, opens: Open) -> None:
    """Reject: nothing is changed, the message says who, the buttons go, and the same is not asked at once."""
    here = opens("declined")
    full_node(here)
    plan = stage.plan(here.namespace)
    stage.click(ALLOWED, "reject", here.product)
    stage.wait_for(plan["plan"], "rejected")
    said = stage.wait_told(here.product, "rejected")

    assert "Kim" in said
    assert here.replicas() == 3
    assert not borrowed(here.deployment())
    with pytest.raises(TimeoutError):
        stage.plan(here.namespace, timeout=12)


def test_a_donor_that_changed_supersedes_the_plan(stage: Stage, opens: Open) -> None:
    """Somebody scales the donor while people think: the old click does nothing, says so, and the new plan works."""
    here = opens("changed")
    node = here.node(4)
    here.keeper(node, 1)
    here.plain_donor(replicas=3)
    here.runs(3, SUMMARIZER)
    here.llama(2)
    here.waits(1)
    old = stage.plan(here.namespace)
    stage.wait_told(here.product, old["plan"])

    here.client.patch("apps/v1", "Deployment", "summarizer", here.namespace, {"spec": {"replicas": 2}})
    print("", stage.click(ALLOWED, "approve", here.product))
    new = stage.plan(here.namespace, but=old["plan"])
    assert stage.state_of(old["plan"]) == "superseded"
    stage.wait_told(here.product, f"PLAN {new['plan']}")
    stage.click(ALLOWED, "approve", here.product)
    is_done(stage, new)
    assert here.replicas() == 1
    here.runs(1, DECODE)


def test_whoever_waits_longer_is_served_too(stage: Stage, opens: Open) -> None:
    """A pod of somebody else comes first in the scheduler's queue: the plan frees enough for both."""
    here = opens("queue")
    node = here.node(4)
    here.keeper(node, 1)
    here.plain_donor(replicas=3)
    here.runs(3, SUMMARIZER)
    here.plain_donor("rival", replicas=1)
    here.waits(1, "app=rival")
    here.llama(1)
    here.waits(1)

    plan = stage.plan(here.namespace)
    stage.click(ALLOWED, "approve", here.product)
    is_done(stage, plan)
    here.runs(1, "app=rival")
    here.runs(1, DECODE)
    assert here.replicas() == 1


def test_a_victim_that_cannot_be_chosen_is_no_plan(stage: Stage, opens: Open) -> None:
    """A StatefulSet gives its highest pod, which is on the node where it does not help: nothing is offered."""
    here = opens("ordinal")
    helps = here.node(4)
    here.keeper(helps, 2)
    here.client.create(objects.stateful_donor("summarizer", here.namespace, here.where))
    here.runs(1, SUMMARIZER)
    other = here.node(4)
    here.keeper(other, 3)
    here.runs(1, f"app=keeper-{other[-1]}")
    here.client.patch("apps/v1", "StatefulSet", "summarizer", here.namespace, {"spec": {"replicas": 2}})
    here.runs(2, SUMMARIZER)
    here.llama(2)
    here.waits(1)

    said = stage.wait_told(here.product, "No plan")
    print("", *[line for line in said.splitlines() if "plan" in line.lower() or "looked" in line], sep="\n  ")
    assert "summarizer" in said
    assert not stage.plans(here.namespace)


def test_where_the_scheduler_preempts_there_is_no_plan(stage: Stage, opens: Open, testbed: Cluster) -> None:
    """The waiting pod's PriorityClass is higher: the scheduler helps itself in seconds, and nobody is asked."""
    here = opens("preempts")
    node = here.node(4)
    here.keeper(node, 1)
    here.plain_donor(replicas=3)
    here.runs(3, SUMMARIZER)
    testbed.client.create(build.priority_class(f"high-{here.namespace}", 1000))
    try:
        here.llama(1, priority_class=f"high-{here.namespace}")
        here.runs(1, DECODE)
        with pytest.raises(TimeoutError):
            stage.plan(here.namespace, timeout=12)
    finally:
        testbed.client.delete("scheduling.k8s.io/v1", "PriorityClass", f"high-{here.namespace}")
    assert here.replicas() == 3


def test_a_donor_with_an_autoscaler_is_refused(stage: Stage, opens: Open) -> None:
    """A HorizontalPodAutoscaler would set it back: no plan, and the message names it."""
    here = opens("autoscaled")
    node = here.node(4)
    here.keeper(node, 1)
    here.plain_donor(replicas=3)
    here.client.create(objects.autoscaler("summarizer-hpa", here.namespace, "summarizer"))
    here.runs(3, SUMMARIZER)
    here.llama(1)
    here.waits(1)

    said = stage.wait_told(here.product, "No plan", "summarizer-hpa")
    print("", *[line for line in said.splitlines() if "summarizer-hpa" in line], sep="\n  ")
    assert not stage.plans(here.namespace)
    assert here.replicas() == 3


def test_a_stranger_decides_nothing_and_the_hosts_user_does(stage: Stage, opens: Open) -> None:
    """Somebody who may not is told so privately; `sevenhop approve` on the service's host counts by its user."""
    here = opens("stranger")
    full_node(here)
    plan = stage.plan(here.namespace)
    print("", stage.click(STRANGER, "approve", here.product))
    assert stage.state_of(plan["plan"]) == "proposed"
    assert here.replicas() == 3
    answer = stage.service.ask("approve", plan["plan"], "--hash", stage.describe(plan["plan"])["hash"], "-m", "go")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    done = is_done(stage, plan)
    assert [who["person"] for who in done["approvals"]] == [f"unix:{getpass.getuser()}"]


def test_a_service_account_approves_over_http(stage: Stage, opens: Open, testbed: Cluster) -> None:
    """Its token is reviewed by the real API server; another account's is refused by name."""
    here = opens("token")
    full_node(here)
    plan = stage.plan(here.namespace)
    other = f"system:serviceaccount:{here.namespace}:mallory"
    objects.service_account(testbed.client, other)

    def approve(user: str) -> tuple[int, str]:
        words = ("approve", plan["plan"], "--server", f"http://127.0.0.1:{stage.port}")
        answer = sevenhop(*words, "--kubeconfig", str(testbed.kubeconfig(user)))
        return answer.returncode, answer.stdout + answer.stderr

    code, said = approve(other)
    print("", said)
    assert code == 1
    assert "mallory" in said
    assert stage.state_of(plan["plan"]) == "proposed"
    code, said = approve(APPROVER)
    assert code == 0, said
    done = is_done(stage, plan)
    assert [who["person"] for who in done["approvals"]] == [f"kubernetes:{APPROVER}"]


@pytest.mark.parametrize("at", ["dry-run", "patch"])
def test_an_admission_policy_says_no(stage: Stage, opens: Open, testbed: Cluster, at: str) -> None:
    """A ValidatingAdmissionPolicy denies the patch: it is told with the policy's words, and nothing is half done."""
    here = opens(f"denied-{at}")
    full_node(here)
    plan = stage.plan(here.namespace)
    with objects.no_fewer_replicas(testbed.client, here.namespace, dry_run_too=at == "dry-run"):
        stage.click(ALLOWED, "approve", here.product)
        done = stage.wait_for(plan["plan"], "failed", "undone", "unknown")
        print("", *done["history"], sep="\n  ")
        assert here.replicas() == 3
        assert not borrowed(here.deployment())
        assert not objects.steered(here.pods(SUMMARIZER))
        assert objects.DENIED in "\n".join(done["history"])
        assert done["state"] == ("failed" if at == "dry-run" else done["state"])
        stage.wait_told(here.product, objects.DENIED)


def test_the_kill_switch_between_approval_and_patch(stage: Stage, opens: Open, testbed: Cluster) -> None:
    """While the API server hangs in the dry run somebody stops everything: the patch is not sent."""
    here = opens("stopped")
    full_node(here)
    plan = stage.plan(here.namespace)
    stage.wait_told(here.product, plan["plan"])
    with testbed.paused("kube-apiserver"):
        assert "approved by Kim" in stage.click(ALLOWED, "approve", here.product)
        later(lambda: stage.state_of(plan["plan"]) == "approved", what="the approval")
        stage.switch(on=True)
    try:
        done = stage.wait_for(plan["plan"], "failed", "superseded")
        print("", *done["history"], sep="\n  ")
        assert "kill-switch" in "\n".join(done["history"])
        assert here.replicas() == 3
        assert not borrowed(here.deployment())
    finally:
        stage.switch(on=False)


@pytest.mark.parametrize("how", ["crash-loop", "unready"])
def test_a_goal_that_is_not_reached_is_undone(stage: Stage, lent: Lent, how: str) -> None:
    """The donor has its replicas again, the mark is gone, and the message says why."""
    here, plan = lent.scenes[how], lent.plans[how]
    done = stage.wait_for(plan, "undone", timeout=90)
    print("", *done["history"], sep="\n  ")
    assert here.replicas() == 3
    assert not borrowed(here.deployment())
    assert events_on(stage.cluster, here.namespace, "summarizer") == ["RemediationApplied", "RemediationUndone"]
    stage.wait_told(here.product, "undone")
    assert "fails" in done["why"] if how == "crash-loop" else "no progress" in done["why"]


def test_a_lease_that_ends_in_a_shortage_is_asked_about(stage: Stage, lent: Lent) -> None:
    """Extend or restore? Restored: the worker is asked for again, the mark and the named victim are gone."""
    here, plan = lent.scenes["ray"], lent.plans["ray"]
    stage.wait_told(here.product, "extend or restore", timeout=LEASE_S + 20)
    stage.click(ALLOWED, "restore", here.product)
    done = stage.wait_for(plan, "restored")
    print("", *done["history"], sep="\n  ")
    ranker = here.ray("ranker")
    group = ranker["spec"]["workerGroupSpecs"][0]
    assert group["replicas"] == 2
    assert not group.get("scaleStrategy", {}).get("workersToDelete")
    assert not borrowed(ranker)
    here.runs(2, DECODE)
    assert "RemediationRestored" in events_on(stage.cluster, here.namespace, "ranker")


def test_a_lease_ends_by_itself_where_there_is_room(stage: Stage, lent: Lent) -> None:
    """A node was added: the donor gets its replica back without anybody, and it runs."""
    here, plan = lent.scenes["steered"], lent.plans["steered"]
    here.node(4)
    done = stage.wait_for(plan, "restored", timeout=LEASE_S + 20)
    print("", *done["history"], sep="\n  ")
    here.runs(2, SUMMARIZER)
    assert not borrowed(here.deployment())
    assert not objects.steered(here.pods(SUMMARIZER))


def test_the_audit_trail_is_whole_until_one_byte_changes(stage: Stage, tmp_path: Path) -> None:
    """`audit verify` passes on the trail of all these stories, and names the record of which one byte was changed."""
    exported = stage.service.ask("audit", "export").stdout.splitlines()
    good = stage.service.ask("audit", "verify")
    print("", good.stdout)
    assert good.returncode == 0, good.stdout
    assert len(exported) > 50
    place = next(at for at in range(len(exported) // 2, len(exported)) if "approved by" in exported[at])
    file = tmp_path / "trail.jsonl"
    file.write_text("\n".join(exported), "utf-8")
    assert sevenhop("audit", "verify", str(file)).returncode == 0
    record = json.loads(exported[place])
    changed = exported[place].replace("approved by", "approved bx")
    file.write_text("\n".join([*exported[:place], changed, *exported[place + 1 :]]), "utf-8")
    bad = sevenhop("audit", "verify", str(file))
    print(bad.stdout)
    assert bad.returncode == 1
    assert re.search(rf"record {record['number']}\b", bad.stdout)
