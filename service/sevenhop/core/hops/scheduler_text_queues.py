"""What Kueue, KAI, Volcano, Grove and gates say about a group of pods that waits."""

from __future__ import annotations

import re

from sevenhop.core.hops.scheduler_text_message import SchedulerMessage, read_counts
from sevenhop.core.hops.scheduler_text_reasons import binding, read_reason
from sevenhop.core.words import counted, inflected

Verdict = tuple[str, str]
"""(cause, summary)"""

_GATE = re.compile(
    r"^\W*scheduling ?gated\b|non-empty scheduling gates|is blocked due to .{0,300}gates?\b", re.IGNORECASE
)

_KUEUE_NEEDS = re.compile(
    r"insufficient unused quota for (?P<resource>\S{1,253}) in flavor (?P<flavor>[^\s,]{1,253}),"
    r" (?P<more>\S{1,253}) more needed",
    re.IGNORECASE,
)
_KUEUE_MAX = re.compile(
    r"insufficient quota for (?P<resource>\S{1,253}) in flavor (?P<flavor>[^\s,]{1,253}),"
    r"[^>]{0,300}?> maximum capacity \((?P<numbers>[^)]*)\)",
    re.IGNORECASE,
)
_KUEUE_CONFIG = re.compile(
    r"(?:local|cluster) ?queue \S{1,253} (?:doesn'?t exist|does not exist|not found)"
    r"|(?:local|cluster) ?queue \S{1,253} is (?:inactive|stopped|not active)"
    r"|(?:local|cluster) ?queue (?:doesn'?t|does not) exist"
    r"|resource \S{1,253} unavailable in cluster ?queue|flavor \S{1,253} (?:not found|doesn'?t exist|does not exist)"
    r"|queue ?does ?not ?exist|untolerated taint .{0,120} in flavor|flavor .{0,120}(?:doesn'?t|does not) match"
    r"|workload is (?:deactivated|inactive|stopped)|no (?:matching )?flavors?\b"
    r"|can'?t admit new workloads|flavor\(?s?\)? that aren'?t found|flavor ?not ?found"
    r"|flavor \S{1,253} does not support"
    r"|\bqueue ['\"]?[\w.-]{1,253}['\"]? (?:was )?(?:not found|(?:does not|doesn'?t) exist)",
    re.IGNORECASE,
)
_KUEUE_TOPOLOGY = re.compile(
    r"no topology domains at level|does not contain the requested level"
    r"|topology \S{1,253} (?:doesn'?t|does not) allow|topology \S{1,253} allows to fit|topologyplacementfailed",
    re.IGNORECASE,
)
_KUEUE = re.compile(
    r"couldn'?t assign flavors|waiting for (?:\w+ )?quota|cluster ?queue is full|workload didn'?t fit"
    r"|(?:pending|waiting for) the preemption of|waiting ?for ?preempted ?workloads"
    r"|waiting for all (?:admitted )?workloads|exceeded the podsready timeout|admission ?checks?\b"
    r"|preempted to accommodate a workload|no longer fits after|reclaim within|podsreadytimeout"
    r"|pods? ready.{0,300}(?:admit|evict)|no quota reserved|waiting for all pods to be ready",
    re.IGNORECASE,
)

_KAI_QUOTA = re.compile(
    r"requested .{1,80}, but .{1,120} quota is|queue .{0,80}has reached its .{0,20}limit"
    r"|non-?preemptible ?over ?quota|over ?limit\b|workload is over quota|reached the allowable limit"
    r"|over quota|elastic ?quota .{0,300}more than (?:max|min)",
    re.IGNORECASE,
)
_KAI = re.compile(r"resources were not found for|no nodes with enough resources|node-group\(s\) didn'?t", re.IGNORECASE)
_KAI_REASON = re.compile(
    r"(\d{1,7})\s+((?:node(?:-group)?\(s\)|cannot allocate|Insufficient )[^\n]*?)(?=\.?\s*\n|\.\s+\d{1,7}\s|\.?\s*$)"
)

_VOLCANO_GANG = re.compile(r"(?P<min>\d{1,7})/(?P<have>\d{1,7}) tasks? in gang unschedulable", re.IGNORECASE)
_VOLCANO_QUEUE = re.compile(
    r"resource in cluster is overused|queue resource quota insufficient|queue .{0,300}(?:overused|not open|is closed)"
    r"|does(?:n'?t| not) fit (?:in|into) queue|queue .{0,60}(?:resource )?limit (?:reached|exceeded)"
    r"|insufficient .{0,300} in queue|exceeds? (?:the )?queue'?s? (?:capability|deserved)",
    re.IGNORECASE,
)
_GANG = re.compile(
    r"insufficient scheduled pods|min(?:imum)? ?count|min ?(?:gang|member|available)\b|\bgang\b"
    r"|pod ?(?:group|gang|clique)\b|co-?scheduling|waiting for .{0,300} pods? (?:from|of) (?:a|the) group"
    r"|can possibly be assigned to"
    r"|below (?:its )?min(?:imum)? ?(?:member|available)|sibling pods|rejected while waiting on permit",
    re.IGNORECASE,
)
_LEAST, _RUN = re.compile(r"\b(\d{1,7}) minAvailable\b"), re.compile(r"\b(\d{1,7}) Running\b")
_EXPECTED = re.compile(r"expected at least:?\s*(\d{1,7}),?\s*found:?\s*(\d{1,7})", re.IGNORECASE)


def read_gate(text: str) -> Verdict | None:
    """``SchedulingGated``, as condition reason or in words."""
    if not _GATE.search(text):
        return None
    names = re.search(r"gates?:?\s*\[([^\]]+)\]", text)
    which = f" ({names[1]})" if names else ""
    return "scheduling-gate", f"A scheduling gate{which} holds the pod back; the scheduler has not looked at it"


def read_kueue(text: str) -> Verdict | None:
    """Condition ``QuotaReserved`` of a Kueue Workload.  "N more needed" passes by itself, "maximum capacity" never."""
    config = _KUEUE_CONFIG.search(text)
    needs = list(_KUEUE_NEEDS.finditer(text))
    never = list(_KUEUE_MAX.finditer(text))
    # One flavor that may become free is enough: the workload goes there.
    if needs:
        said = ", ".join(f"{n['more']} more {n['resource']} in flavor {n['flavor']}" for n in needs[:3])
        return "kueue-waiting", f"The queue's quota is in use; needs {said}"
    if never:
        said = ", ".join(f"{n['resource']} in flavor {n['flavor']} ({n['numbers']})" for n in never[:3])
        return "kueue-exceeds-max", f"Asks for more than the queue may ever have: {said}"
    if config:
        return "queue-misconfigured", f"The queue cannot take the workload: {config[0]}"
    if _KUEUE_TOPOLOGY.search(text):
        return "kueue-topology", "The queue's flavors have no topology domain that holds the whole workload"
    if re.search(r"maximum capacity|\bExceedsMaxQuota\b", text, re.IGNORECASE):
        return "kueue-exceeds-max", "Asks for more than the queue may ever have"
    if _KUEUE.search(text):
        return "kueue-waiting", "Waits in the queue for quota"
    return None


def read_kai(text: str) -> Verdict | None:
    """KAI's fit errors on a PodGroup or pod: quota of its queue, or "N node(s) didn't have enough resources: …"."""
    if _KAI_QUOTA.search(text):
        limit = re.search(r"(?:limit|quota) is (\S{1,253}) (\w+)", text, re.IGNORECASE)
        said = f" ({limit[1]} {limit[2]})" if limit else ""
        return "queue-quota", f"The queue has reached what it may use{said}; free GPUs on nodes do not help"
    if not _KAI.search(text) and "didn't have enough" not in text:
        return None
    counts: dict[str, int | None] = {reason.strip(): int(n[:9]) for n, reason in _KAI_REASON.findall(text)}
    counts = counts or dict(read_counts(text))
    found = binding(SchedulerMessage(total_nodes=None, counts=counts)) if counts else None
    if found is None:
        alone = read_reason(text)  # the kubelet's own: "Node didn't have enough resource: cpu, requested: …"
        if alone.resource and alone.cause:
            return alone.cause, f"The node has not enough {alone.resource} left"
        return "resource-unnamed", "No node has enough resources, and the text does not name which"
    said = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    return found.cause, f"No node can take it: {said}"


def read_gang(text: str) -> Verdict | None:
    """A gang that may not start: Volcano, Grove, the scheduler's own GangScheduling, coscheduling."""
    queue = _VOLCANO_QUEUE.search(text)
    if queue:
        return "queue-waiting", f"The queue lets nothing more in: {queue[0]}"
    volcano = _VOLCANO_GANG.search(text)
    if volcano:
        return _volcano(int(volcano["min"][:9]), int(volcano["have"][:9]), text)
    if _has_enough(text):
        return "gang-unexplained", "The group has as many pods as it needs, and the text does not say why others wait"
    if _GANG.search(text):
        expected = _EXPECTED.search(text)
        numbers = f": {expected[2]} of at least {counted(int(expected[1][:9]), 'pod')}" if expected else ""
        return "gang-waiting", f"The group may only start together{numbers}"
    return None


def _has_enough(text: str) -> bool:
    """Volcano calls a group "not ready" for every pod that waits, though it runs with those that it needs at least."""
    if re.search(r"\bpod ?group is ready\b", text, re.IGNORECASE):
        return True
    least, run = _LEAST.search(text), _RUN.search(text)
    return least is not None and run is not None and int(run[1]) >= int(least[1])


def _volcano(minimum: int, have: int, text: str) -> Verdict:
    """``minimum/have tasks``: the first number is minAvailable, the second how many pods exist."""
    if have == 0:
        return "gang-pods-missing", f"The group needs {counted(minimum, 'pod')}, and none exists: creating them fails"
    if have < minimum:
        exist = inflected(have, "exists", "exist")
        return "gang-waiting", f"Only {have} of the {counted(minimum, 'pod')} that the group needs {exist}"
    waiting = re.search(r"(\d{1,7}) Unschedulable", text)
    said = f", {waiting[1]} of them unschedulable" if waiting else ""
    return "gang-unexplained", f"The group of {minimum} cannot be placed{said}; the text does not say why"
