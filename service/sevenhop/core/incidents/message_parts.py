"""The lines of a message, one function each; what is not known is said so, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis
from sevenhop.core.hops.report import HopLine, HopReport, HopState
from sevenhop.core.incidents.context import SubjectContext
from sevenhop.core.incidents.text import clock, counted, listed, listed_first, plain
from sevenhop.core.inventory.capacity import Change, Holding, PoolCapacity, Waiting
from sevenhop.core.subject import Hop, Subject, SubjectKind

MARKS: dict[HopState, str] = {
    HopState.OK: "✔",
    HopState.BROKEN: "✖",
    HopState.UNKNOWN: "?",
    HopState.NOT_APPLICABLE: "–",
}
TIERS: tuple[str, ...] = ("critical", "standard", "batch", "")
"""The most valuable first."""

SHORTAGES = frozenset({"gpu-shortage", "gpu-fragmentation", "mig-shortage"})
_CLOCKS_DIFFER = timedelta(seconds=5)
_SHOWN = 6

_WAITS_FOR_A_PERSON = "it does not start by itself until that is mended"
_IF_NOTHING: dict[Category, str] = {
    Category.RESOURCE: "it waits until capacity appears or somebody gives it",
    Category.AUTOSCALER: "it waits for the autoscaler",
    Category.POLICY: _WAITS_FOR_A_PERSON,
    Category.TOPOLOGY: _WAITS_FOR_A_PERSON,
    Category.QUOTA: "it waits until quota is freed or raised",
    Category.DEPENDENCY: _WAITS_FOR_A_PERSON,
    Category.GATED: "it waits until its gate or queue lets it go",
    Category.DEVICE_PLUGIN: "no new pod gets these GPUs until the device plugin offers them",
    Category.IMAGE: _WAITS_FOR_A_PERSON,
    Category.CONFIG: _WAITS_FOR_A_PERSON,
    Category.RUNTIME: "it is restarted with growing pauses, and most likely fails the same way",
    Category.PROBE: "it is restarted or kept out of service again and again",
    Category.DEVICE: "what runs on this device fails until it is repaired or left",
    Category.MODEL_ARTIFACT: "it is restarted with growing pauses, and fails the same way",
    Category.ENGINE: "it is restarted with growing pauses, and most likely fails the same way",
}


def first_broken_text(report: HopReport) -> str:
    """All seven hops in order, the first broken one named before them."""
    first = str(report.first_broken) if report.first_broken else _nothing_broken(report)
    return f"{first}   " + "  ".join(_hop(line) for line in report.lines)


def unseen_text(report: HopReport) -> str:
    """Which hops cannot be judged, by reason; empty if all can."""
    reasons: dict[str, list[str]] = {}
    for line in report.lines:
        if line.state is HopState.UNKNOWN:
            reasons.setdefault(line.reason or "no reason given", []).append(str(line.hop))
    return " · ".join(f"{', '.join(hops)} unknown ({plain(reason, 80)})" for reason, hops in reasons.items())


def hit_text(context: SubjectContext, others: Sequence[str]) -> str:
    """How many replicas are left, who else is hit, what is known of requests."""
    parts = []
    component = context.labels.get("component", "")
    if context.desired is not None or context.ready is not None:
        ready = _number(context.ready, "ready replicas")
        desired = _number(context.desired, "desired replicas")
        floor = f" (minimum {context.minimum})" if context.minimum is not None else ""
        parts.append(f"{component or 'replicas'} {ready}/{desired} ready{floor}")
    if context.hits:
        parts.append(listed([plain(text, 120) for text in context.hits], 4, ", "))
    if others:
        parts.append("also " + listed([plain(other, 60) for other in others], 4, ", "))
    gateway = context.report.line(Hop.GATEWAY) if context.report is not None else None
    if gateway is not None and gateway.state is HopState.UNKNOWN:
        parts.append(f"failed requests unknown ({plain(gateway.reason, 60)})")
    elif gateway is not None and gateway.state is HopState.BROKEN:
        parts.append(f"requests fail on {gateway.broken} of {counted(gateway.total, 'route')}")
    return " · ".join(parts)


def why_text(diagnosis: Diagnosis | None, hop: Hop | None) -> str:
    """One sentence, with how sure we are."""
    if diagnosis is None:
        return "unknown (no diagnosis: nothing that we can see says why)"
    if diagnosis.disagreement:
        return (
            f"unknown (disagree): we find {plain(diagnosis.summary, 200)}; "
            f"the scheduler says {plain(diagnosis.disagreement, 200)}"
        )
    summary = plain(diagnosis.summary, 300)
    if diagnosis.confidence is Confidence.UNKNOWN:
        return f"unknown ({summary})"
    sure = " (likely: read from text)" if diagnosis.confidence is Confidence.LIKELY else ""
    elsewhere = f"{diagnosis.hop}: " if diagnosis.hop is not None and diagnosis.hop is not hop else ""
    return f"{elsewhere}{summary}{sure}"


def changes_before(changes: Sequence[Change], since: datetime, before: timedelta) -> list[Change]:
    """Those within `before` of the beginning."""
    return [c for c in changes if since - before <= c.at <= since + _CLOCKS_DIFFER]


def changed_text(
    changes: Sequence[Change], since: datetime, before: timedelta, watching_since: datetime | None = None
) -> str:
    """What somebody changed before it began, the newest first; who came later than the window cannot say "nothing"."""
    found = changes_before(changes, since, before)
    if not found and watching_since is not None and watching_since > since - before:
        return f"unknown (window: watching since {watching_since:%H:%M:%S}), nothing seen since then"
    if not found:
        return f"nothing seen in the {before // timedelta(minutes=1)} min before"
    newest = sorted(found, key=lambda c: (c.at, c.kind, c.namespace, c.name, c.what), reverse=True)
    return listed([_change(c, since) for c in newest], 3)


def capacity_text(pool: PoolCapacity) -> str:
    """How the pool's GPUs are spent."""
    noun = "GPUs" if pool.resource.endswith("/gpu") else plain(pool.resource, 60)
    parts = [f"{plain(pool.product, 60)}: {pool.bound} of {pool.allocatable} {noun} bound"]
    if pool.releasing:
        parts[0] += f" ({pool.releasing} releasing)"
    parts.append(f"{pool.free} free, largest block {pool.largest_free_block}")
    if pool.cordoned:
        parts.append(f"{pool.cordoned} on cordoned nodes")
    if pool.unhealthy:
        parts.append(f"{pool.unhealthy} not offered")
    return " · ".join(parts)


def holders_text(pool: PoolCapacity) -> str:
    """Who holds most of the pool's GPUs; empty if nobody holds any."""
    holders = sorted(pool.holdings, key=lambda h: (-h.gpus, h.workload or ("", "")))
    return listed_first(holders, _holding, _SHOWN)


def waiting_texts(waiting: Sequence[Waiting], since: datetime) -> list[tuple[str, str]]:
    """(tier, who waits), the most valuable first; empty if fewer than two wait: one is whom the message is about."""
    if len(waiting) < 2:
        return []
    found = []
    for tier in sorted({w.tier for w in waiting}, key=tier_rank):
        of_tier = [w for w in waiting if w.tier == tier]
        found.append((tier or "no tier", listed([_waits(w, since) for w in of_tier], _SHOWN)))
    return found


def if_nothing_text(context: SubjectContext | None, rule: Rule | None) -> str:
    """What happens if nobody acts."""
    diagnosis = context.diagnosis if context is not None else None
    text = _IF_NOTHING.get(diagnosis.category, "") if diagnosis is not None and not diagnosis.disagreement else ""
    if diagnosis is not None and diagnosis.cause == "rollout-surge":
        text = "the rollout stays where it is; the old replicas go on serving"
    if not text:
        said = plain(rule.description, 240) if rule is not None else ""
        return said or "unknown (no diagnosis)"
    return text + _left(context)


def plan_text(context: SubjectContext, tier: str) -> tuple[str, str]:
    """
    (label, text) of what may help; both empty where there is nothing true to say.

    Nothing is proposed here: for a shortage it names who could give, or why nobody can.
    """
    diagnosis = context.diagnosis
    if diagnosis is None or diagnosis.disagreement:
        return "", ""
    if diagnosis.cause in SHORTAGES and context.pool is not None:
        return "PLAN", _who_could_give(context, context.pool, tier)
    helps = diagnosis.would_help or diagnosis.next_steps
    if not helps:
        return "", ""
    return "What would help", listed([plain(text, 160) for text in helps], 2)


def command_text(subject: Subject, context: SubjectContext | None, hop: Hop | None) -> str:
    """One kubectl line that shows more; empty where none does."""
    if subject.kind is SubjectKind.SOURCE:
        return "sevenhop doctor"
    if subject.kind is SubjectKind.NODE:
        return f"kubectl describe node {_argument(subject.name)}"
    if subject.kind is SubjectKind.GPU:
        return f"kubectl describe node {_argument(context.labels.get('node', ''))}" if context is not None else ""
    if subject.kind is SubjectKind.POOL:
        return f"kubectl get nodes -l nvidia.com/gpu.product={_argument(subject.name)}"
    if subject.kind is SubjectKind.SERVICE:
        selector = f"kubernetes.io/service-name={_argument(subject.name)}"
        return f"kubectl -n {_argument(subject.namespace)} get endpointslices -l {selector}"
    namespace = _argument(subject.namespace)
    pod = _pod_to_look_at(subject, context, hop)
    if not pod:
        holder = _who_may_not_create(context)
        return f"kubectl -n {namespace} describe {_argument(holder)}" if holder else ""
    if hop is Hop.MODEL:
        return f"kubectl -n {namespace} logs {_argument(pod)} --previous --tail=50"
    return f"kubectl -n {namespace} describe pod {_argument(pod)}"


def evidence_lines(context: SubjectContext | None) -> list[str]:
    """Everything that speaks for it, for those who want to check."""
    if context is None:
        return []
    lines: list[str] = []
    if context.report is not None:
        for line in context.report.lines:
            lines += [f"{line.hop}: {plain(e.source, 80)}: {plain(e.text, 240)}" for e in line.evidence]
    diagnosis = context.diagnosis
    if diagnosis is None:
        return lines
    lines += [f"{plain(e.source, 80)}: {plain(e.text, 240)}" for e in diagnosis.evidence]
    lines += [f"{plain(what, 60)} excludes {counted(nodes, 'node')}" for what, nodes in diagnosis.excluded]
    lines += [f"would help: {plain(text, 240)}" for text in diagnosis.would_help]
    lines += [f"next: {plain(text, 240)}" for text in diagnosis.next_steps]
    lines += [f"not taken into account: {plain(text, 240)}" for text in diagnosis.unmodelled]
    return list(dict.fromkeys(lines))


def tier_rank(tier: str) -> int:
    return TIERS.index(tier) if tier in TIERS else len(TIERS)


def _nothing_broken(report: HopReport) -> str:
    return "unknown" if any(line.state is HopState.UNKNOWN for line in report.lines) else "none"


def _hop(line: HopLine) -> str:
    count = f" {line.total - line.broken}/{line.total}" if line.state is HopState.BROKEN and line.total else ""
    return f"{MARKS[line.state]} {line.hop}{count}"


def _number(value: int | None, what: str) -> str:
    return str(value) if value is not None else f"unknown ({what})"


def _change(change: Change, since: datetime) -> str:
    place = f"{change.namespace}/{change.name}" if change.namespace else change.name
    kind = change.kind.partition(".")[0]
    by = f" by {plain(change.by, 40)}" if change.by else ""
    moved = f"{plain(change.before, 60) or 'none'} → {plain(change.after, 60) or 'none'}"
    return f"{clock(change.at, since)} {kind} {plain(place, 80)} {plain(change.what, 30)} {moved}{by}"


def _holding(holding: Holding) -> str:
    return f"{_holder(holding)} {holding.gpus}"


def _giving(holding: Holding) -> str:
    """A holder keeps its minimum, so it seldom gives all that it holds."""
    return f"{_holder(holding)} {holding.gives} of the {counted(holding.gpus, 'GPU')} that it holds"


def _holder(holding: Holding) -> str:
    name = plain(holding.workload[1], 50) if holding.workload and holding.workload[1] else "pods of no workload"
    return f"{name} ({plain(holding.tier, 20)})" if holding.tier else name


def _waits(waiting: Waiting, since: datetime) -> str:
    start = f" since {clock(waiting.since, since)}" if waiting.since else ""
    name = plain(f"{waiting.workload[1]}/{waiting.component}", 80)
    gpus = "GPUs, how many is not known" if waiting.unclear else counted(waiting.gpus, "GPU")
    return f"{name} {gpus}{start}"


def _left(context: SubjectContext | None) -> str:
    if context is None or context.ready is None:
        return ""
    if context.ready == 0:
        return "; until then nobody serves"
    below = context.minimum is not None and context.ready < context.minimum
    desired = f" of {context.desired}" if context.desired is not None else ""
    return f"; until then {context.ready}{desired} serve" + (", below the minimum" if below else "")


def _who_could_give(context: SubjectContext, pool: PoolCapacity, tier: str) -> str:
    own = (context.labels.get("namespace", ""), context.labels.get("workload", ""))
    others = [h for h in pool.holdings if h.workload != own]
    givers = [h for h in others if h.reducible and tier_rank(h.tier) > tier_rank(tier)]
    if givers:
        return "could give, if somebody approves: " + listed_first(givers, _giving, 3)
    if not others:
        return "no neighbour can give: nobody else holds these GPUs"
    largest = sorted(others, key=lambda h: -h.gpus)
    return "no neighbour can give: " + listed_first(largest, lambda h: f"{_holding(h)}: {_why_not(h, tier)}", 4)


def _why_not(holding: Holding, tier: str) -> str:
    if holding.reason:
        return plain(holding.reason, 80)
    if not holding.reducible:
        return "cannot be reduced"
    return "same tier" if tier_rank(holding.tier) == tier_rank(tier) else "a higher tier"


def _pod_to_look_at(subject: Subject, context: SubjectContext | None, hop: Hop | None) -> str:
    if subject.kind is SubjectKind.POD:
        return subject.name
    if context is None:
        return ""
    names = {name for name, _ in context.pods}
    if context.report is not None and hop is not None:
        at_hop = [pod for pod in context.report.line(hop).pods if pod in names]
        if at_hop:
            return at_hop[0]
    return context.pods[0][0] if context.pods else ""


def _who_may_not_create(context: SubjectContext | None) -> str:
    """Whose pods do not exist, as kubectl takes it (``replicaset.apps/llama-1``); empty where all of them do."""
    report = context.report if context is not None else None
    missing = [name for name in (report.line(Hop.SCHEDULING).pods if report is not None else ()) if " #" in name]
    kind, _, name = missing[0].rpartition(" #")[0].rpartition("/") if missing else ("", "", "")
    return f"{kind.lower()}/{name}" if kind else ""


def _argument(text: str) -> str:
    """A name as a word of a shell; names from the cluster are checked by it, yet never trusted."""
    word = plain(text, 253)
    if word and all(char.isalnum() or char in "-._/:=@" for char in word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"
