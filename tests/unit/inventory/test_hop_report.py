"""Which hop broke first."""

from __future__ import annotations

import pytest

from sevenhop.core.events import SyncState
from sevenhop.core.hops.cover import first_broken
from sevenhop.core.hops.report import HopLine, HopReport, HopState
from sevenhop.core.subject import HOPS, Hop, Subject
from tests.builders import at, deployment, dynamo, dynamo_pod, endpoint_slice, node, pod_of, replicaset, service
from tests.unit.inventory.scenes import Scene

SUMMARIZER = deployment("summarizer", replicas=2, gpus=2)
REPLICAS = replicaset(SUMMARIZER)
LOAD_FAILS = {
    "waiting": "CrashLoopBackOff",
    "restarts": 1,
    "last_end": at(1),
    "ready": False,
}


def lines(**broken: str) -> list[HopLine]:
    """All hops ok, but for those with the names of their broken pods."""
    return [
        HopLine(hop=hop, state=HopState.BROKEN, pods=tuple(broken[hop.value]))
        if hop.value in broken
        else HopLine(hop=hop, state=HopState.OK)
        for hop in HOPS
    ]


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"pod": "a"}, Hop.POD, id="one"),
        pytest.param({"scheduling": "ab", "service": "a"}, Hop.SCHEDULING, id="the earlier covers the later"),
        pytest.param({"scheduling": "a", "service": "ab"}, Hop.SERVICE, id="the earlier explains only a part"),
        pytest.param({"gpu": "abc", "scheduling": "c", "pod": "ab"}, Hop.GPU, id="one covers two"),
        pytest.param({"gpu": "c", "scheduling": "ab", "service": "ab"}, Hop.SCHEDULING, id="another trouble apart"),
    ],
)
def test_the_first_broken_hop_covers_what_is_broken_later(broken: dict[str, str], expected: Hop | None) -> None:
    """
    A hop that broke earlier, for other pods, is not the cause.
    """
    assert first_broken(lines(**broken)) is expected


def report_of(scene: Scene, subject: str) -> HopReport:
    told = scene.inventory.context(Subject.parse(subject), at(100))
    assert told is not None
    assert told.report is not None
    return told.report


def test_every_hop_has_a_line_in_order() -> None:
    """
    Hops that nobody can see without an agent, a probe or a gateway source say so.
    """
    scene = Scene(node("n", gpus=4), SUMMARIZER, REPLICAS, pod_of(REPLICAS, "0", node="n"))

    report = report_of(scene, "component:prod/summarizer/engine")

    assert [line.hop for line in report.lines] == list(HOPS)
    assert {line.hop: line.reason for line in report.lines if line.state is HopState.UNKNOWN} == {
        Hop.GPU: "no_source (gpu agent)",
        Hop.MODEL: "no_source (probe or engine metrics)",
        Hop.GATEWAY: "no_source (route source)",
    }
    assert report.first_broken is None


def test_a_pod_that_waits_breaks_scheduling() -> None:
    """
    The line counts it, names it and shows the arithmetic.
    """
    scene = Scene(node("n", gpus=2), SUMMARIZER, REPLICAS, pod_of(REPLICAS, "0", node="n"))
    scene.put(pod_of(REPLICAS, "1", unschedulable="0/1 nodes are available: 1 Insufficient nvidia.com/gpu."))

    line = report_of(scene, "component:prod/summarizer/engine").line(Hop.SCHEDULING)

    assert (line.state, line.broken, line.total, line.pods) == (HopState.BROKEN, 1, 2, ("summarizer-aaaa-1",))
    assert "nvidia.com/gpu" in line.evidence[0].text


def test_endpoints_that_are_down_because_no_pod_is_up() -> None:
    """
    The Service has no ready endpoint; the pods that fail to start cover it, so they come first.
    """
    front = service("summarizer", selector={"app": "summarizer"})
    pods = [pod_of(REPLICAS, str(n), node="n", **LOAD_FAILS) for n in (0, 1)]
    scene = Scene(node("n", gpus=4), SUMMARIZER, REPLICAS, front, *pods, endpoint_slice(front, pods))

    report = report_of(scene, "workload:prod/summarizer")

    assert report.line(Hop.SERVICE).state is HopState.BROKEN
    assert report.first_broken in (Hop.POD, Hop.MODEL)


def test_a_service_whose_selector_is_wrong_breaks_alone() -> None:
    """
    All pods are ready, and nobody reaches them.
    """
    scene = Scene(node("n", gpus=4), SUMMARIZER, REPLICAS, pod_of(REPLICAS, "0", node="n"))
    scene.put(service("summarizer", selector={"app": "sumarizer"}))

    report = report_of(scene, "component:prod/summarizer/engine")

    assert report.first_broken is Hop.SERVICE
    assert report.line(Hop.SERVICE).evidence[0].text == "its selector matches no pod"


def test_a_node_that_advertises_less_is_evidence_on_discovery() -> None:
    """
    Whoever is to blame: the GPU that is missing is shown.
    """
    graph = dynamo("llama", decode=1)
    scene = Scene(node("n", gpus=8), graph, dynamo_pod(graph, "decode", "0", node="n"))
    scene.put(node("n", gpus=7, capacity=8))

    line = report_of(scene, "component:prod/llama/decode").line(Hop.DISCOVERY)

    assert (line.evidence[0].source, line.evidence[0].text) == ("node/n", "advertises 7 of 8 GPUs")


def test_pods_that_register_elsewhere_are_unknown_on_the_hop_of_services() -> None:
    """
    Dynamo's workers are reached through its own discovery, which no source reads.
    """
    graph = dynamo("llama", decode=1)
    scene = Scene(node("n", gpus=8), graph, dynamo_pod(graph, "decode", "0", node="n"))

    line = report_of(scene, "component:prod/llama/decode").line(Hop.SERVICE)

    assert (line.state, line.reason) == (HopState.UNKNOWN, "no_source (registration with dynamo)")


def test_without_gpus_the_first_two_hops_do_not_apply() -> None:
    """
    A router asks for none.
    """
    app = deployment("cpu-engine", gpus=0)
    rs = replicaset(app)
    scene = Scene(node("n"), app, rs, pod_of(rs, "0", node="n"))

    report = report_of(scene, "component:prod/cpu-engine/engine")

    assert report.line(Hop.GPU).state is HopState.NOT_APPLICABLE
    assert report.line(Hop.DISCOVERY).state is HopState.NOT_APPLICABLE


def test_blind_to_pods_means_blind_on_their_hops() -> None:
    """
    Not ok, and not broken.
    """
    scene = Scene(node("n", gpus=4), SUMMARIZER, REPLICAS, pod_of(REPLICAS, "0", node="n"))
    scene.source("Pod", state=SyncState.STALE)

    report = report_of(scene, "component:prod/summarizer/engine")

    assert {line.reason for line in report.lines[:5]} == {"stale: Pod"}
    assert {line.state for line in report.lines[:5]} == {HopState.UNKNOWN}


def test_the_context_shows_the_diagnosis_of_the_hop_that_broke_first() -> None:
    """
    With the pods that are not well, and where they are.
    """
    scene = Scene(node("n", gpus=2), SUMMARIZER, REPLICAS, pod_of(REPLICAS, "0", node="n"))
    scene.put(pod_of(REPLICAS, "1", unschedulable="0/1 nodes are available: 1 Insufficient nvidia.com/gpu."))

    told = scene.inventory.context(Subject.parse("component:prod/summarizer/engine"), at(100))

    assert told is not None
    assert told.diagnosis is not None
    assert told.diagnosis.cause == "gpu-shortage"
    assert told.pods == (("summarizer-aaaa-1", ""),)
    assert (told.desired, told.ready, told.minimum) == (2, 1, 1)
    assert [str(parent) for parent in told.parents] == [
        "workload:prod/summarizer",
        "pool:NVIDIA-H100-80GB-HBM3",
    ]
    assert scene.inventory.context(Subject.parse("component:prod/other/engine"), at(100)) is None


def test_pods_that_all_failed_are_not_an_empty_report() -> None:
    """
    A kubelet that rejects every pod leaves none alive; what the failed ones say is on the report.
    """
    pods = [pod_of(REPLICAS, str(n), node="n", phase="Failed", ready=False) for n in (0, 1)]
    for pod in pods:
        pod.status.reason = "UnexpectedAdmissionError"
        pod.status.message = "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu."
        pod.status.container_statuses = ()
    scene = Scene(node("n", gpus=4), SUMMARIZER, REPLICAS, *pods)

    report = report_of(scene, "component:prod/summarizer/engine")

    assert report.first_broken is Hop.DISCOVERY
    assert report.line(Hop.DISCOVERY).broken == 2
