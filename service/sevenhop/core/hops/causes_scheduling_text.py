"""Causes as far as a scheduler's, a queue's, an autoscaler's or an admission controller's text can tell them."""

from __future__ import annotations

from sevenhop.core.hops.cause import Cause, Strength, table
from sevenhop.core.hops.diagnosis import Category
from sevenhop.core.subject import Hop

_S = Hop.SCHEDULING
_D = Hop.DISCOVERY

_READ_NODES = "Give Sevenhop access to nodes and pods (or add them to the bundle): the text alone cannot tell."

SCHEDULING_TEXT_CAUSES: dict[str, Cause] = table(
    # resource
    Cause(
        "gpu-shortage",
        _S,
        Category.RESOURCE,
        "Too few GPUs are free on the nodes that the pod may use.",
        ("See who holds the GPUs of this pool and which of them ranks lower.", "Add a node or lower the demand."),
    ),
    Cause(
        "gpu-unavailable",
        _S,
        Category.RESOURCE,
        "GPUs are not to be had; whether they are taken, split over nodes or not advertised, the text cannot tell.",
        (
            _READ_NODES,
            (
                "Compare allocatable and requested GPUs of the GPU nodes: `kubectl describe nodes -l "
                "nvidia.com/gpu.present`."
            ),
            "Where allocatable is 0 on a GPU node, look at the device plugin's pod on it.",
        ),
    ),
    Cause(
        "gpu-fragmentation",
        _S,
        Category.RESOURCE,
        "Enough is free in sum, but not on a single node or device.",
        ("Ask for less per pod, or move a smaller pod so that one node or device becomes free.",),
    ),
    Cause(
        "mig-shortage",
        _S,
        Category.RESOURCE,
        "No node has enough free MIG slices of this profile.",
        (
            "List allocatable MIG slices per node.",
            "Check that the profile is configured on any node (`nvidia.com/mig.config`)."),
    ),
    Cause(
        "extended-resource-unknown",
        _S,
        Category.DEVICE_PLUGIN,
        "No node offers a resource of that name in that amount.",
        ("Compare the resource's name with what nodes advertise in `status.allocatable`.",),
    ),
    Cause(
        "extended-resource-shortage",
        _S,
        Category.RESOURCE,
        "Too little of a device other than GPUs (RDMA, EFA, huge pages) is free.",
        ("List allocatable and requested amounts of this resource per node.",),
    ),
    Cause(
        "cpu-shortage",
        _S,
        Category.RESOURCE,
        "No eligible node has enough free CPU.",
        ("Lower `requests.cpu`, or add nodes; GPUs are not what is short.",),
    ),
    Cause(
        "memory-shortage",
        _S,
        Category.RESOURCE,
        "No eligible node has enough free memory.",
        ("Lower `requests.memory`, or add nodes; GPUs are not what is short.",),
    ),
    Cause(
        "ephemeral-storage-shortage",
        _S,
        Category.RESOURCE,
        "No eligible node has enough free ephemeral storage.",
        ("Lower `requests.ephemeral-storage`, or put the model cache on a volume.",),
    ),
    Cause(
        "too-many-pods",
        _S,
        Category.RESOURCE,
        "The eligible nodes hold as many pods as they may.",
        ("Raise the kubelet's `maxPods`, or move small pods off the GPU nodes.",),
    ),
    Cause(
        "resource-combination",
        _S,
        Category.RESOURCE,
        "Each resource is free somewhere, but nowhere all of them.",
        ("Lower the request that binds on the nodes with free GPUs.", _READ_NODES),
    ),
    Cause(
        "no-nodes",
        _S,
        Category.RESOURCE,
        "The cluster has no node at all.",
        ("Look at the node pools and their autoscaler: no node has joined.",),
    ),
    Cause(
        "resource-unnamed",
        _S,
        Category.RESOURCE,
        "The nodes lack a resource that the text does not name.",
        (_READ_NODES,),
    ),
    Cause(
        "rollout-surge",
        _S,
        Category.RESOURCE,
        "The surge pod of a rollout waits for its own old pods.",
        ("Set `maxSurge: 0` and `maxUnavailable: 1`; take nobody else's GPUs.",),
    ),
    # device plugin
    Cause(
        "device-plugin-suspected",
        _D,
        Category.DEVICE_PLUGIN,
        "No node can hold the pod even when it is empty: mostly the device is advertised nowhere, or too few of it.",
        (
            (
                "Look at `status.allocatable` of the GPU nodes; 0 or absent means that the device plugin "
                "does not run there."
            ),
            "Check the device plugin's pods, the container runtime's default runtime and the driver.",
            "If it is advertised, the pod asks for more than any node has, or all are taken.",
        ),
    ),
    Cause(
        "device-plugin-not-advertising",
        _D,
        Category.DEVICE_PLUGIN,
        "A node has GPUs by its labels, and advertises none.",
        ("Look at the device plugin's pod on the node, then at the driver.",),
    ),
    Cause(
        "gpus-unhealthy",
        _D,
        Category.DEVICE_PLUGIN,
        "A node advertises fewer GPUs than it has.",
        ("Look for an XID in the node's kernel log; the device plugin does not take a GPU back by itself.",),
    ),
    Cause(
        "device-sharing-refused",
        _S,
        Category.DEVICE_PLUGIN,
        "The plugin that shares GPUs between pods refuses every node.",
        ("Read the scheduler plugin's log for this pod.", "Compare the request with the free share of single devices."),
    ),
    Cause(
        "device-mode-mismatch",
        _S,
        Category.POLICY,
        "The nodes offer their GPUs in another mode (MIG, DRA) than the pod asks for.",
        ("Ask in the mode of the nodes, or send the pod to nodes of the other mode.",),
    ),
    # policy
    Cause(
        "untolerated-taint",
        _S,
        Category.POLICY,
        "The nodes that could hold the pod carry a taint that it does not tolerate.",
        (
            "Add the toleration to the workload, or remove the taint.",
            "From Kubernetes 1.35 on the text hides the key: see `spec.taints`."),
    ),
    Cause(
        "node-selector",
        _S,
        Category.POLICY,
        "No node carries the labels that the pod selects.",
        ("Compare `spec.nodeSelector` with the labels of the nodes that should take it.",),
    ),
    Cause(
        "node-affinity",
        _S,
        Category.POLICY,
        "No node matches the pod's node selector or required node affinity.",
        ("Compare the selector and affinity with the labels of the nodes that should take it.",),
    ),
    Cause(
        "cordoned",
        _S,
        Category.POLICY,
        "The nodes that could hold the pod are cordoned.",
        ("See who cordoned the node and why; uncordon it if the reason is gone.",),
    ),
    Cause(
        "node-not-ready",
        _S,
        Category.POLICY,
        "The nodes that could hold the pod are not ready, unreachable or under pressure.",
        ("Look at the node's conditions and its kubelet.",),
    ),
    Cause(
        "host-port",
        _S,
        Category.POLICY,
        "The host port that the pod asks for is taken on every eligible node.",
        ("Drop the hostPort, or let the rollout remove the old pod first (`maxSurge: 0`).",),
    ),
    Cause(
        "pod-affinity",
        _S,
        Category.TOPOLOGY,
        "No eligible node is near the pods that the pod must be with.",
        ("Check that the pods it wants to be with run, and that their domain has room.",),
    ),
    Cause(
        "pod-anti-affinity",
        _S,
        Category.TOPOLOGY,
        "Each eligible node already holds a pod that the pod must not be with.",
        ("Make the rule preferred, widen the topology, or add nodes.",),
    ),
    Cause(
        "pod-security",
        _S,
        Category.POLICY,
        "The namespace's Pod Security level forbids the pod.",
        ("Change the security context named in the text, or the namespace's label.",),
    ),
    Cause(
        "admission-denied",
        _S,
        Category.POLICY,
        "An admission webhook or policy refuses the pod.",
        ("Read the webhook's reason; change the template or the policy.",),
    ),
    Cause(
        "pod-rejected",
        _S,
        Category.POLICY,
        "The API server refuses the pod.",
        ("Correct the field named in the text in the workload's template.",),
    ),
    Cause(
        "service-account-missing",
        _S,
        Category.DEPENDENCY,
        "The pod's service account does not exist.",
        ("Create the service account in this namespace, or correct its name.",),
    ),
    # topology
    Cause(
        "topology-spread",
        _S,
        Category.TOPOLOGY,
        "Every eligible node would break the pod's spread over domains.",
        ("Check that the topology key exists as a label on the nodes, then maxSkew and the full domains.",),
    ),
    Cause(
        "volume-zone",
        _S,
        Category.DEPENDENCY,
        "The pod's volume lives in a zone or on a node that the pod cannot use.",
        (
            "Compare the volume's node affinity with the nodes that are eligible; recreate it where the GPUs are.",
        ),
    ),
    Cause(
        "numa-alignment",
        _S,
        Category.TOPOLOGY,
        "No node can give the devices and CPUs from one NUMA node.",
        ("Ask for fewer CPUs per GPU, or relax the topology manager's policy.",),
    ),
    # dependency
    Cause(
        "pvc-unbound",
        _S,
        Category.DEPENDENCY,
        "A volume claim of the pod is not bound.",
        ("`kubectl describe pvc`: its events name the reason (storage class, provisioner, size).",),
    ),
    Cause(
        "pvc-missing",
        _S,
        Category.DEPENDENCY,
        "A volume claim of the pod does not exist, or is being deleted.",
        ("Create the claim, or correct its name in the workload.",),
    ),
    Cause(
        "pv-unavailable",
        _S,
        Category.DEPENDENCY,
        "No volume matches the claim on the nodes that are eligible.",
        ("List volumes of the claim's class, with size, access mode and node affinity.",),
    ),
    Cause(
        "pvc-in-use",
        _S,
        Category.DEPENDENCY,
        "The volume is in use by another pod, and allows only one.",
        ("Use ReadWriteMany or ReadOnlyMany for model weights, or one replica.",),
    ),
    Cause(
        "volume-limit",
        _S,
        Category.DEPENDENCY,
        "The eligible nodes have as many volumes attached as they may.",
        ("Move pods with volumes elsewhere, or use a shared volume for weights.",),
    ),
    Cause(
        "dra-claim-missing",
        _S,
        Category.DEPENDENCY,
        "A resource claim of the pod does not exist yet, or its template is missing.",
        ("Check the ResourceClaim or ResourceClaimTemplate named in the pod.",),
    ),
    Cause(
        "dra-unsatisfiable",
        _S,
        Category.RESOURCE,
        "No node's devices satisfy the pod's resource claims: taken, not matched or not there, the text cannot tell.",
        ("Compare the claim's selectors with the ResourceSlices, and see which claims hold the devices.",),
    ),
    Cause(
        "device-class-missing",
        _S,
        Category.DEPENDENCY,
        "The claim names a device class that does not exist.",
        ("Correct `deviceClassName`, or install the DRA driver.",),
    ),
    Cause(
        "priority-class-missing",
        _S,
        Category.DEPENDENCY,
        "The pod names a PriorityClass that does not exist.",
        ("Create the PriorityClass, or correct its name in the workload.",),
    ),
    # quota
    Cause(
        "resource-quota",
        _S,
        Category.QUOTA,
        "The namespace's ResourceQuota is used up, or demands requests that the pod does not state.",
        ("Raise the quota, or scale something down in this namespace; free GPUs on nodes do not help.",),
    ),
    Cause(
        "quota-needs-requests",
        _S,
        Category.POLICY,
        "The namespace's ResourceQuota demands requests or limits that the pod does not state.",
        ("State the named requests and limits on every container, or add a LimitRange with defaults.",),
    ),
    Cause(
        "limit-range",
        _S,
        Category.QUOTA,
        "The pod is outside what the namespace's LimitRange allows.",
        ("Change requests and limits, or the LimitRange.",),
    ),
    Cause(
        "scheduler-quota",
        _S,
        Category.QUOTA,
        "A scheduler extender's own quota is used up.",
        ("Look at the extender's quota for this namespace.",),
    ),
    Cause(
        "queue-quota",
        _S,
        Category.QUOTA,
        "The queue has reached its limit, or the workload may not go over its quota.",
        ("Raise the queue's quota or limit, or make the workload preemptible so that it may borrow.",),
    ),
    Cause(
        "kueue-exceeds-max",
        _S,
        Category.QUOTA,
        "The workload asks for more than its queue may ever have: it will never be admitted.",
        ("Raise `nominalQuota` or `borrowingLimit`, or shrink the workload.",),
    ),
    # gated
    Cause(
        "scheduling-gate",
        _S,
        Category.GATED,
        "A scheduling gate is set: the scheduler does not look at the pod until somebody lifts it.",
        ("See which controller owns the gate, and what it waits for.",),
    ),
    Cause(
        "other-scheduler",
        _S,
        Category.GATED,
        "The pod names a scheduler that does not answer.",
        ("Check that the scheduler in `spec.schedulerName` runs.",),
    ),
    Cause(
        "kueue-waiting",
        _S,
        Category.GATED,
        "The workload waits in its queue until quota becomes free.",
        ("See its place in the queue, and who uses the quota.", "Nothing is broken unless it waits longer than usual."),
    ),
    Cause(
        "kueue-topology",
        _S,
        Category.TOPOLOGY,
        "No topology domain of the queue's flavors holds the whole workload.",
        ("Ask for a wider topology level, or free a domain (rack, block) of the flavor.",),
    ),
    Cause(
        "queue-misconfigured",
        _S,
        Category.POLICY,
        "The queue does not exist, is inactive, or does not cover what the workload asks for.",
        ("Correct the queue's name, or the queue's flavors and state.",),
    ),
    Cause(
        "queue-waiting",
        _S,
        Category.GATED,
        "The workload waits in the scheduler's queue.",
        ("See who uses the queue's share.",),
    ),
    Cause(
        "gang-waiting",
        _S,
        Category.GATED,
        "The group may only start together, and cannot yet.",
        ("Find the member that cannot be placed or created: its reason is the group's reason.",),
    ),
    Cause(
        "gang-pods-missing",
        _S,
        Category.DEPENDENCY,
        "The group has no pods yet: creating them is what fails.",
        ("Look at the owner's FailedCreate events: quota, admission, service account.",),
    ),
    Cause(
        "gang-unexplained",
        _S,
        Category.UNKNOWN,
        "The group cannot be placed, and the text does not say why.",
        ("Read the members' own conditions, or the scheduler's log for the group.",),
        Strength.UNEXPLAINED,
    ),
    # autoscaler
    Cause(
        "autoscaler-adding",
        _S,
        Category.AUTOSCALER,
        "A new node is on its way.",
        ("Wait for the node; look at the cloud if it does not come within its usual time.",),
    ),
    Cause(
        "autoscaler-maxed",
        _S,
        Category.AUTOSCALER,
        "The autoscaler may not add more nodes of this kind.",
        ("Raise the group's maximum or the pool's limits.",),
    ),
    Cause(
        "autoscaler-backoff",
        _S,
        Category.AUTOSCALER,
        "The cloud did not give nodes, so the autoscaler pauses.",
        (
            "Look for stock-out or cloud quota in the autoscaler's status and events.",
            "Try another zone or GPU product."),
    ),
    Cause(
        "autoscaler-no-template",
        _S,
        Category.AUTOSCALER,
        "A new node of any group would not offer what the pod asks for, as far as the autoscaler knows.",
        ("Tag the node group with its GPU capacity and labels, so that a group of zero nodes can be simulated.",),
    ),
    Cause(
        "autoscaler-other",
        _S,
        Category.AUTOSCALER,
        "The autoscaler does not add a node, and its text does not say why.",
        ("Look at the group's maximum first, then at the autoscaler's log for this pod.",),
    ),
    Cause(
        "scheduler-text-unread",
        _S,
        Category.UNKNOWN,
        "The scheduler gives a reason that Sevenhop does not know.",
        ("Read the scheduler's own words, and compare the pod with a node that should take it.",),
        Strength.UNEXPLAINED,
    ),
)  # fmt: skip
"""Slug to row; rows with a name of the computed table say what the text can tell, which may be less."""
