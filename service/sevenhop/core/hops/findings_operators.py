"""
What frameworks' operators say of their own objects.

An operator's status is evidence, not truth: it may say ready while pods fail, and the reverse.  It is read where it
says that something failed; what the pods say stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sevenhop.core.hops.causes import Strength
from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.failures_text import Context, FailureClass, classify_text
from sevenhop.core.hops.finding import Finding, bare, diagnosis_of, evidence_of, time_of
from sevenhop.core.hops.findings_refusals import is_refusal, says_nothing, why_refused_by_events
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.base import Custom
from sevenhop.core.objects.cluster import Event
from sevenhop.core.objects.kinds import KINDS

_NOT_FRAMEWORKS = re.compile(r"kueue|PodGroup|ScaledObject|autoscal", re.IGNORECASE)
OPERATED_KINDS = tuple(
    name for name, kind in KINDS.items() if issubclass(kind.struct, Custom) and not _NOT_FRAMEWORKS.search(name)
)
"""Kinds of frameworks, whose operators write what they think of them into the status."""

_FAILED_STATES = frozenset({"failed", "error", "deploy_failed", "unhealthy", "degraded", "invalid"})
_FAILS_WHEN_TRUE = re.compile(r"fail|error|degraded|stalled|invalid", re.IGNORECASE)
_FAILED_REASON = re.compile(
    r"fail|error|invalid|denied|forbidden|unhealthy|insufficient|exceeded|notfound|not_found|timeout|nosupporting"
    r"|notrecognized|backoff|rejected|notpermitted|nomatching|notallowed",
    re.IGNORECASE,
)

_BARE_KINDS = frozenset(bare(kind) for kind in OPERATED_KINDS)

Said = tuple[str, str]
"""(where it stands, what it says)"""


def operator_findings(objects: Objects) -> Iterator[Finding]:
    """One finding for an object whose operator says that it failed; one that merely makes progress gives none."""
    refused = _refusals(objects)
    for kind in OPERATED_KINDS:
        for key, custom in objects.custom(kind).items():
            diagnosis = why_operator_fails(kind, custom)
            events = refused.get((bare(kind), *key), [])
            if events and says_nothing(diagnosis):
                diagnosis = why_refused_by_events(objects, kind, custom, events) or diagnosis
            if diagnosis is not None:
                yield Finding(kind=bare(kind), namespace=key[0], name=key[1], diagnosis=diagnosis)


def _refusals(objects: Objects) -> dict[tuple[str, str, str], list[Event]]:
    """(bare kind, namespace, name) to the Events about it, where any tells of something that could not be created."""
    found: dict[tuple[str, str, str], list[Event]] = {}
    refused: set[tuple[str, str, str]] = set()
    for event in objects.of("Event").values():
        if isinstance(event, Event) and event.about.kind in _BARE_KINDS:
            about = (event.about.kind, event.about.namespace, event.about.name)
            found.setdefault(about, []).append(event)
            if is_refusal(event):
                refused.add(about)
    return {about: found[about] for about in refused}


def why_operator_fails(kind: str, custom: Custom) -> Diagnosis | None:
    """What its operator says failed; None if nothing did, or it is being deleted.  `kind` is of `OPERATED_KINDS`."""
    if not custom.status or custom.metadata.deletion_timestamp:
        return None
    said = [(where, text) for where, text in _failures(custom.status) if text.strip()]
    return _diagnosis(bare(kind), custom.metadata.name, said) if said else None


def told_since(custom: Custom, diagnosis: Diagnosis) -> datetime | None:
    """Since when the condition has stood in which a diagnosis was read; None where it carries no time."""
    where = diagnosis.evidence[0].source if diagnosis.evidence else ""
    of_parents = [each for parent in _parents(custom.status) for each in _dicts(parent.get("conditions"))]
    for each in (*_dicts(custom.status.get("conditions")), *of_parents):
        if where == f"condition {each.get('type', '')}":
            return time_of(each)
    return None


def _diagnosis(kind: str, name: str, said: list[Said]) -> Diagnosis:
    read = [
        (where, text, failure) for where, text in said if (failure := classify_text(text, context=Context.CONDITION))
    ]
    read.sort(key=lambda row: row[2].rank)
    evidence = tuple(evidence_of(where, text) for where, text in said[:3])
    if read and (not read[0][2].cause.is_symptom or _says_more(read[0][2])):
        where, text, failure = read[0]
        summary = f"{kind} {name}: {failure.cause.meaning.rstrip('.')}: {failure.line}"
        return diagnosis_of(failure.cause.slug, summary, (evidence_of(where, text), *evidence[:2]))
    summary = f"The operator says that {kind} {name} failed: {evidence[0].text}"
    return diagnosis_of("operator-reported", summary, evidence)


def _says_more(failure: FailureClass) -> bool:
    """Whether a symptom still names its place, as "no endpoints" does and "engine died" does not."""
    return not failure.cause.slug.endswith("-unexplained")


def _failures(status: dict[str, Any]) -> Iterator[Said]:
    info = _dict(_dict(status.get("modelStatus")).get("lastFailureInfo"))
    transition = str(_dict(status.get("modelStatus")).get("transitionStatus", ""))
    # KServe leaves the last failure in place after a later success.
    if info and transition not in ("UpToDate", "InProgress"):
        yield "modelStatus.lastFailureInfo", _joined(info.get("reason"), info.get("message"))
    for field in ("state", "jobStatus", "phase"):
        if str(status.get(field, "")).lower() in _FAILED_STATES:
            said = _joined(status.get("reason"), status.get("message")) or _unready(status)
            yield f"status.{field}", said or f"{field} {status[field]}"
    for which in ("pendingServiceStatus", "activeServiceStatus"):
        yield from _serve_failures(which, _dict(status.get(which)))
    for each in _dicts(status.get("conditions")):
        if _says_failed(each):
            text = _joined(each.get("reason"), each.get("message"))
            yield f"condition {each.get('type', '')}", text or str(each.get("type", ""))
    yield from _parent_failures(_parents(status))


def _unready(status: dict[str, Any]) -> str:
    """What stands beside a failed state that gives no reason: the condition that failed, else the one not met."""
    told = [each for each in _dicts(status.get("conditions")) if each.get("message")]
    failed = [each for each in told if _says_failed(each)]
    unmet = [each for each in told if each.get("type") in ("Ready", "Available") and each.get("status") == "False"]
    return next((_joined(each.get("reason"), each.get("message")) for each in (*failed, *unmet)), "")


def _parents(status: dict[str, Any]) -> list[dict[str, Any]]:
    return [*_dicts(status.get("parents")), *_dicts(status.get("parent"))]


def _parent_failures(parents: list[dict[str, Any]]) -> Iterator[Said]:
    """An InferencePool has conditions per gateway; one that refuses while another accepts is another's business."""
    told = [each for parent in parents for each in _dicts(parent.get("conditions"))]
    fine = {each.get("type") for each in told if each.get("status") == "True"}
    for each in told:
        if each.get("type") not in fine and _says_failed(each):
            yield f"condition {each.get('type', '')}", _joined(each.get("reason"), each.get("message"))


def _serve_failures(which: str, status: dict[str, Any]) -> Iterator[Said]:
    """Ray Serve: a deployment's message is nearer to the cause than its application's."""
    for app, found in _dict(status.get("applicationStatuses")).items():
        application = _dict(found)
        for name, deployment in _dict(application.get("serveDeploymentStatuses")).items():
            if str(_dict(deployment).get("status", "")).lower() in _FAILED_STATES:
                yield f"{which} {app}/{name}", _joined(deployment.get("status"), deployment.get("message"))
        if str(application.get("status", "")).lower() in _FAILED_STATES:
            yield f"{which} {app}", _joined(application.get("status"), application.get("message"))
    cluster = _dict(status.get("rayClusterStatus"))
    if str(cluster.get("state", "")).lower() in _FAILED_STATES:
        yield f"{which} rayClusterStatus", _joined(cluster.get("state"), cluster.get("reason"))


def _says_failed(condition: dict[str, Any]) -> bool:
    kind, status = str(condition.get("type", "")), str(condition.get("status", ""))
    reason = str(condition.get("reason") or "")
    if _FAILS_WHEN_TRUE.search(kind):
        return status == "True"
    if status != "False":
        return False
    if _FAILED_REASON.search(reason):
        return True
    # "Ready: False" alone is progress; a message that names a cause is not.
    failure = classify_text(_joined(condition.get("reason"), condition.get("message")), context=Context.CONDITION)
    return failure is not None and failure.cause.strength is Strength.CAUSE


def _joined(*parts: Any) -> str:
    return ": ".join(str(part) for part in parts if part)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
