"""
What one reason in a scheduler's text means, and which of several reasons binds.

The same words come from kube-scheduler, from cluster-autoscaler's simulation, from KAI and from Volcano, so they are
read in one place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import lru_cache

import msgspec

from sevenhop.core.hops.scheduler_text_message import Preemption, SchedulerMessage
from sevenhop.core.words import counted, inflected


class Stage(IntEnum):
    """
    Order in which the default scheduler filters.

    A node gives the reason of the first filter that refuses it, so a node that is refused late has passed what comes
    before: the latest stage in a message binds.
    """

    UNREAD = 0
    NODE_HEALTH = 1
    CORDON = 2
    TAINT = 3
    SELECTOR = 4
    PORTS = 5
    RESOURCES = 6
    VOLUMES = 7
    SPREAD = 8
    POD_AFFINITY = 9
    CLUSTER = 10  # one reason for the whole cluster, before any node is looked at


class Reason(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One reason of a message.

    Attributes:
        text: As written.
        nodes: None where it speaks for the whole cluster.
        cause: Slug; empty if the words are not known.
        resource: What is insufficient; empty for other causes.
        detail: The taint's key and value, the claim's name, …
    """

    text: str
    nodes: int | None
    stage: Stage
    cause: str
    resource: str = ""
    detail: str = ""


_WORDS: tuple[tuple[str, Stage, str], ...] = (
    # One reason for the whole cluster (PreFilter, PreEnqueue)
    (r"unbound immediate persistentvolumeclaim", Stage.CLUSTER, "pvc-unbound"),
    (r"persistentvolumeclaims? .{0,300}(?:not found|being deleted|does not exist)", Stage.CLUSTER, "pvc-missing"),
    (r"could not find (?:v1\.)?persistentvolumeclaim\b", Stage.CLUSTER, "pvc-missing"),
    (r"binding volumes|volumebinding", Stage.VOLUMES, "pvc-unbound"),
    (r"waiting for ephemeral volume controller", Stage.CLUSTER, "pvc-unbound"),
    (r"non-?existent (?:pv|persistentvolume)|persistentvolume .{0,300}not found", Stage.VOLUMES, "pv-unavailable"),
    (r"(?:device|resource) ?class \S{1,253} (?:does not exist|not found)", Stage.CLUSTER, "device-class-missing"),
    (r"deviceclass\S{0,120} .{0,300}not found", Stage.CLUSTER, "device-class-missing"),
    (
        r"resource ?claim(?:template)?\S{0,120} .{0,300}not found|waiting for .{0,300}creat\w* .{0,20}resource ?claim",
        Stage.CLUSTER,
        "dra-claim-missing",
    ),
    (
        r"resource ?claim\S{0,120} .{0,300}(?:not been created|being deleted|must be created|to be created)",
        Stage.CLUSTER,
        "dra-claim-missing",
    ),
    (
        r"cannot allocate|unallocated .{0,300}resource ?claim|resource ?claim.{0,300} in use",
        Stage.VOLUMES,
        "dra-unsatisfiable",
    ),
    (
        r"cel runtime error|trying to allocate devices|\brequest \S{1,253}: (?:selector|asks for)",
        Stage.VOLUMES,
        "dra-unsatisfiable",
    ),
    (
        r"\b(?:devices?|claims?) .{0,300}(?:exceeds? the|binding (?:timeout|condit))",
        Stage.VOLUMES,
        "dra-unsatisfiable",
    ),
    (
        r"resource ?claim.{0,300}(?:not available|not allocat|to be allocat|reserved)",
        Stage.VOLUMES,
        "dra-unsatisfiable",
    ),
    (r"storageclass\S{0,120} .{0,300}not found", Stage.CLUSTER, "pvc-unbound"),
    (
        r"mincount|mingang|minmember|\bgang\b|pod ?group|co-?scheduling|sibling pods|optimistic rejection",
        Stage.CLUSTER,
        "gang-waiting",
    ),
    (r"scheduling ?gate", Stage.CLUSTER, "scheduling-gate"),
    (r"no priorityclass", Stage.CLUSTER, "priority-class-missing"),
    # Volumes
    (
        r"readwriteoncepod|already in-?use|had no available disk|conflicts? with .{0,300}volume",
        Stage.VOLUMES,
        "pvc-in-use",
    ),
    (r"max ?volume ?count|too many volumes|csi.{0,300}max", Stage.VOLUMES, "volume-limit"),
    (r"volume node affinity conflict|persistentvolume'?s? node affinity", Stage.VOLUMES, "volume-zone"),
    (r"volume ?zone", Stage.VOLUMES, "volume-zone"),
    (r"available persistent ?volumes? to bind|enough free storage", Stage.VOLUMES, "pv-unavailable"),
    # Topology and other pods
    (r"topology spread|podtopologyspread", Stage.SPREAD, "topology-spread"),
    (r"numa|cannot align|topology manager|topology affinity", Stage.RESOURCES, "numa-alignment"),
    (r"pod affinity/anti-affinity", Stage.POD_AFFINITY, "pod-affinity"),
    (r"anti-?affinity", Stage.POD_AFFINITY, "pod-anti-affinity"),
    (r"pod affinity|interpodaffinity|podaffinity", Stage.POD_AFFINITY, "pod-affinity"),
    (r"free ports|host ?port|nodeports|podfitshostports", Stage.PORTS, "host-port"),
    # The node itself
    (r"\bunschedulable\b|nodeunschedulable|cordon", Stage.CORDON, "cordoned"),
    (r"not[ -]?ready\b|(?:disk|memory|pid)[ -]pressure|network[ -]unavailable", Stage.NODE_HEALTH, "node-not-ready"),
    (r"\bwere unknown|out of disk|node .{0,300}unreachable|nodecondition", Stage.NODE_HEALTH, "node-not-ready"),
    (r"taint|toleratesnode|did not tolerate", Stage.TAINT, "untolerated-taint"),
    (r"node selector|requested (?:hostname|node name)|matchnodeselector|hostname$", Stage.SELECTOR, "node-selector"),
    (r"node affinity|nodeaffinity|node ?label", Stage.SELECTOR, "node-affinity"),
    # The pod names its nodes (a DaemonSet's, a local volume's): the others are not even looked at.
    (r"filtered out by the prefilter", Stage.SELECTOR, "node-affinity"),
    # Devices and quotas of scheduler extenders
    (r"quota", Stage.RESOURCES, "scheduler-quota"),
    (r"(?:memory|resource)s? in (?:one|a single) (?:device|gpu|card)", Stage.RESOURCES, "gpu-fragmentation"),
    (r"mig profile", Stage.RESOURCES, "mig-shortage"),
    (r"non-mig node|dra-only node", Stage.RESOURCES, "device-mode-mismatch"),
    (r"too many pods|insufficient pods\b", Stage.RESOURCES, "too-many-pods"),
    (r"resource fit failed|noderesources", Stage.RESOURCES, "resource-unnamed"),
    (
        r"vgpu|gpu ?share|device ?shar|card[a-z]* ?(?:insuff|type|mem|uuid|not)",
        Stage.RESOURCES,
        "device-sharing-refused",
    ),
    (
        r"nodeunfit|node ?unregistered|node scores do not meet|filteringfailed",
        Stage.RESOURCES,
        "device-sharing-refused",
    ),
)
_TABLE = tuple((re.compile(pattern, re.IGNORECASE), stage, cause) for pattern, stage, cause in _WORDS)

_INSUFFICIENT = re.compile(
    r"(?:insufficient|(?:have|had) enough resources?:|enough of mig profile:|not enough)\s+"
    r"(?P<resource>[^\s,;]{1,253})",
    re.IGNORECASE,
)
_TAINT = re.compile(
    r"taint\s*\{(?P<taint>[^}]*)\}|(?:tolerate|taint=)\s*(?:taint\s*\(taint=)?(?P<bare>[\w./-]+(?:=[\w./-]*)?:\w+)"
)
_PLUGINS = re.compile(r"satisfy plugin\(s\) \[(?P<names>[^\]]*)\]")

_GPU_WORDS = re.compile(
    r"gpu|nvidia|amd\.com|habana|gaudi|\bxpu\b|\bnpu\b|\btpu\b|neuron|ascend|\bmig-|mlu|dcu", re.IGNORECASE
)
_WHOLE_DEVICE = re.compile(
    r"\.com/gpu$|^gpus?$|/(?:tpu|gaudi|neuron(?:device|core)?|npu|ascend\w*|i915|xe)$", re.IGNORECASE
)
_CONTROL_PLANE = re.compile(r"control-?plane|node-role\.kubernetes\.io/(?:master|etcd)|role/master", re.IGNORECASE)
_OF_OTHERS = re.compile(rf"{_CONTROL_PLANE.pattern}|filtered out by the prefilter", re.IGNORECASE)
"""Nodes that were never meant."""

_HEALTH_TAINT = re.compile(
    r"not-?ready|unreachable|pressure|network-unavailable|out-of-disk|out-of-service"
    r"|cloudprovider\.kubernetes\.io/uninitialized",
    re.IGNORECASE,
)
_RESOURCE_CAUSES = {
    "cpu": "cpu-shortage",
    "memory": "memory-shortage",
    "ephemeral-storage": "ephemeral-storage-shortage",
    "pods": "too-many-pods",
}
_OFTEN_SAID = (
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't match pod topology spread constraints",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) didn't have free ports for the requested pod ports",
    "node(s) did not have enough free storage",
    "node(s) had untolerated taint",
    "node(s) had volume node affinity conflict",
    "node(s) had no available volume zone",
    "node(s) exceed max volume count",
    "node(s) were unschedulable",
    "cannot allocate all claims",
)
"""What the default scheduler says of nodes, to know one that was cut off in the middle."""

_LEAST_CUT = len("node(s) had v")
_OFTEN_ASKED = (*_RESOURCE_CAUSES, "nvidia.com/gpu", "amd.com/gpu")
_POLICY = frozenset({"cordoned", "node-not-ready", "untolerated-taint", "node-selector", "node-affinity"})
_GPU_CAUSES = frozenset({"gpu-unavailable", "mig-shortage"})


def is_gpu(resource: str) -> bool:
    """
    Whether a resource name or taint speaks of accelerators.

    >>> is_gpu("nvidia.com/gpu"), is_gpu("aliyun.com/gpu-mem"), is_gpu("rdma/shared_mlx5")
    (True, True, False)
    """
    return bool(_GPU_WORDS.search(resource))


@lru_cache(maxsize=4096)
def read_reason(text: str, nodes: int | None = None) -> Reason:
    """
    What one reason means; its cause is empty if the words are not known.

    Remembered: thousands of pods that wait are told the same few.

    >>> read_reason("Insufficient nvidia.com/gpu", 3).resource
    'nvidia.com/gpu'
    """
    plugins = _PLUGINS.search(text)
    insufficient = None if plugins else _INSUFFICIENT.search(text)
    stage, cause = _look_up(plugins["names"] if plugins else text)
    if insufficient and cause not in ("gpu-fragmentation", "scheduler-quota", "dra-unsatisfiable"):
        resource = _whole(insufficient["resource"].strip(".\"'`"))
        return Reason(text=text, nodes=nodes, stage=Stage.RESOURCES, cause=_of_resource(resource), resource=resource)
    detail = ""
    if cause == "untolerated-taint":
        taint = _TAINT.search(text)
        detail = ((taint["taint"] or taint["bare"] or "") if taint else "").strip().rstrip(":").strip()
        if _HEALTH_TAINT.search(detail):
            stage, cause = Stage.NODE_HEALTH, "node-not-ready"
        elif "unschedulable" in detail:
            stage, cause = Stage.CORDON, "cordoned"
    elif cause == "node-not-ready" and "taint" in text.lower():
        taint = _TAINT.search(text)
        detail = (taint["taint"] or "").strip().rstrip(":") if taint else ""
    elif cause == "cordoned" and "taint" in text.lower():
        detail = "node.kubernetes.io/unschedulable"
    return Reason(text=text, nodes=nodes, stage=stage, cause=cause, detail=detail)


def read_reasons(counts: Mapping[str, int | None]) -> tuple[Reason, ...]:
    """Every reason of a message, in the order of the text."""
    return tuple(read_reason(text, nodes) for text, nodes in counts.items())


class Binding(msgspec.Struct, frozen=True, gc=False):
    """The reason that binds, its cause after weighing it against the others, and why it was chosen."""

    reason: Reason
    cause: str
    why: str = ""


def binding(message: SchedulerMessage) -> Binding | None:
    """
    Which of the reasons keeps the pod from running.

    Returns:
        None if no reason could be read, or one that could not holds more nodes than all others together.
    """
    reasons = read_reasons(message.counts)
    known = [reason for reason in reasons if reason.cause]
    if not known or _outweighed(unread(reasons), known):
        return None
    last = max(reason.stage for reason in known)
    candidates = [reason for reason in known if reason.stage == last]
    if last is Stage.RESOURCES:
        return _among_resources(candidates, known, message)
    if last <= Stage.SELECTOR:
        return _among_policies(known)
    return Binding(_largest(candidates), _largest(candidates).cause)


def unread(reasons: Iterable[Reason]) -> list[Reason]:
    """Those whose words are not known, the one of most nodes first."""
    return sorted((r for r in reasons if not r.cause), key=lambda r: -(r.nodes or 0))


def _outweighed(strange: list[Reason], known: list[Reason]) -> bool:
    speaks_for_all = any(reason.nodes is None for reason in known)
    return bool(strange) and not speaks_for_all and (strange[0].nodes or 0) > sum(r.nodes or 0 for r in known)


def _look_up(text: str) -> tuple[Stage, str]:
    found = next(((stage, cause) for pattern, stage, cause in _TABLE if pattern.search(text)), None)
    if found is None and len(text) >= _LEAST_CUT:
        whole = {_look_up(reason) for reason in _OFTEN_SAID if reason.startswith(text) and reason != text}
        found = whole.pop() if len(whole) == 1 else None
    return found or (Stage.UNREAD, "")


def _whole(resource: str) -> str:
    """An Event's text is cut at 1024 bytes, in the middle of a word: ``nvid`` can only be one that is often asked."""
    names = [name for name in _OFTEN_ASKED if len(resource) > 1 and name.startswith(resource)]
    return names[0] if len(names) == 1 else resource


def _of_resource(resource: str) -> str:
    plain = resource.lower().rstrip("s") if resource.lower() in ("gpus", "cpus") else resource.lower()
    if plain in _RESOURCE_CAUSES:
        return _RESOURCE_CAUSES[plain]
    if "mig-" in plain:
        return "mig-shortage"
    if is_gpu(plain):
        return "gpu-unavailable"
    if "/" in plain or plain.startswith("hugepages"):
        return "extended-resource-shortage"
    return "resource-unnamed"


def _largest(reasons: list[Reason]) -> Reason:
    """Up to 1.21 a node says "affinity/anti-affinity" first, and then which of the two."""
    return max(reasons, key=lambda reason: ("affinity/anti-affinity" not in reason.text, reason.nodes or 0))


def _among_policies(reasons: list[Reason]) -> Binding:
    """Selector, taint, cordon, health: each excludes other nodes; the one that hides GPU nodes, else most, binds."""
    policies = [r for r in reasons if r.stage <= Stage.SELECTOR]
    # Control-plane nodes are tainted everywhere: that is never why a model waits, unless there is no other node.
    relevant = [r for r in policies if not _CONTROL_PLANE.search(r.detail or r.text)] or policies
    gpu_taints = [r for r in relevant if r.cause == "untolerated-taint" and is_gpu(r.detail)]
    if gpu_taints:
        chosen = _largest(gpu_taints)
        return Binding(chosen, chosen.cause, "the taint keeps the pod off the GPU nodes")
    # A node refused by its selector has passed the taints, but is usually just not one of those meant.
    chosen = max(relevant, key=lambda r: (r.nodes or 0, -r.stage))
    return Binding(chosen, chosen.cause)


def _among_resources(short: list[Reason], known: list[Reason], message: SchedulerMessage) -> Binding:
    policies = [r for r in known if r.cause in _POLICY and not _OF_OTHERS.search(r.detail or r.text)]
    gpu = [r for r in short if r.cause in _GPU_CAUSES]
    other = [r for r in short if r.cause not in _GPU_CAUSES]
    busy = _busy_nodes(message)
    if other:
        return _other_resource(other, gpu, policies, message, busy)

    chosen = _largest(gpu)
    nodes = chosen.nodes or 0
    cordoned = [r for r in policies if r.cause == "cordoned"]
    tainted = [r for r in policies if r.cause in ("untolerated-taint", "node-not-ready")]
    hidden = [r for r in tainted if is_gpu(r.detail)]
    if busy == 0 or busy is None:
        # Nodes that lack GPUs may simply be CPU nodes; those that are excluded are then the ones that matter.
        if cordoned or hidden:
            policy = _largest(hidden or cordoned)
            return Binding(policy, policy.cause, "the nodes that lack GPUs may be CPU nodes")
        if tainted and (busy == 0 or (_largest(tainted).nodes or 0) >= nodes):
            policy = _largest(tainted)
            return Binding(policy, policy.cause, "the nodes that lack GPUs may be CPU nodes")
    return Binding(chosen, _gpu_cause(chosen, message, busy))


def _other_resource(
    other: list[Reason], gpu: list[Reason], policies: list[Reason], message: SchedulerMessage, busy: int | None
) -> Binding:
    chosen = _largest(other)
    nodes = chosen.nodes or 0
    total = message.total_nodes or 0
    hidden = [r for r in policies if r.cause == "untolerated-taint" and is_gpu(r.detail)]
    if hidden and not gpu:
        policy = _among_policies(policies).reason
        unhealthy = [r for r in policies if r.cause == "node-not-ready"]
        if sum(r.nodes or 0 for r in unhealthy) > (policy.nodes or 0):
            policy = _largest(unhealthy)
        return Binding(policy, policy.cause, "the nodes that passed are not the GPU nodes")
    if policies and total >= 10 and nodes * 20 <= total:
        policy = _largest(policies)
        them = inflected(nodes, "passes, and it is hardly the one", "pass, and they are hardly those")
        return Binding(policy, policy.cause, f"only {nodes} of {counted(total, 'node')} {them} meant")
    if gpu and busy is not None and busy >= sum(r.nodes or 0 for r in (*other, *gpu)):
        return Binding(chosen, "resource-combination", "each node lacks another resource, and each is big enough")
    cause = chosen.cause
    if cause == "extended-resource-shortage" and "/" in chosen.resource and total and nodes >= total:
        cause = "device-plugin-suspected"
    return Binding(chosen, cause)


def _gpu_cause(reason: Reason, message: SchedulerMessage, busy: int | None) -> str:
    if reason.cause == "mig-shortage":
        return "extended-resource-unknown" if busy == 0 else "mig-shortage"
    total = message.total_nodes or 0
    everywhere = bool(total) and (reason.nodes or 0) >= total
    if busy is not None:
        # Busy nodes do not prove a shortage either: a later filter, which nobody has asked yet, may refuse them too.
        return "device-plugin-suspected" if busy == 0 else "gpu-unavailable"
    plain = bool(_WHOLE_DEVICE.search(reason.resource))
    # A single node without the device, or a shared-GPU resource that no node has: mostly nobody advertises it.
    return "device-plugin-suspected" if everywhere and (total == 1 or not plain) else "gpu-unavailable"


def _busy_nodes(message: SchedulerMessage) -> int | None:
    """
    Nodes that are big enough but busy; None where the text cannot tell.

    Only newer schedulers call a node that could never hold the pod unresolvable; they are known by their other words.
    """
    preemption: Preemption | None = message.preemption
    if preemption is None or preemption.not_eligible or not message.recent:
        return None
    if not (preemption.no_victims or preemption.not_helpful):
        return None
    return preemption.no_victims
