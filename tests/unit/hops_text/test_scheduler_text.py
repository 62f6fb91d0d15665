"""Why a pod waits, by texts alone."""

from __future__ import annotations

import pytest

from sevenhop.core.hops.causes import CAUSES
from sevenhop.core.hops.scheduler_text import classify_scheduler_message
from tests.unit.hops_text.more_texts import CATEGORIES_OF_TEXTS

NEW = "no new claims to deallocate, preemption: 0/6 nodes are available: "
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"

ROWS = [
    # kube-scheduler: which of several reasons binds
    ("0/6 nodes are available: 2 node(s) were unschedulable, 4 Insufficient nvidia.com/gpu.", "cordoned"),
    (
        (
            "0/6 nodes are available: 3 node(s) had untolerated taint {nvidia.com/gpu: present}, 3 Insufficient "
            "nvidia.com/gpu."
        ),
        "untolerated-taint",
    ),
    (
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
            "3 Insufficient nvidia.com/gpu."
        ),
        "gpu-unavailable",
    ),
    (
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 3 "
            "node(s) didn't match Pod's node affinity/selector."
        ),
        "node-affinity",
    ),
    ("0/2 nodes are available: 2 node(s) had untolerated taint {node.kubernetes.io/unreachable: }.", "node-not-ready"),
    ("0/2 nodes are available: 2 node(s) had untolerated taint {node.kubernetes.io/unschedulable: }.", "cordoned"),
    ("0/4 nodes are available: 1 Insufficient memory, 3 Insufficient nvidia.com/gpu.", "memory-shortage"),
    (
        "0/512 nodes are available: 12 node(s) didn't match Pod's node affinity, 500 Insufficient nvid",
        "gpu-unavailable",
    ),
    ("0/512 nodes are available: 512 Insufficient nvidia.com/g ...", "gpu-unavailable"),
    ("0/512 nodes are available: 512 Insufficient mem ...", "memory-shortage"),
    ("0/512 nodes are available: 512 Insufficient p", "resource-unnamed"),
    ('error getting PVC "prod/models": could not find v1.PersistentVolumeClaim "prod/models"', "pvc-missing"),
    (
        "0/4 nodes are available: 2 Insufficient ephemeral-storage, 2 Insufficient nvidia.com/gpu.",
        "ephemeral-storage-shortage",
    ),
    (
        (
            "0/9 nodes are available: 2 node(s) had untolerated taint(s), 7 node(s) didn't satisfy existing pods "
            "anti-affinity rules."
        ),
        "pod-anti-affinity",
    ),
    ("0/9 nodes are available: 4 Insufficient cpu, 5 node(s) didn't match pod affinity rules.", "pod-affinity"),
    (
        "0/9 nodes are available: 4 Insufficient cpu, 5 node(s) didn't match pod topology spread constraints.",
        "topology-spread",
    ),
    ("0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports.", "host-port"),
    ("0/3 nodes are available: 3 node(s) exceed max volume count.", "volume-limit"),
    ("0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind.", "pv-unavailable"),
    ('0/3 nodes are available: persistentvolumeclaim "weights" not found. not found', "pvc-missing"),
    (
        '0/3 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "x".',
        "pvc-unbound",
    ),
    (
        (
            "0/3 nodes are available: 3 cannot allocate all claims. still not schedulable, preemption: 0/3 nodes "
            "are available: 3 Preemption is not helpful for scheduling."
        ),
        "dra-unsatisfiable",
    ),
    (
        '0/3 nodes are available: waiting for dynamic resource controller to create the resourceclaim "x".',
        "dra-claim-missing",
    ),
    ("0/3 nodes are available: request gpu: device class mig.nvidia.com does not exist.", "device-class-missing"),
    ("0/6 nodes are available: 6 Insufficient nvidia.com/mig-3g.40gb.", "mig-shortage"),
    ("0/6 nodes are available: 6 Insufficient rdma/hca.", "device-plugin-suspected"),
    ("0/6 nodes are available: 2 Insufficient rdma/hca, 4 Insufficient nvidia.com/gpu.", "extended-resource-shortage"),
    (f"0/6 nodes are available: 6 Insufficient nvidia.com/gpu. {NEW}6 {NOT_HELPFUL}.", "device-plugin-suspected"),
    (
        f"0/6 nodes are available: 6 Insufficient nvidia.com/gpu. {NEW}4 {NO_VICTIMS}, 2 {NOT_HELPFUL}.",
        "gpu-unavailable",
    ),
    (
        f"0/6 nodes are available: 2 Insufficient cpu, 4 Insufficient nvidia.com/gpu. {NEW}6 {NO_VICTIMS}.",
        "resource-combination",
    ),
    ("0/3 nodes are available: 3 SomethingOfOurOwn failed.", "scheduler-text-unread"),
    ("waiting for minCount pods from a gang to appear in scheduling queue", "gang-waiting"),
    ("Scheduling is blocked due to non-empty scheduling gates", "scheduling-gate"),
    # cluster-autoscaler
    ("pod triggered scale-up: [{gpu-a100 2->3 (max: 8)}]", "autoscaler-adding"),
    (
        (
            "pod didn't trigger scale-up: 2 max node group size reached, 9 node(s) didn't match Pod's node "
            "affinity/selector"
        ),
        "autoscaler-maxed",
    ),
    (
        "pod didn't trigger scale-up: 1 in backoff after failed scale-up, 4 Insufficient nvidia.com/gpu",
        "autoscaler-backoff",
    ),
    (
        "pod didn't trigger scale-up (it wouldn't fit if a new node is added): 3 Insufficient amd.com/gpu",
        "autoscaler-no-template",
    ),
    ("pod didn't trigger scale-up: 4 node(s) had untolerated taint {spot: true}", "untolerated-taint"),
    ("pod didn't trigger scale-up: 2 not ready for scale-up", "autoscaler-other"),
    ("max total nodes in cluster reached", "autoscaler-maxed"),
    ('pod didn\'t trigger scale-up: 1 exceeded quota: "gpu-limit", resources: nvidia.com/gpu', "autoscaler-maxed"),
    # Karpenter
    (
        (
            'Failed to schedule pod, incompatible with nodepool "gpu", daemonset overhead={"cpu":"1"}, did not '
            "tolerate taint (taint=nvidia.com/gpu=true:NoSchedule)"
        ),
        "untolerated-taint",
    ),
    (
        (
            "Failed to schedule pod, no instance type has enough resources, requirements=karpenter.sh/nodepool "
            'In [gpu], resources={"cpu":"400"}'
        ),
        "autoscaler-no-template",
    ),
    ("no instance type met all requirements", "node-affinity"),
    ("no instance type has the required offering", "autoscaler-backoff"),
    ('node limits have been exhausted for nodepool "gpu"', "autoscaler-maxed"),
    ("Pod should schedule on: nodeclaim/gpu-x7", "autoscaler-adding"),
    # Kueue
    (
        (
            "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor "
            "h100, 6 more needed. Pending the preemption of 2 workload(s)"
        ),
        "kueue-waiting",
    ),
    (
        (
            "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor h100, "
            "request > maximum capacity (16 > 8)"
        ),
        "kueue-exceeds-max",
    ),
    ("couldn't assign flavors to pod set main: flavor h100 not found", "queue-misconfigured"),
    ("ClusterQueue team-a doesn't exist", "queue-misconfigured"),
    ("couldn't assign flavors to pod set main: untolerated taint {spot: true} in flavor spot", "queue-misconfigured"),
    (
        'couldn\'t assign flavors to pod set main: topology "default" allows to fit only 2 out of 4 pod(s)',
        "kueue-topology",
    ),
    ("Preempted to accommodate a workload (UID: 1) due to prioritization in the ClusterQueue", "kueue-waiting"),
    (
        (
            "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a, "
            "request > maximum capacity (8 > 0), insufficient unused quota for x in flavor b, 1 more needed"
        ),
        "kueue-waiting",
    ),
    (
        (
            "0/6 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
            "5 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }."
        ),
        "node-affinity",
    ),
    ("Workload no longer fits after processing another workload", "kueue-waiting"),
    ('running PreBind plugin "VolumeBinding": binding volumes: timed out waiting for the condition', "pvc-unbound"),
    ("0/3 nodes are available: 3 NodeUnfitPod.", "device-sharing-refused"),
    # KAI
    (
        (
            "OverLimit: team-a quota has reached the allowable limit of GPUs. Limit is 4 GPUs, currently 4 GPUs "
            "allocated and workload requested 1 GPUs"
        ),
        "queue-quota",
    ),
    (
        (
            "NonPreemptibleOverQuota: Non-preemptible workload is over quota. Workload requested 8 GPUs, but "
            "team-a quota is 4 GPUs"
        ),
        "queue-quota",
    ),
    (
        (
            "no nodes with enough resources were found: 4 node(s) didn't have enough resources: GPUs. \n2 "
            "node(s) didn't have enough resources: CPU cores."
        ),
        "cpu-shortage",
    ),
    ("no nodes with enough resources were found: 4 node(s) didn't have enough resources: GPUs.", "gpu-unavailable"),
    ("QueueDoesNotExist", "queue-misconfigured"),
    # Volcano
    ("4/0 tasks in gang unschedulable: pod group is not ready, 4 minAvailable", "gang-pods-missing"),
    ("8/5 tasks in gang unschedulable: pod group is not ready, 5 Pending, 8 minAvailable", "gang-waiting"),
    (
        (
            "4/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 4 "
            "Unschedulable. Origin reason is w-0: 0/3 nodes are unavailable: 3 Insufficient cpu."
        ),
        "cpu-shortage",
    ),
    ("queue resource quota insufficient", "queue-waiting"),
    # Creation
    (
        (
            'Error creating: pods "x-1" is forbidden: exceeded quota: team, requested: '
            "requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"
        ),
        "resource-quota",
    ),
    (
        (
            '(combined from similar events): Error creating: pods "x-1" is forbidden: exceeded quota: team, '
            "requested: pods=1, used: pods=9, limited: pods=9"
        ),
        "resource-quota",
    ),
    ('pods "x-1" is forbidden: maximum memory usage per Container is 64Gi, but limit is 128Gi', "limit-range"),
    ('pods "x-1" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostIPC=true)', "pod-security"),
    ('pods "x-1" is forbidden: no PriorityClass with name critcal was found', "priority-class-missing"),
    (
        'pods "x-1" is forbidden: error looking up service account prod/engine: serviceaccount "engine" not found',
        "service-account-missing",
    ),
    (
        'Error creating: admission webhook "validate.kyverno.svc-fail" denied the request: policy labels failed',
        "admission-denied",
    ),
    (
        'Error creating: Internal error occurred: failed calling webhook "pods.istio.io": connect: connection refused',
        "admission-denied",
    ),
    ('Error creating: Pod "x-1" is invalid: spec.containers[0].image: Required value', "pod-rejected"),
    # Every node is refused twice up to 1.21: by what it fails, and by which of its two parts.
    (
        (
            "0/4 nodes are available: 4 node(s) didn't match pod affinity/anti-affinity rules, 4 node(s) didn't match "
            "pod anti-affinity rules."
        ),
        "pod-anti-affinity",
    ),
    # A whole device of another maker may be taken everywhere, as a GPU may.
    ("0/2 nodes are available: 2 Insufficient google.com/tpu.", "gpu-unavailable"),
    ("0/2 nodes are available: 2 Insufficient habana.ai/gaudi.", "gpu-unavailable"),
    ("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.shared.", "device-plugin-suspected"),
    # Cut off in the middle of the reason that binds.
    (
        "0/90 nodes are available: 3 node(s) had untolerated taint {a: b}, 87 node(s) didn't match pod anti-aff ...",
        "pod-anti-affinity",
    ),
    ("0/90 nodes are available: 3 Insufficient cpu, 87 node(s) didn't match pod top ...", "topology-spread"),
    ("0/90 nodes are available: 90 node(s) didn't match ...", "scheduler-text-unread"),
    # A plugin of their own refuses more nodes than all that is known.
    ("0/90 nodes are available: 3 node(s) had untolerated taint {a: b}, 87 refused by Fleet.", "scheduler-text-unread"),
    ("0/9 nodes are available: 6 node(s) had untolerated taint {a: b}, 3 refused by Fleet.", "untolerated-taint"),
    ("no nodes available to schedule pods", "no-nodes"),
    ("Pod chat/a: no nodes available to schedule pods", "no-nodes"),
    ("0/0 nodes are available: .", "no-nodes"),
    ("0/3 nodes are available: 3 NodeUnschedulable.", "cordoned"),
    ("0/3 nodes are available: 3 NoVolumeZoneConflict.", "volume-zone"),
    ("0/3 nodes are available: 3 MaxVolumeCount.", "volume-limit"),
    ("0/3 nodes are available: 3 node is filtered out by the prefilter result.", "node-affinity"),
    # A pod that names its node: that node is the one meant, however many others there are.
    ("0/90 nodes are available: 1 Insufficient cpu, 89 node is filtered out by the prefilter result.", "cpu-shortage"),
    (
        "0/2 nodes are available: 2 node(s) had untolerated taint {node.cloudprovider.kubernetes.io/uninitialized: x}.",
        "node-not-ready",
    ),
    # DRA
    ("claim chat/a, request gpu: selector #0: CEL runtime error: no such key: memory", "dra-unsatisfiable"),
    ("0/3 nodes are available: 3 timed out trying to allocate devices.", "dra-unsatisfiable"),
    (
        (
            "Resources were found for 5 pods while 17 are required for gang scheduling. Additional pods cannot be "
            "scheduled due to: no nodes with enough resources were found: 12 cannot allocate all claims."
        ),
        "dra-unsatisfiable",
    ),
    # Out-of-tree plugins and queues
    (
        "0/8 nodes are available: pre-filter pod a cannot find enough sibling pods, minMember: 4.",
        "gang-waiting",
    ),
    ("0/8 nodes are available: optimistic rejection in PostFilter.", "gang-waiting"),
    ("pod is rejected in PreFilter because ElasticQuota chat is more than Max", "queue-quota"),
    ("Can't admit new workloads: references ResourceFlavor(s) that aren't found: [h100].", "queue-misconfigured"),
    (
        "couldn't assign flavors to pod set main: flavor a does not support TopologyAwareScheduling",
        "queue-misconfigured",
    ),
    ("Queue 'chat' does not exist", "queue-misconfigured"),
    ("AdmissionChecks provisioning: Pending", "kueue-waiting"),
    ("couldn't assign flavors to pod set main: no topology domains at level: rack", "kueue-topology"),
    ("WaitingForPreemptedWorkloads: waiting for preempted workloads to release quota", "kueue-waiting"),
    ("Pod chat/a can possibly be assigned to node1, once minAvailable is satisfied", "gang-waiting"),
    # Volcano says "not ready" of a group that runs, and means the pods beyond what it needs.
    ("pod group is not ready, 1 minAvailable, 7 Running, 89 Pending; Pending: 89 Unschedulable", "gang-unexplained"),
    ("pod group is ready, 1 minAvailable, 8 Running, 83 Pending; Pending: 83 Unschedulable", "gang-unexplained"),
    ("pod group is not ready, 4 minAvailable, 2 Running, 2 Pending; Pending: 2 Unschedulable", "gang-waiting"),
    # Autoscalers and clouds
    ("NodePool requirements filtered out all compatible available instance types", "autoscaler-no-template"),
    ("The zone 'a' does not have enough resources available to fulfill the request.", "autoscaler-backoff"),
    ("Capacity is not found, CA will try to find it later.", "autoscaler-backoff"),
    ("MaxSpotInstanceCountExceeded: Max spot instance count exceeded", "autoscaler-backoff"),
    ("ReservationCapacityExceeded: the reservation does not have capacity", "autoscaler-backoff"),
]


@pytest.mark.parametrize(("text", "cause"), ROWS, ids=[f"{i}-{cause}" for i, (_, cause) in enumerate(ROWS)])
def test_cause_of_text(text: str, cause: str) -> None:
    """
    Each emitter's words lead to the cause that binds, with the category of the published table.
    """
    diagnosis = classify_scheduler_message(text)

    assert diagnosis is not None
    assert diagnosis.cause == cause
    assert diagnosis.category is CAUSES[cause].category
    assert diagnosis.next_steps


@pytest.mark.parametrize(("text", "cause"), ROWS, ids=[f"{i}-{cause}" for i, (_, cause) in enumerate(ROWS)])
def test_shortage_is_never_claimed_from_words_that_do_not_prove_it(text: str, cause: str) -> None:
    """
    Nodes without GPUs, and nodes that advertise none, say the same as nodes that are full.
    """
    diagnosis = classify_scheduler_message(text)

    assert diagnosis is not None
    assert diagnosis.cause != "gpu-shortage"
    assert "GPUs are short" not in diagnosis.summary


def test_numbers_are_those_of_the_text() -> None:
    """
    The summary counts nodes as the scheduler did, and says why it did not preempt.
    """
    diagnosis = classify_scheduler_message(
        "0/12 nodes are available: 5 Insufficient cpu, 7 node(s) didn't match Pod's node affinity/selector. "
        "preemption: 0/12 nodes are available: 5 No preemption victims found for incoming pod, 7 Preemption is not "
        "helpful for scheduling."
    )

    assert diagnosis is not None
    assert "5 of 12 nodes" in diagnosis.summary
    assert diagnosis.excluded == (("cpu-shortage", 5), ("node-affinity", 7))
    assert "5 nodes hold no pod" in diagnosis.not_preempted


def test_a_lone_node_of_a_large_cluster_is_hardly_the_one_meant() -> None:
    """
    Where 39 of 40 nodes are tainted, the taint binds, not the CPU of the one that is not.
    """
    diagnosis = classify_scheduler_message(
        "0/40 nodes are available: 1 Insufficient cpu, 39 node(s) had untolerated taint(s)."
    )

    assert diagnosis is not None
    assert diagnosis.cause == "untolerated-taint"


def test_a_pod_that_asks_for_no_gpus_is_pointed_out() -> None:
    """
    A text about GPUs that contradicts the pod as it is given says so.
    """
    text = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."

    diagnoses = [classify_scheduler_message(text, wants_gpu=wants) for wants in (True, False, None)]

    assert ["asks for none" in d.summary for d in diagnoses if d] == [False, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "Successfully assigned prod/x to node-1",
        "Created container engine",
        "Failed to create pod sandbox: rpc error: code = Unknown",
        "Error syncing load balancer: failed to ensure load balancer: quota exceeded",
    ],
)
def test_other_texts_are_not_claimed(text: str) -> None:
    """
    What no scheduler, queue or admission controller wrote gives None.
    """
    assert classify_scheduler_message(text) is None


@pytest.mark.parametrize(("text", "category"), CATEGORIES_OF_TEXTS, ids=range(len(CATEGORIES_OF_TEXTS)))
def test_category_of_text(text: str, category: str) -> None:
    """
    Further texts of the same kinds lead to their category.
    """
    diagnosis = classify_scheduler_message(text)

    assert diagnosis is not None
    assert diagnosis.category == category


def test_names_from_the_cluster_are_cleaned() -> None:
    """
    What a summary takes from a text carries neither control characters nor tokens.
    """
    secret = "hf" + "_abcdefghijklmnopqrstuvwxyz"
    diagnosis = classify_scheduler_message(f'admission webhook "a\x1b[31m{secret}" denied the request: no')

    assert diagnosis is not None
    assert secret not in str(diagnosis)
    assert "\x1b" not in diagnosis.summary
