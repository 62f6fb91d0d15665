"""Kueue Workloads that are not admitted, and PodGroups of Volcano and KAI that wait."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.finding import Finding, bare, diagnosis_of, evidence_of, time_of
from sevenhop.core.hops.scheduler_text import classify_scheduler_message
from sevenhop.core.hops.scheduling_queues import kueue_finding
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.base import Custom

_KUEUE = "Workload.kueue.x-k8s.io"
_POD_GROUPS = ("PodGroup.scheduling.volcano.sh", "PodGroup.scheduling.run.ai")
_WAITING_PHASES = frozenset({"", "Pending", "Inqueue", "Unknown"})


QUEUED_KINDS = (_KUEUE, *_POD_GROUPS)
"""Kinds that a queue holds back before their pods exist, or while these wait."""


def queue_findings(objects: Objects) -> Iterator[Finding]:
    """What queues hold back, one finding per object."""
    for kind in QUEUED_KINDS:
        for key, custom in objects.custom(kind).items():
            diagnosis = why_queued(kind, custom)
            if diagnosis is not None:
                yield Finding(kind=bare(kind), namespace=key[0], name=key[1], diagnosis=diagnosis)


def why_queued(kind: str, custom: Custom) -> Diagnosis | None:
    """
    Why an object of `QUEUED_KINDS` waits; None if it is admitted, finished, or runs.

    A Workload of Kueue that never had a condition waits for Kueue itself.
    """
    if custom.metadata.deletion_timestamp:
        return None
    if kind != _KUEUE:
        return _why_group_waits(custom)
    if not custom.status and not custom.spec.get("podSets"):
        return None
    return kueue_finding(custom)


def queued_since(custom: Custom) -> datetime | None:
    """Since when its queue has said that it waits; since it was made, where the queue does not say."""
    for each in _dicts(custom.status.get("conditions")):
        kind, status = str(each.get("type", "")), each.get("status")
        if (kind == "QuotaReserved" and status == "False") or (kind.startswith("Unschedulable") and status == "True"):
            return time_of(each) or custom.metadata.creation_timestamp
    return custom.metadata.creation_timestamp


def _why_group_waits(group: Custom) -> Diagnosis | None:
    phase = str(group.status.get("phase", ""))
    if phase not in _WAITING_PHASES:
        return None
    texts = [text for text in _texts(group) if text]
    if not texts:
        return None
    verdicts = [(text, verdict) for text in texts if (verdict := classify_scheduler_message(text))]
    # A reason with numbers beats "the gang cannot start", which only repeats it.
    verdicts.sort(key=lambda pair: pair[1].cause in ("gang-waiting", "gang-unexplained", "scheduler-text-unread"))
    source = f"podgroup/{group.metadata.name}"
    if not verdicts:
        return diagnosis_of(
            "gang-unexplained",
            "The group waits, and its scheduler's words are not known",
            (evidence_of(source, texts[0]),),
        )
    text, verdict = verdicts[0]
    return diagnosis_of(verdict.cause, verdict.summary, (evidence_of(source, text),))


def _texts(group: Custom) -> Iterator[str]:
    """Volcano sets ``Unschedulable`` to True while the group waits; KAI lists its reasons per node pool."""
    for each in _dicts(group.status.get("schedulingConditions")):
        for reason in _dicts(each.get("reasons")):
            yield ": ".join(str(reason[field]) for field in ("reason", "message") if reason.get(field))
        yield str(each.get("message") or "")
    for each in _dicts(group.status.get("conditions")):
        if str(each.get("type", "")).startswith("Unschedulable") and each.get("status") == "True":
            yield str(each.get("message") or each.get("reason") or "")


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
