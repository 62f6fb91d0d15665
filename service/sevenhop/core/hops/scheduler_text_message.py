"""
Take a kube-scheduler verdict apart, in the wording of every version.

Wordings are those of the vendored scheduler sources 1.10 to 1.36 and of recorded runs.  What never holds: that counts
sum up to the number of nodes (one node may give several reasons, PreFilter may have narrowed the nodes), that a
reason is free of commas, or that "preemption" counts say anything about causes.
"""

from __future__ import annotations

import re

import msgspec

from sevenhop.core.words import counted, inflected

_HEAD = re.compile(
    r"(?:(?<!\d)(?P<fit>\d{1,7})\s*/\s*(?P<total>\d{1,7})|\ball)\s+nodes?\s+(?:are|is)\s+(?:un)?available\b[ \t]*[:.]?",
    re.IGNORECASE,
)
_OLDEST = re.compile(r"no nodes are available that match all of the (?:following )?predicates::?\s*", re.IGNORECASE)
_OLDEST_REASON = re.compile(r"(?P<reason>[^,(]{1,200}?)\s?\((?P<count>\d{1,7})\)")

_COUNTED = re.compile(r"(?P<count>\d{1,7})\s+(?P<reason>\S.*)", re.DOTALL)
# Reasons contain commas, braces, parentheses and slashes: only a comma before a count separates.
_BETWEEN = re.compile(r"\s*[,;]\s+(?=\d{1,7}\s+[A-Za-z\"'({])|\s*\.\s*\n\s*(?=\d{1,7}\s)|\n\s*(?=\d{1,7}\s)")
_PREFILTER_END = re.compile(r"\.\s+(?=\d{1,7}\s+[A-Za-z])")
_BLANKS = re.compile(r"[^\S\n]+")
_PREEMPTION = re.compile(r"(?:^|[.,;\s])\s*(?P<label>preemption:)\s*", re.IGNORECASE)

_CLAIM_TEXTS = (
    "no new claims to deallocate",
    "still not schedulable",
    "deallocation of ResourceClaim completed",
    "plugin disabled",
)
"""What the DRA plugin says after its own attempt to make room; never a cause."""

# Bounded, so that no text makes the search quadratic.
_MAX_CHARS = 8_000


class Preemption(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Why the scheduler did not make room by itself.

    Attributes:
        not_helpful: Nodes where removing pods would not help.  Newer than 1.30: also those that could never hold it.
        no_victims: Nodes where no pod of lower priority could be removed.  Newer than 1.30: big enough, but busy.
        other: Further reasons with their counts.
        not_eligible: Why preemption was not even tried, such as ``preemptionPolicy=Never.``; empty if it was.
    """

    not_helpful: int = 0
    no_victims: int = 0
    other: dict[str, int | None] = {}
    not_eligible: str = ""

    def __str__(self) -> str:
        if self.not_eligible:
            return f"not eligible due to {self.not_eligible}"
        parts = []
        if self.no_victims:
            hold = inflected(self.no_victims, "holds", "hold")
            parts.append(f"{counted(self.no_victims, 'node')} {hold} no pod of lower priority that would make room")
        if self.not_helpful:
            parts.append(f"on {counted(self.not_helpful, 'node')} removing pods would not help")
        parts += [reason if count is None else f"{count} {reason}" for reason, count in self.other.items()]
        return "; ".join(parts)


class SchedulerMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One "0/N nodes are available: …", taken apart.

    Attributes:
        total_nodes: N; None where the text does not say (Volcano's "all nodes are unavailable").
        counts: Reason to number of nodes, in the order of the text; None where one reason speaks for the whole cluster.
        prefilter: The reason that speaks for the whole cluster; empty if there is none.
        preemption: None where the text says nothing of it (before 1.24, or cut off).
        post_filter: What other plugins added ("no new claims to deallocate").
        truncated: An Event's note is cut at 1024 bytes, a terminal cuts earlier; the last reason may be incomplete.
        recent: Its words are those of 1.34 or newer, where taint keys may be hidden, and where the preemption part
            tells nodes that are busy from nodes that could never hold the pod.
    """

    total_nodes: int | None
    counts: dict[str, int | None]
    prefilter: str = ""
    preemption: Preemption | None = None
    post_filter: tuple[str, ...] = ()
    truncated: bool = False
    recent: bool = False


def read_scheduler_message(text: str) -> SchedulerMessage | None:
    """
    Read a kube-scheduler verdict (condition ``PodScheduled`` or Event ``FailedScheduling``), also one embedded in
    another text, such as Volcano's "Origin reason is …".

    Returns:
        None if the text holds no such verdict.
    """
    text = _BLANKS.sub(" ", text[:_MAX_CHARS])
    head = _HEAD.search(text)
    if head is None:
        return _read_oldest(text)
    body = text[head.end() :].strip()
    total = int(head["total"]) if head["total"] else None

    body, preemption = _cut_preemption(body)
    body, post_filter = _cut_post_filter(body)
    body, truncated = _cut_ellipsis(body)
    prefilter, histogram = _split_prefilter(body.rstrip(". \n"))
    counts: dict[str, int | None] = {prefilter: None} if prefilter else {}
    for reason, count in _read_counts(histogram):
        # Rotation of "N <same text>" after the PreFilter text (1.26 to 1.28) says nothing new.
        if reason != prefilter:
            counts[reason] = (counts.get(reason) or 0) + count
    return SchedulerMessage(
        total_nodes=total,
        counts=counts,
        prefilter=prefilter,
        preemption=preemption,
        post_filter=post_filter,
        truncated=truncated,
        recent="untolerated taint(s)" in body or bool(post_filter),
    )


def read_counts(text: str) -> dict[str, int]:
    """
    Read "3 reason, 2 other reason" without any head, as cluster-autoscaler and KAI write them.

    >>> read_counts("12 node(s) didn't match Pod's node affinity, 3 max node group size reached.")
    {"node(s) didn't match Pod's node affinity": 12, 'max node group size reached': 3}
    """
    found: dict[str, int] = {}
    for reason, count in _read_counts(_BLANKS.sub(" ", text[:_MAX_CHARS]).strip().rstrip(". \n")):
        found[reason] = found.get(reason, 0) + count
    return found


def _read_oldest(text: str) -> SchedulerMessage | None:
    """Up to 1.10: "No nodes are available that match all of the predicates: Insufficient cpu (3), …"."""
    head = _OLDEST.search(text)
    if head is None:
        return None
    found = _OLDEST_REASON.findall(text[head.end() :])
    return SchedulerMessage(total_nodes=None, counts={reason.strip(" .:"): int(count) for reason, count in found})


def _cut_preemption(body: str) -> tuple[str, Preemption | None]:
    found = _PREEMPTION.search(body)
    if found is None:
        return body, None
    rest = body[found.end() :]
    body = body[: found.start("label")]
    not_eligible = re.match(r"not eligible due to\s*(.*)", rest, re.IGNORECASE | re.DOTALL)
    if not_eligible:
        return body, Preemption(not_eligible=not_eligible[1].strip().rstrip(".") + ".")
    head = _HEAD.match(rest)
    rest = (rest[head.end() :] if head else rest).strip().rstrip(". \n")
    not_helpful, no_victims, other = 0, 0, {}
    for reason, count in _read_counts(rest):
        if "not helpful" in reason.lower():
            not_helpful += count
        elif "no preemption victims" in reason.lower():
            no_victims += count
        else:
            other[reason] = count
    return body, Preemption(not_helpful=not_helpful, no_victims=no_victims, other=dict(other))


def _cut_post_filter(body: str) -> tuple[str, tuple[str, ...]]:
    found = []
    lowered = body.lower()
    for said in _CLAIM_TEXTS:
        at = lowered.find(said.lower())
        if at >= 0:
            found.append(said)
            body = body[:at] + body[at + len(said) :]
            lowered = body.lower()
    body = body.rstrip(" ,\n")
    # From 1.34 on a PreFilter failure of a pod without nominated node ends in a stray " not found".
    if re.search(r"\.\s+not found\.?$", body):
        body = body[: body.rindex("not found")].rstrip()
        found.append("not found")
    return body, tuple(found)


def _cut_ellipsis(body: str) -> tuple[str, bool]:
    stripped = body.rstrip()
    for mark in ("...", "…"):
        if stripped.endswith(mark):
            return stripped[: -len(mark)], True
    return body, False


def _split_prefilter(body: str) -> tuple[str, str]:
    """(the reason for the whole cluster, the histogram)"""
    if _COUNTED.match(body):
        return "", body
    end = _PREFILTER_END.search(body)
    if end is None:
        return body.strip(), ""
    return body[: end.start()].strip(), body[end.end() :]


def _read_counts(histogram: str) -> list[tuple[str, int]]:
    found = []
    for part in _BETWEEN.split(histogram):
        counted = _COUNTED.match(part.strip().rstrip("."))
        if counted:
            # The longest count of nodes has six digits; more is no count.
            found.append((counted["reason"].strip(), int(counted["count"][:9])))
    return found
