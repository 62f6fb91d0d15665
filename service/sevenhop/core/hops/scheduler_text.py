"""
Why a pod waits, as far as texts tell: the fall-back where nodes cannot be seen, and the cross-check where they can.

The condition ``PodScheduled`` is the better text: an Event's note is cut at 1024 bytes, and there may be none.
"""

from __future__ import annotations

import re

from sevenhop.core.hops.causes_scheduling_text import SCHEDULING_TEXT_CAUSES
from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis, Evidence
from sevenhop.core.hops.failures_quote import SHOWN_CHARS, as_printed, clean, quote
from sevenhop.core.hops.scheduler_text_admission import read_admission
from sevenhop.core.hops.scheduler_text_autoscaler import read_autoscaler
from sevenhop.core.hops.scheduler_text_message import Preemption as Preemption
from sevenhop.core.hops.scheduler_text_message import SchedulerMessage as SchedulerMessage
from sevenhop.core.hops.scheduler_text_message import read_scheduler_message as read_scheduler_message
from sevenhop.core.hops.scheduler_text_queues import Verdict, read_gang, read_gate, read_kai, read_kueue
from sevenhop.core.hops.scheduler_text_reasons import Reason as Reason
from sevenhop.core.hops.scheduler_text_reasons import Stage, binding, is_gpu, read_reasons, unread
from sevenhop.core.words import counted

_MAX_CHARS = 8_000
_NO_NODES = re.compile(r"\bno nodes available to schedule pods\b", re.IGNORECASE)


def classify_scheduler_message(text: str, *, wants_gpu: bool | None = None) -> Diagnosis | None:
    """
    Why a pod waits, by the words of kube-scheduler, cluster-autoscaler, Karpenter, Kueue, KAI, Volcano, Grove or of
    whoever refused to create the pod.

    GPU shortage is claimed only where the words prove it; "Insufficient nvidia.com/gpu" alone never does, because
    nodes without GPUs and nodes without a working device plugin say the same.

    Args:
        text: Condition message or Event text, with or without the prefix of the controller.
        wants_gpu: Whether the pod asks for GPUs, to point out a text that contradicts it; None if that is not known.

    Returns:
        None if these are not words of any of them.
    """
    text = as_printed(text[:_MAX_CHARS]).strip()
    if not text:
        return None
    gate = read_gate(text)
    if gate:
        return _diagnosis(gate, text)
    message = read_scheduler_message(text)
    if _NO_NODES.search(text) or (message is not None and message.total_nodes == 0 and not message.counts):
        return _diagnosis(("no-nodes", SCHEDULING_TEXT_CAUSES["no-nodes"].meaning.rstrip(".")), text)
    if message is not None and message.counts:
        return _of_message(message, text, wants_gpu=wants_gpu)
    for read in (read_kueue, read_autoscaler, read_kai, read_admission, read_gang):
        verdict = read(text)
        if verdict:
            return _diagnosis(verdict, text)
    if message is not None:
        return _diagnosis(("scheduler-text-unread", "The scheduler found no node, and its text gives no reason"), text)
    return _bare_reason(text)


def _of_message(message: SchedulerMessage, text: str, *, wants_gpu: bool | None) -> Diagnosis:
    found = binding(message)
    preemption = str(message.preemption) if message.preemption else ""
    if found is None:
        strange = unread(read_reasons(message.counts))
        summary = f"The scheduler's reason is not one that Sevenhop knows: {quote(strange[0].text)}"
        return _diagnosis(("scheduler-text-unread", summary), text, not_preempted=preemption)
    cause = found.cause
    nodes = "the whole cluster" if found.reason.nodes is None else _nodes(found.reason.nodes, message.total_nodes)
    why = f" ({found.why})" if found.why else ""
    if wants_gpu is False and is_gpu(found.reason.resource):
        why += ", although the pod as it is given asks for none"
    summary = f"{SCHEDULING_TEXT_CAUSES[cause].meaning.rstrip('.')}: {quote(found.reason.text)} on {nodes}{why}"
    excluded = sorted(_excluded(message).items(), key=lambda pair: (pair[0] != found.reason.cause, -pair[1]))
    return _diagnosis((cause, summary), text, excluded=tuple(excluded), not_preempted=preemption)


def _nodes(some: int, total: int | None) -> str:
    return counted(some, "node") if total is None else f"{some} of {counted(total, 'node')}"


def _excluded(message: SchedulerMessage) -> dict[str, int]:
    by_cause: dict[str, int] = {}
    for reason in read_reasons(message.counts):
        cause = reason.cause or "scheduler-text-unread"
        by_cause[cause] = by_cause.get(cause, 0) + (reason.nodes or message.total_nodes or 0)
    return by_cause


def _bare_reason(text: str) -> Diagnosis | None:
    """One reason alone, without head and count: "persistentvolumeclaim "x" not found"."""
    if len(text) > SHOWN_CHARS or "\n" in text:
        return None
    (reason,) = read_reasons({text: None})
    tells = reason.stage in (Stage.CLUSTER, Stage.VOLUMES) or reason.cause.startswith("device-")
    if not tells and not re.match(r"(?:node\(s\)|insufficient )", text, re.IGNORECASE):
        return None
    if not reason.cause:
        return None
    return _diagnosis(
        (reason.cause, f"{SCHEDULING_TEXT_CAUSES[reason.cause].meaning.rstrip('.')}: {quote(text)}"), text
    )


def _diagnosis(
    verdict: Verdict, text: str, *, excluded: tuple[tuple[str, int], ...] = (), not_preempted: str = ""
) -> Diagnosis:
    cause, summary = verdict
    row = SCHEDULING_TEXT_CAUSES[cause]
    unknown = row.category is Category.UNKNOWN
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=cause,
        confidence=Confidence.UNKNOWN if unknown else Confidence.LIKELY,
        summary=clean(summary),
        evidence=(Evidence("text", quote(text)),),
        next_steps=row.next_steps,
        excluded=excluded,
        not_preempted=not_preempted,
    )
