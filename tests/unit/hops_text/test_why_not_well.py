"""Why a pod is not well: cause before symptom."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

import pytest

from sevenhop.core.hops.diagnosis import Confidence
from sevenhop.core.hops.failures import why_not_well, why_not_well_by_events
from sevenhop.core.objects.cluster import Event
from sevenhop.core.objects.pod import Pod
from tests.unit.hops_text.pods_of_text import NOON, Doc, container, event, pod, running

NOW = datetime(2026, 1, 2, 14, 0, tzinfo=UTC)
LOOP = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container=engine"}}
KILLED = {"terminated": {"exitCode": 137, "reason": "Error", "startedAt": NOON}}
TRACEBACK = (
    "Traceback\nValueError: No available memory for the cache blocks.\nRuntimeError: Engine core initialization failed."
)
RUNS = {"running": {"startedAt": NOON}}


def ended(**fields: object) -> dict[str, object]:
    return {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": NOON} | fields}


CASES = [
    pytest.param(
        pod(status=running(container(LOOP, last=ended(reason="OOMKilled", exitCode=137)))),
        [],
        "host-oom",
        id="host memory",
    ),
    pytest.param(
        pod(status=running(container(LOOP, last=KILLED))),
        [event("Killing", "Container engine failed startup probe, will be restarted", type="Normal")],
        "probe-kill",
        id="137 by a probe",
    ),
    pytest.param(
        pod(status=running(container(LOOP, last=KILLED))),
        [event("Unhealthy", "Liveness probe failed: context deadline exceeded")],
        "probe-kill",
        id="137 by a probe, Killing lost",
    ),
    pytest.param(
        pod(status=running(container(LOOP, last=KILLED))), [], "killed-unexplained", id="137 by nobody knows whom"
    ),
    pytest.param(
        pod(
            status={
                "phase": "Failed",
                "reason": "Evicted",
                "message": "The node was low on resource: memory.",
                "containerStatuses": [container(KILLED)],
            }
        ),
        [],
        "evicted-memory",
        id="137 by eviction",
    ),
    pytest.param(
        pod(
            status={
                "phase": "Failed",
                "containerStatuses": [
                    container(
                        ended(
                            reason="ContainerStatusUnknown",
                            exitCode=137,
                            message="The container could not be located when the pod was deleted.",
                        )
                    )
                ],
            }
        ),
        [],
        "container-lost",
        id="137 that the kubelet made up",
    ),
    pytest.param(pod(status=running(container(LOOP))), [], "crash-loop-unexplained", id="only the symptom"),
    pytest.param(
        pod(status=running(container(LOOP, last=ended()))), [], "exit-code-unexplained", id="only the exit code"
    ),
    pytest.param(
        pod(status=running(container(LOOP, last=ended(exitCode=139)))),
        [],
        "segmentation-fault",
        id="a signal in the exit code",
    ),
    pytest.param(
        pod(status=running(container(LOOP, last=ended(exitCode=0, reason="Completed")))),
        [],
        "exited-unexpectedly",
        id="a server that ends by itself",
    ),
    pytest.param(
        pod(
            status=running(
                container(
                    LOOP,
                    last=ended(message=TRACEBACK),
                )
            )
        ),
        [],
        "gpu-oom-at-load",
        id="the termination message",
    ),
    pytest.param(
        pod(
            status=running(
                container(
                    LOOP,
                    last=ended(
                        exitCode=128,
                        reason="StartError",
                        startedAt="1970-01-01T00:00:00Z",
                        message='OCI runtime create failed: exec: "srv": executable file not found in $PATH',
                    ),
                )
            )
        ),
        [],
        "bad-command",
        id="never started",
    ),
    pytest.param(
        pod(
            status={
                "phase": "Failed",
                "reason": "UnexpectedAdmissionError",
                "message": "Pod was rejected: Allocate failed due to nvml: GPU is lost, which is unexpected",
            }
        ),
        [],
        "gpu-lost",
        id="refused by the kubelet, hop gpu",
    ),
    pytest.param(
        pod(
            status={"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "Pod was rejected: it just was"}
        ),
        [],
        "device-plugin-allocate",
        id="refused by the kubelet",
    ),
    pytest.param(pod(status={"phase": "Failed"}), [], "pod-failed-unexplained", id="failed without a word"),
    pytest.param(pod(status={"phase": "Unknown"}), [], "node-lost", id="unknown phase"),
    pytest.param(
        pod(
            status={
                "phase": "Pending",
                "containerStatuses": [
                    container(
                        {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "engine:1"'}}
                    )
                ],
            }
        ),
        [event("Failed", 'Failed to pull image "engine:1": pull access denied, repository does not exist')],
        "image-unauthorized",
        id="back-off, and the reason in an Event",
    ),
    pytest.param(
        pod(status={"phase": "Pending", "containerStatuses": [container({"waiting": {"reason": "ImagePullBackOff"}})]}),
        [event("BackOff", 'Back-off pulling image "engine:1"')],
        "image-pull-unexplained",
        id="only the back-off",
    ),
    pytest.param(
        pod(
            status={"phase": "Pending", "containerStatuses": [container({"waiting": {"reason": "ContainerCreating"}})]}
        ),
        [event("FailedMount", 'MountVolume.SetUp failed for volume "t" : secret "hub" not found')],
        "secret-missing",
        id="a mount",
    ),
    pytest.param(
        pod(
            status={"phase": "Pending", "containerStatuses": [container({"waiting": {"reason": "ContainerCreating"}})]}
        ),
        [],
        "container-creating",
        id="being created",
    ),
    pytest.param(
        pod(
            status={
                "phase": "Pending",
                "initContainerStatuses": [{"name": "storage-initializer", "state": RUNS}],
                "containerStatuses": [container({"waiting": {"reason": "PodInitializing"}})],
            }
        ),
        [],
        "artifact-fetching",
        id="the model is being fetched",
    ),
    pytest.param(
        pod(
            status={
                "phase": "Pending",
                "initContainerStatuses": [{"name": "storage-initializer", "state": LOOP, "lastState": ended()}],
                "containerStatuses": [container({"waiting": {"reason": "PodInitializing"}})],
            }
        ),
        [],
        "artifact-fetch-unexplained",
        id="fetching the model crashes",
    ),
    pytest.param(
        pod(
            status={
                "phase": "Pending",
                "initContainerStatuses": [{"name": "wait-gcs-ready", "state": RUNS}],
                "containerStatuses": [container({"waiting": {"reason": "PodInitializing"}})],
            }
        ),
        [],
        "ray-head-unreachable",
        id="a worker waits for its head",
    ),
    pytest.param(
        pod(status=running(container(RUNS))),
        [event("Unhealthy", "Startup probe failed: connection refused")],
        "slow-load",
        id="loads for too long",
    ),
    pytest.param(
        pod(status=running(container(RUNS))),
        [event("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")],
        "not-ready",
        id="not ready",
    ),
    pytest.param(pod(status=running(container(RUNS))), [], "not-ready-unexplained", id="not ready without a word"),
    pytest.param(
        pod(status=running(container(LOOP, last=ended()))),
        [
            event("FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu."),
            event("FailedMount", 'MountVolume.SetUp failed for volume "x" : timed out'),
        ],
        "exit-code-unexplained",
        id="Events of passed stages are left aside",
    ),
    pytest.param(
        pod(
            spec={"nodeName": ""},
            status={
                "phase": "Pending",
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes are available: 3 node(s) were unschedulable.",
                    }
                ],
            },
        ),
        [],
        "cordoned",
        id="the scheduler's condition",
    ),
    pytest.param(
        pod(spec={"nodeName": ""}, status={"phase": "Pending"}),
        [event("FailedScheduling", "0/3 nodes are available: 3 Too many pods.")],
        "too-many-pods",
        id="the scheduler's Event",
    ),
    pytest.param(
        pod(spec={"nodeName": ""}, status={"phase": "Pending"}),
        [
            event("FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu."),
            event("TriggeredScaleUp", "pod triggered scale-up: [{a 1->2 (max: 3)}]", type="Normal"),
        ],
        "autoscaler-adding",
        id="a node is coming",
    ),
    pytest.param(
        pod(spec={"nodeName": ""}, status={"phase": "Pending"}),
        [
            event("FailedScheduling", "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."),
            event("TriggeredScaleUp", "pod triggered scale-up: [{a 1->2 (max: 3)}]", type="Normal"),
        ],
        "node-affinity",
        id="a node is coming, and no help",
    ),
    pytest.param(
        pod(spec={"nodeName": "", "schedulingGates": [{"name": "grove.io/podgang"}]}, status={"phase": "Pending"}),
        [],
        "scheduling-gate",
        id="gated, no Event at all",
    ),
    pytest.param(
        pod(spec={"nodeName": ""}, status={"phase": "Pending"}), [], "pending-unexplained", id="nobody said anything"
    ),
    pytest.param(
        pod(status=running(container(RUNS)), deletionTimestamp=NOON, finalizers=["x.dev/hold"]),
        [],
        "stuck-terminating",
        id="does not go away",
    ),
]


@pytest.mark.parametrize(("subject", "events", "cause"), CASES)
def test_cause(subject: Pod, events: list[Event], cause: str) -> None:
    """
    Each situation has its cause.
    """
    diagnosis = why_not_well(subject, events, now=NOW)

    assert diagnosis is not None
    assert diagnosis.cause == cause, diagnosis.summary
    assert diagnosis.evidence
    assert diagnosis.next_steps


def test_a_well_pod_has_no_cause() -> None:
    """
    Old Events do not make a ready pod ill.
    """
    ready = pod(status=running(container(RUNS, ready=True), ready="True"))

    assert why_not_well(ready, [event("BackOff", "Back-off restarting failed container")], now=NOW) is None


def test_the_order_of_events_does_not_matter() -> None:
    """
    The same Events in any order give the same cause.
    """
    subject = pod(status=running(container(LOOP, last=ended())))
    events = [
        event("BackOff", "Back-off restarting failed container engine"),
        event("Unhealthy", "Startup probe failed: connection refused"),
        event("Failed", "Error: failed to create containerd task: nvml error: driver/library version mismatch"),
    ]

    causes = {_cause(subject, list(order)) for order in permutations(events)}

    assert causes == {"driver-library-mismatch"}


def test_a_log_line_names_the_cause() -> None:
    """
    Of a log only the line that matches is shown, never its neighbours.
    """
    subject = pod(status=running(container(LOOP, last=ended())))
    logs = [
        "user asked about their salary",
        "ValueError: No available memory for the cache blocks.",
        "Engine core initialization failed.",
    ]

    diagnosis = why_not_well(subject, [], now=NOW, logs=logs)

    assert diagnosis is not None
    assert diagnosis.cause == "gpu-oom-at-load"
    assert "salary" not in str(diagnosis)


def test_model_failures_name_artifact_and_node() -> None:
    """
    A model that does not load is named, and so is the node where it did not.
    """
    subject = pod(
        status=running(container(LOOP, last=ended(message="KeyError: 'model.layers.0.mlp.w2'"))),
        spec={"containers": [{"name": "engine", "args": ["serve", "--model", "org/llama"]}]},
    )

    diagnosis = why_not_well(subject, [], now=NOW)

    assert diagnosis is not None
    assert "org/llama" in diagnosis.summary
    assert "gpu-1" in diagnosis.summary


def test_how_sure_it_is() -> None:
    """
    A field is certain, a sentence likely, a symptom unknown.
    """
    oom = why_not_well(pod(status=running(container(LOOP, last=ended(reason="OOMKilled")))), [], now=NOW)
    text = why_not_well(pod(status=running(container(LOOP, last=ended(message="CUDA out of memory")))), [], now=NOW)
    symptom = why_not_well(pod(status=running(container(LOOP))), [], now=NOW)

    assert [d.confidence for d in (oom, text, symptom) if d] == [
        Confidence.CERTAIN,
        Confidence.LIKELY,
        Confidence.UNKNOWN,
    ]


def test_finalizers_are_named() -> None:
    """
    Who holds a pod that does not go away is in the summary.
    """
    subject = pod(status=running(container(RUNS)), deletionTimestamp=NOON, finalizers=["x.dev/hold"])

    diagnosis = why_not_well(subject, [], now=NOW)

    assert diagnosis is not None
    assert "x.dev/hold" in diagnosis.summary


@pytest.mark.parametrize(
    ("events", "cause"),
    [
        pytest.param(
            [event("FailedScheduling", "0/3 nodes are available: 3 node(s) were unschedulable.")],
            "cordoned",
            id="no node",
        ),
        pytest.param(
            [
                event("Failed", 'Error: secret "hub" not found'),
                event("FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu."),
            ],
            "secret-missing",
            id="later stage first",
        ),
        pytest.param(
            [event("BackOff", "Back-off restarting failed container engine")], "crash-loop-unexplained", id="a symptom"
        ),
        pytest.param([event("Pulled", "Container image already present", type="Normal")], None, id="all is well"),
    ],
)
def test_a_pod_known_by_events_alone(events: list[Event], cause: str | None) -> None:
    """
    Where the pod was not collected, what its Events say still counts.
    """
    diagnosis = why_not_well_by_events(events)

    assert (diagnosis.cause if diagnosis else None) == cause


def _cause(subject: Pod, events: list[Event]) -> str:
    diagnosis = why_not_well(subject, events, now=NOW)
    return diagnosis.cause if diagnosis else ""


def test_a_fragment_without_node_is_read_by_its_events() -> None:
    """
    A pending pod whose node's name was left out is not called unscheduled when a kubelet tells of it.
    """
    fragment = pod(spec={"nodeName": ""}, status={"phase": "Pending"})

    assert _cause(fragment, [event("FailedMount", 'secret "hub" not found')]) == "secret-missing"
    assert (
        _cause(fragment, [event("Failed", "Failed to pull image: it is forbidden: 403 Forbidden")])
        == "image-unauthorized"
    )


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        pytest.param(
            {
                "phase": "Pending",
                "containerStatuses": [container({"waiting": {"reason": "InvalidImageName", "message": "bad"}})],
            },
            "image-name",
            id="a kubelet wrote into the status",
        ),
        pytest.param(
            running(container(LOOP, last=ended(exitCode=255, startedAt="1970-01-01T00:00:00Z"))),
            "container-runtime",
            id="a container that never ran did not exit",
        ),
    ],
)
def test_what_the_status_says_between_the_lines(status: Doc, cause: str) -> None:
    """
    A status that only a kubelet can have written, and a start in 1970, are understood.
    """
    diagnosis = why_not_well(pod(spec={"nodeName": ""}, status=status), [], now=NOW)

    assert diagnosis is not None
    assert diagnosis.cause == cause


def test_words_that_nobody_knows_are_not_silence() -> None:
    """
    A scheduler that said something is quoted; only where none did, none has.
    """
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no nodes available"}

    spoken = why_not_well(pod(status={"phase": "Pending", "conditions": [said]}, spec={"nodeName": ""}), [], now=None)
    silent = why_not_well(pod(status={"phase": "Pending"}, spec={"nodeName": ""}), [], now=None)

    assert spoken is not None
    assert silent is not None
    assert (spoken.cause, silent.cause) == ("scheduler-text-unread", "pending-unexplained")
    assert "no nodes available" in spoken.summary


@pytest.mark.parametrize(
    ("command", "artifact"),
    [
        pytest.param(["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "a/b"], "a/b", id="python3 -m"),
        pytest.param(
            ["/usr/bin/python3.12", "-u", "-m", "sglang.launch_server", "--model-path", "c/d"], "c/d", id="-u"
        ),
        pytest.param(["llama-server", "-m", "/models/e.gguf"], "/models/e.gguf", id="-m of llama.cpp"),
        pytest.param(["vllm", "serve", "f/g", "--port", "1"], "f/g", id="vllm serve"),
        pytest.param(["trtllm-serve", "serve", "f/g"], "f/g", id="trtllm-serve"),
        pytest.param(["bash", "-c", "exec /opt/vllm serve 'f/g' --port 1"], "f/g", id="in a script"),
        pytest.param(["sh", "-c", "python3 -m sglang.launch_server --model-path=f/g"], "f/g", id="a flag in a script"),
    ],
)
def test_the_module_of_python_is_no_model(command: list[str], artifact: str) -> None:
    """
    The model that is named is the one that the engine is told to load.
    """
    ended = {"exitCode": 1, "reason": "Error", "message": "torch.OutOfMemoryError: CUDA out of memory."}
    status = running(container({"waiting": {"reason": "CrashLoopBackOff"}}, last={"terminated": ended}))
    spec = {"containers": [{"name": "engine", "command": command}]}

    diagnosis = why_not_well(pod(status=status, spec=spec), [], now=None)

    assert diagnosis is not None
    assert f"model {artifact} " in diagnosis.summary


@pytest.mark.parametrize(
    ("reason", "resource", "cause"),
    [("OutOfcpu", "cpu", "cpu-shortage"), ("OutOfmemory", "memory", "memory-shortage")],
)
def test_a_kubelet_that_counts_otherwise_names_the_resource(reason: str, resource: str, cause: str) -> None:
    """
    The resource that the kubelet names is the one that is short.
    """
    message = f"Pod was rejected: Node didn't have enough resource: {resource}, requested: 4, used: 7, capacity: 8"

    diagnosis = why_not_well(pod(status={"phase": "Failed", "reason": reason, "message": message}), [], now=None)

    assert diagnosis is not None
    assert diagnosis.cause == cause


def test_a_readiness_gate_is_named() -> None:
    """
    Where every container is ready, it is not a container that is late.
    """
    said = 'corresponding condition of pod readiness gate "target-health.example.com/x" does not exist.'
    status = running(container(RUNS, ready=True))
    status["conditions"] = [
        {
            "type": "Ready",
            "status": "False",
            "reason": "ReadinessGatesNotReady",
            "message": said,
            "lastTransitionTime": NOON,
        }
    ]

    diagnosis = why_not_well(pod(status=status), [], now=NOW)

    assert diagnosis is not None
    assert "waits for a readiness gate" in diagnosis.summary
    assert "target-health.example.com/x" in diagnosis.summary


def test_the_end_of_a_log_at_level_information_is_no_cause() -> None:
    """
    A termination message may be the last lines of the log, which speak of settings and prompts.
    """
    message = "INFO 01-02 12:00:00 [x.py:1] user asked: CUDA out of memory, what is it?"
    status = running(container(LOOP, last=ended(message=message)))

    diagnosis = why_not_well(pod(status=status), [], now=NOW)

    assert diagnosis is not None
    assert diagnosis.cause == "exit-code-unexplained"
    assert "user asked" not in str(diagnosis)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        pytest.param(
            {"phase": "Failed", "reason": "PodOSNotSupported", "message": "the OS field doesn't match node OS"},
            "PodOSNotSupported: the OS field doesn't match node OS",
            id="of the pod",
        ),
        pytest.param(
            {"phase": "Pending", "containerStatuses": [container({"waiting": {"reason": "New", "message": "no"}})]},
            "New: no",
            id="of a container",
        ),
    ],
)
def test_a_reason_that_nobody_knows_is_quoted(status: Doc, said: str) -> None:
    """
    Where the kubelet gives a reason, nothing claims that there is none.
    """
    found = why_not_well(pod(status=status), [], now=NOW)

    assert found is not None
    assert (said in found.summary, found.confidence) == (True, Confidence.UNKNOWN)


def test_a_lost_node_makes_every_pod_on_it_unreachable() -> None:
    """
    Its containers are as ready as they were when the kubelet last spoke.
    """
    status = running(container(RUNS, ready=True)) | {"reason": "NodeLost", "message": "gpu-1 is unresponsive"}
    status["conditions"] = [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-02T13:59:59Z"}]

    assert _cause(pod(status=status), []) == "node-lost"


def test_of_a_pod_that_is_not_given_nothing_is_said_to_be_asked_for() -> None:
    """
    Its Events alone do not tell how many GPUs it wants; a pod that is given tells.
    """
    said = [event("FailedScheduling", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")]

    unseen, seen = why_not_well_by_events(said), why_not_well(_waits(), said, now=NOW)

    assert unseen is not None
    assert seen is not None
    assert ("asks for none" in unseen.summary, "asks for none" in seen.summary) == (False, True)


def test_an_events_reason_is_said_once() -> None:
    """
    It names the source, and its text goes on from there.
    """
    found = why_not_well_by_events([event("FailedMount", 'secret "hub" not found')])

    assert found is not None
    assert found.summary.endswith('event FailedMount: secret "hub" not found')


def _waits() -> Pod:
    return pod(spec={"nodeName": ""}, status={"phase": "Pending"})
