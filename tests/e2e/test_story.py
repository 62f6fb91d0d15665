"""The story that Sevenhop must tell, on a real control plane: one decode worker waits, one message, and green again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from tests.e2e.scenes import Scene, is_ready, is_refused, refused_at, scene
from tests.e2e.service import HOLD_S, Service
from tests.e2e.slack import FakeSlack, shown
from tests.testbed import build, crds, operators
from tests.testbed.build import Component
from tests.testbed.cluster import Cluster
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

SHORT = "component-short-of-gpus"
SURGE = "rollout-surge-blocked"
DECODE = "nvidia.com/dynamo-component=decode"
RECOVERED = "🟢 RECOVERED"
QUIET_S = 4.0
"""Watched for so long, a service that would post by mistake has done so: it has nothing to wait for."""


@dataclass
class Told:
    """
    What was seen while the story went on; the tests below judge it.

    Attributes:
        refused: When the scheduler said that the decode worker cannot be placed.
        first: The first post: its time and its message as it then was.
        posts: How many posts there were after each chapter.
        consoles: The console's text after each chapter.
        stops: Exit code and seconds of each stop.
    """

    namespace: str = ""
    before: list[dict[str, Any]] = field(default_factory=list)
    refused: datetime | None = None
    posted_at: float = 0.0
    first: str = ""
    why: str = ""
    why_not: str = ""
    renamed: tuple[str, str] = ("", "")
    posts: dict[str, int] = field(default_factory=dict)
    consoles: dict[str, str] = field(default_factory=dict)
    stops: list[tuple[int, float]] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def told(testbed: Cluster, slack: FakeSlack, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The whole story, once."""
    if crds.shared_folder() is None:
        print("the frameworks' own CRDs are not here: the Dynamo part uses a minimal one of ours")
    with scene(testbed) as here:
        folder = tmp_path_factory.mktemp("story") / "service"
        service = Service(folder, testbed.kubeconfig(), slack=slack, rules=(SHORT,), name=here.namespace)
        told = Told(here.namespace)
        try:
            _tell(here, service, slack, told)
        finally:
            service.stop()
    return told


def _tell(here: Scene, service: Service, slack: FakeSlack, told: Told) -> None:
    _healthy_cluster(here)
    service.start()
    told.before = service.rows("workloads")

    # Somebody asks for one decode worker more than there is room for.
    _scale_decode(here, 4)
    waiting = _the_waiting_pod(here)
    told.refused = refused_at(waiting)
    mine = lambda: slack.posts_about(here.namespace)  # noqa: E731
    post = eventually(mine, timeout=HOLD_S + 20, what="a post")[0]
    told.posted_at = post["at"]
    told.first = shown(slack.messages_about(here.namespace)[0])
    _chapter_ends("alert", service, slack, told)
    told.why = service.explain(f"{here.namespace}/llama-70b/decode")
    told.why_not = service.explain(f"{here.namespace}/llama-70b/decode", "--why-not")

    here.client.delete("v1", "Pod", waiting["metadata"]["name"], here.namespace, grace=0)
    again = _the_waiting_pod(here, other_than=waiting["metadata"]["name"])
    told.renamed = (waiting["metadata"]["name"], again["metadata"]["name"])
    _chapter_ends("renamed", service, slack, told)

    told.stops.append(service.stop())
    service.start()
    _chapter_ends("restarted", service, slack, told)

    told.stops.append(service.stop())
    shutil.rmtree(service.state)
    service.start()
    _wait_s(HOLD_S)  # its clock begins with the scheduler's, but be generous
    _chapter_ends("emptied", service, slack, told)

    here.pool.add_gpu_nodes(1)
    here.wait_for_pods(4, is_ready, DECODE)

    def is_green() -> dict[str, Any] | None:
        (message,) = slack.messages_about(here.namespace)
        return message if RECOVERED in shown(message) else None

    try:
        told.last = eventually(is_green, timeout=20, every=0.2)
    except (TimeoutError, ValueError):
        told.last = slack.messages_about(here.namespace)[-1]
    _chapter_ends("capacity", service, slack, told)
    told.stops.append(service.stop())


def _healthy_cluster(here: Scene) -> None:
    """16 H100s of which 15 are in use."""
    where = here.pool.node_selector
    here.pool.add_gpu_nodes(2)
    graph = [
        Component(name="Frontend", type="frontend", node_selector=where),
        Component(name="prefill", type="prefill", replicas=2, gpus=2, model="org/llama-70b", node_selector=where),
        Component(name="decode", type="decode", replicas=3, gpus=2, model="org/llama-70b", node_selector=where),
    ]
    owner = {"sevenhop.dev/tier": "critical", "sevenhop.dev/owner": "@llm-serving"}
    operators.create_dynamo(here.client, build.dgd("llama-70b", here.namespace, graph, annotations=owner), graph)
    summarizer = build.inference_service(
        "summarizer", here.namespace, "hf://org/summarizer", gpus=2, min_replicas=2, max_replicas=4,
        annotations={"sevenhop.dev/tier": "batch"}, node_selector=where,
    )  # fmt: skip
    operators.create_kserve(here.client, summarizer)
    here.client.create(build.ray_service("ranker", here.namespace, "org/ranker", workers=1, gpus=1))
    here.wait_for_pods(1 + 2 + 3 + 2 + 2, is_ready)


def _scale_decode(here: Scene, replicas: int) -> None:
    """As a person does, on the graph, and then Dynamo's operator on what it made of it."""
    client, graph = here.client, ("nvidia.com/v1beta1", "DynamoGraphDeployment", "llama-70b", here.namespace)
    components = client.get(*graph)["spec"]["components"]
    (at,) = [n for n, component in enumerate(components) if component["name"] == "decode"]
    client.patch(*graph, [{"op": "replace", "path": f"/spec/components/{at}/replicas", "value": replicas}])
    for version, kind in (("nvidia.com/v1beta1", "DynamoComponentDeployment"), ("apps/v1", "Deployment")):
        (child,) = client.list(version, kind, here.namespace, labels=DECODE)
        client.patch(version, kind, child["metadata"]["name"], here.namespace, {"spec": {"replicas": replicas}})


def _the_waiting_pod(here: Scene, other_than: str = "") -> Any:
    def look() -> Any:
        found = [pod for pod in here.pods(DECODE) if is_refused(pod) and pod["metadata"]["name"] != other_than]
        return found[0] if len(found) == 1 else None

    return eventually(look, what="one decode worker that the scheduler refuses")


def _chapter_ends(name: str, service: Service, slack: FakeSlack, told: Told) -> None:
    _wait_s(QUIET_S)
    told.posts[name] = len(slack.posts_about(told.namespace))
    told.consoles[name] = service.console


def _wait_s(seconds: float) -> None:
    import time

    time.sleep(seconds)


def test_the_workloads_are_named_while_all_is_well(told: Told) -> None:
    """A Dynamo graph with its parts and a RayService are seen, ready, with nothing to alert."""
    rows = {(r["workload"], r["component"]): r for r in told.before if r["namespace"] == told.namespace}
    assert {("llama-70b", "decode"), ("llama-70b", "prefill"), ("summarizer", "predictor")} <= set(rows)
    assert (rows["llama-70b", "decode"]["ready"], rows["llama-70b", "decode"]["desired"]) == (3, 3)
    assert rows["llama-70b", "decode"]["framework"] == "dynamo"
    assert any(workload == "ranker" and row["framework"] == "kuberay" for (workload, _), row in rows.items())
    assert not any(row["alerts"] for row in rows.values())


def test_one_console_alert_and_one_slack_message(told: Told) -> None:
    """One decode worker that waits is one message on each."""
    assert told.posts["alert"] == 1
    assert told.consoles["alert"].count("llama-70b/decode waits for") == 1, told.consoles["alert"]
    assert "2 × NVIDIA-H100-80GB-HBM3" in told.first
    assert "critical" in told.first.lower()


def test_the_message_comes_within_a_second_after_the_hold(told: Told) -> None:
    """Neither before `for:` has passed since the scheduler's verdict, nor a second later."""
    assert told.refused is not None
    late = told.posted_at - told.refused.timestamp() - HOLD_S
    print(f"Slack was told {late:.3f} s after `for: {HOLD_S}s` had passed since the scheduler's verdict")
    assert 0.0 <= late <= 1.0


def test_a_new_pod_name_changes_nothing(told: Told) -> None:
    """The waiting pod was made anew under another name: still one message."""
    assert told.renamed[0] != told.renamed[1]
    assert told.posts["renamed"] == 1
    assert told.consoles["renamed"].count("llama-70b/decode waits for") == 1


def test_explain_says_why_it_fires(told: Told) -> None:
    """The rule that fires, with the facts that it read."""
    assert f"firing   {SHORT}" in told.why
    assert "gpu-fragmentation" in told.why or "gpu-shortage" in told.why


def test_explain_says_why_another_does_not(told: Told) -> None:
    """A rule that could have fired, and what it would have needed."""
    assert f"inactive {SURGE}" in told.why_not
    reason = told.why_not.partition(f"inactive {SURGE}")[2].partition("inactive")[0]
    assert "component.rolling = no" in reason or "component.surge_blocked = no" in reason, reason
    assert f"firing   {SHORT}" not in told.why_not


def test_a_restart_sends_nothing(told: Told) -> None:
    """Stopped and started again while the alert fires: nobody is told again, on no channel."""
    assert told.posts["restarted"] == 1
    assert told.consoles["restarted"] == ""


def test_a_lost_state_posts_nothing_again(told: Told) -> None:
    """With an empty state folder the message is found in the channel's history, and goes on."""
    assert told.posts["emptied"] == 1


def test_a_stop_is_graceful(told: Told) -> None:
    """SIGTERM ends it with 0 in under five seconds, whatever it was doing."""
    print("stops: " + ", ".join(f"exit {code} after {seconds:.2f} s" for code, seconds in told.stops))
    assert [code for code, _ in told.stops] == [0, 0, 0]
    assert max(seconds for _, seconds in told.stops) < 5


def test_capacity_turns_the_same_message_green(told: Told) -> None:
    """The worker runs: the one message is edited to recovered, and nothing is posted."""
    assert told.posts["capacity"] == 1
    assert RECOVERED in shown(told.last), shown(told.last)
    assert told.last["edits"]


def test_a_rollout_that_blocks_itself_is_told_so(
    testbed: Cluster, slack: FakeSlack, start: Callable[..., Service]
) -> None:
    """Two replicas fill two nodes and the surge pod has no place: maxSurge is the advice, and it is no shortage."""
    with scene(testbed) as here:
        here.pool.add_gpu_nodes(2, product="NVIDIA-A100-SXM4-80GB")
        coder = build.vllm_deployment(
            "coder", here.namespace, "org/coder", gpus=8, replicas=2, node_selector=here.pool.node_selector
        )
        here.client.create(coder)
        here.wait_for_pods(2, is_ready)
        service = start(rules=(SHORT, SURGE), name=here.namespace)
        coder["spec"]["template"]["spec"]["containers"][0]["image"] = "vllm/vllm-openai:v0.16.0"
        here.client.apply(coder)
        eventually(lambda: slack.posts_about(here.namespace), timeout=HOLD_S + 25, what="a post")
        _wait_s(QUIET_S)
        (message,) = slack.messages_about(here.namespace)
        alerts = {row["rule"] for row in service.rows("alerts") if here.namespace in row["subject"]}

    assert len(slack.posts_about(here.namespace)) == 1
    assert "maxSurge" in shown(message)
    assert SURGE in alerts
    assert SHORT not in alerts


def test_twelve_workloads_that_wait_for_one_pool_are_one_incident(
    testbed: Cluster, slack: FakeSlack, start: Callable[..., Service]
) -> None:
    """One message with a waiting list, not twelve."""
    with scene(testbed) as here:
        here.pool.add_gpu_nodes(1, product="NVIDIA-L40S", gpus=4)
        where = here.pool.node_selector
        here.client.create(build.vllm_deployment("holder", here.namespace, "org/m", gpus=4, node_selector=where))
        here.wait_for_pods(1, is_ready)
        service = start(rules=(SHORT,), name=here.namespace)
        for number in range(12):
            name = f"waits-{number:02}"
            here.client.create(build.vllm_deployment(name, here.namespace, "org/m", gpus=1, node_selector=where))
        here.wait_for_pods(12, is_refused, "app!=holder")
        eventually(lambda: slack.posts_about(here.namespace), timeout=HOLD_S + 25, what="a post")

        def all_joined() -> dict[str, Any] | None:
            rows = [r for r in service.rows("incidents") if "NVIDIA-L40S" in r["cause"] and r["status"] == "open"]
            return rows[0] if len(rows) == 1 and rows[0]["alerts"] == 12 else None

        incident = eventually(all_joined, timeout=15, every=0.2, what="one incident of twelve alerts")
        _wait_s(QUIET_S)
        (message,) = slack.messages_about(here.namespace)

    assert len(incident["workloads"]) == 12
    assert len(slack.posts_about(here.namespace)) == 1
    assert "and 11 more" in shown(message)
