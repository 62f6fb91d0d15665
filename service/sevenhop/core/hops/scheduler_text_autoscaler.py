"""What cluster-autoscaler and Karpenter say about a pod that waits."""

from __future__ import annotations

import re

from sevenhop.core.hops.scheduler_text_message import SchedulerMessage, read_counts
from sevenhop.core.hops.scheduler_text_queues import Verdict
from sevenhop.core.hops.scheduler_text_reasons import Reason, binding, is_gpu, read_reason
from sevenhop.core.words import counted

_NO_SCALE_UP = re.compile(
    r"pod didn'?t trigger scale-?up(?P<old>\s*\(it wouldn'?t fit if a new node is added\))?\s*:?\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_LOG_LINE = re.compile(
    r"can'?t be scheduled on (?P<group>[^\s,]{1,253}), predicate checking error:"
    r"\s*(?P<reason>.{0,600}?)(?:; predicateName|$)",
    re.IGNORECASE | re.DOTALL,
)
_ADDING = re.compile(
    r"pod triggered scale-?up|triggeredscaleup|scaled?-?up: .{0,300}(?:group|size)|pod should schedule on"
    r"|scale-up: (?:setting )?group|launched? nodeclaim|waiting for .{0,300}nodeclaim",
    re.IGNORECASE,
)
_MAXED = re.compile(
    r"max node group size reached|max total nodes in cluster reached|max limit reached"
    r"|exceeded quota:? \"[^\"]*\", resources"
    r"|exceed(?:s|ed)? limits? for nodepool|node limits? (?:have|has) been exhausted|nodepool .{0,300}limits? exceed"
    r"|max (?:cluster )?(?:cpu|memory|gpu|nodes?|\w+) limit",
    re.IGNORECASE,
)
_BACKOFF = re.compile(
    r"(?:node )?scale[- ]?up\b.{0,200}\bfailed\b|gce (?:quota exceeded|out of resources)|insufficient\w*capacity"
    r"|do not have sufficient \S{1,100} capacity|in backoff after failed scale-?up|backed off"
    r"|failed to (?:scale|increase).{0,300}(?:group|size)|failedtoscaleup"
    r"|insufficient ?(?:instance)? ?capacity|out of stock|stock-?out|no capacity available|unfulfillablecapacity"
    r"|\boperationnotallowed\b|\bskus? (?:are|is) unavailable|skunotavailable|allocationfailed"
    r"|zone_resource_pool_exhausted|quota_exceeded|vcpulimitexceeded|insufficientcapacityerror"
    # Quotas of clouds: Azure's per family, Google's per metric.
    r"|not (?:have )?enough resources available to fulfill|\bcapacity is not found\b|reservationcapacityexceeded"
    r"|maxspotinstancecountexceeded|sufficient compatible and available capacity"
    r"|exceeding approved .{0,80}cores quota|quota '[A-Z0-9_-]+' exceeded|\bnode ?claim.{0,100}\bquota exceeded",
    re.IGNORECASE,
)
_NOT_READY = re.compile(
    r"not ready for scale-?up|all-or-nothing strategy|cluster ?autoscaler .{0,300}(?:not ready|unhealthy)",
    re.IGNORECASE,
)

_KARPENTER = re.compile(
    r"incompatible with nodepool|incompatible with provisioner|did not tolerate|no instance type|no nodepool|"
    r"nodepools? .{0,300}(?:exist|match|found)|unsatisfiable topology|incompatible requirements"
    r"|does not have known values|filtered out all .{0,40}instance types",
    re.IGNORECASE,
)
# Requirements and overhead contain commas, braces and quotes: only this separates one pool from the next.
_POOLS = re.compile(r";\s+(?=incompatible with|did not tolerate|no instance type|all available|node limits)")
_KARPENTER_TAINT = re.compile(r"did not tolerate (?:taint \(taint=)?([^\s;)]{1,253})")


def read_autoscaler(text: str) -> Verdict | None:
    """
    Events of cluster-autoscaler (counts are node *groups*, in random order) and of Karpenter.

    Only a cap, a refusal by the cloud and a missing template are the autoscaler's own; what a new node's selector or
    taint would refuse is policy, as it is for a node that exists.
    """
    line = _LOG_LINE.search(text)
    if line:
        return _log_line(line["group"], read_reason(line["reason"].strip()))
    head = _NO_SCALE_UP.search(text)
    if head:
        return _no_scale_up(head["rest"].strip())
    if _ADDING.search(text):
        return "autoscaler-adding", "A new node is on its way for this pod"
    if _MAXED.search(text):
        return "autoscaler-maxed", "The autoscaler may not add more nodes of this kind"
    if _BACKOFF.search(text):
        return "autoscaler-backoff", "The cloud did not give nodes, so the autoscaler pauses"
    if _NOT_READY.search(text):
        return "autoscaler-other", "The autoscaler is not ready to add nodes"
    if _KARPENTER.search(text):
        return _karpenter(text)
    return None


def _no_scale_up(rest: str) -> Verdict:
    # A cap or a back-off hits a group that passed everything else: the only ones that would have helped.
    maxed, backoff = _MAXED.search(rest), _BACKOFF.search(rest)
    if backoff:
        return "autoscaler-backoff", "The node groups that would help are in back-off: the cloud gave no nodes"
    if maxed:
        return "autoscaler-maxed", f"The node groups that would help may not grow: {maxed[0]}"
    counts: dict[str, int | None] = dict(read_counts(rest))
    if not counts and rest.strip(" ."):
        counts = {rest.strip(" ."): None}
    found = binding(SchedulerMessage(total_nodes=None, counts=counts)) if counts else None
    if found is None or _NOT_READY.search(rest):
        return "autoscaler-other", "The autoscaler adds no node and does not say why; mostly a group is at its maximum"
    if found.reason.resource:
        return _template(found.reason)
    groups = "" if found.reason.nodes is None else f" ({counted(found.reason.nodes, 'group')})"
    return found.cause, f"No node group that could be added fits{groups}: {found.reason.text}"


def _template(reason: Reason) -> Verdict:
    return (
        "autoscaler-no-template",
        f"As far as the autoscaler knows, no new node would offer enough {reason.resource}",
    )


def _log_line(group: str, reason: Reason) -> Verdict:
    if reason.resource and ("/" in reason.resource or is_gpu(reason.resource)):
        return "device-plugin-suspected", f"A new node of {group} would not offer {reason.resource}"
    if not reason.cause:
        return "autoscaler-other", f"A new node of {group} would not take the pod"
    return reason.cause, f"A new node of {group} would not take the pod: {reason.text}"


def _karpenter(text: str) -> Verdict:
    pools = _POOLS.split(text)
    found = [verdict for verdict in map(_karpenter_pool, pools) if verdict]
    order = (
        "pod-affinity",
        "pod-anti-affinity",
        "topology-spread",
        "volume-zone",
        "untolerated-taint",
        "node-affinity",
    )
    for cause in order:
        said = [summary for slug, summary in found if slug == cause]
        if said:
            return cause, said[0]
    return found[0] if found else ("autoscaler-other", "Karpenter adds no node for this pod")


def _karpenter_pool(text: str) -> Verdict | None:
    lowered = text.lower()
    if "unsatisfiable topology" in lowered:
        cause = "pod-anti-affinity" if "anti-affinity" in lowered else "topology-spread"
        cause = "pod-affinity" if "for pod affinity" in lowered else cause
        return cause, "No new node would satisfy the pod's placement relative to other pods"
    taint = _KARPENTER_TAINT.search(text)
    if taint:
        return "untolerated-taint", f"New nodes would carry the taint {taint[1]}, which the pod does not tolerate"
    if "volume" in lowered and "zone" in lowered:
        return "volume-zone", "No new node would be in the zone of the pod's volume"
    if "enough resources" in lowered or "filtered out all" in lowered:
        return "autoscaler-no-template", "No instance type that Karpenter may use is big enough"
    if "required offering" in lowered:
        return "autoscaler-backoff", "No instance type that fits is on offer in the allowed zones and capacity types"
    if "requirements" in lowered or "known values" in lowered or "instance type met" in lowered:
        label = re.search(r'label "([^"]+)"', text)
        said = f" (label {label[1]})" if label else ""
        return "node-affinity", f"No pool makes nodes that the pod's selector and affinity accept{said}"
    return None
