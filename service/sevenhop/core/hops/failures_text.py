"""
Which failure a text speaks of.

Texts come from a pod's status, from Events and, where that is allowed, from log lines.  Only the line that matched is
ever shown, masked and cut (`failures_quote`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import cache, lru_cache

import msgspec

from sevenhop.core.hops import failures_device, failures_model, failures_serving, failures_startup
from sevenhop.core.hops.causes import CAUSES, Cause
from sevenhop.core.hops.diagnosis import Category
from sevenhop.core.hops.failures_quote import as_printed, quote
from sevenhop.core.hops.failures_words import Matcher
from sevenhop.core.hops.scheduler_text import classify_scheduler_message
from sevenhop.core.subject import HOPS


class Context(StrEnum):
    """Where a text stood."""

    STATUS = "status"  # pod.status.reason and message, conditions
    WAITING = "waiting"
    TERMINATED = "terminated"
    EVENT = "event"
    CONDITION = "condition"  # of a framework's custom resource
    LOG = "log"


_OF_CONTAINERS = (Context.LOG, Context.TERMINATED)


class FailureClass(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What a text speaks of.

    Attributes:
        cause: The row of the published table.
        line: The matching line, masked, at most 200 characters.
        hint: What the numbers in the line advise; empty where they advise nothing.
        is_warning: The program called it a warning.
    """

    cause: Cause
    context: Context
    line: str
    hint: str = ""
    is_warning: bool = False

    @property
    def rank(self) -> tuple[int, int, int]:
        """Smaller is the better explanation: causes before symptoms, early hops first, then the table's order."""
        return rank(self.cause)


def rank(cause: Cause) -> tuple[int, int, int]:
    """Of a cause alone; see `FailureClass.rank`."""
    return (-cause.strength, HOPS.index(cause.hop), _ORDER[cause.slug])


_ORDER = {slug: position for position, slug in enumerate(CAUSES)}


@cache
def _matchers() -> tuple[tuple[Cause, Matcher], ...]:
    """Compiled when the first text is read: a healthy cluster never pays for it."""
    rows = (
        *failures_device.WORDS,
        *failures_startup.WORDS,
        *failures_model.WORDS,
        *failures_serving.WORDS,
    )
    return tuple((CAUSES[row.cause], Matcher.of(row)) for row in rows)


def prepare() -> None:
    """Compile now what the first text would be held up by: 50 ms, for who must not stop that long later."""
    _matchers()


_MAX_LINE_CHARS = 4_000
_MAX_LINES = 2_000
_MAX_CHARS = 200_000
_INFORMATION = re.compile(
    # INFO 11-30 06:00:00 …; (Worker pid=7) INFO …; 2025-11-30 06:00:00 | INFO | …
    r"^\W{0,3}(?:\([^)]{0,60}\)\s*)?(?:\[?\d[\d:.\-T ,Z/]{4,30}\]?\s*)?\W{0,4}(?:INFO|DEBUG|TRACE)\b"
    # 2025-11-30 06:00:00,123 - name - INFO - …
    r"|^\[?\d[\d:.\-T ,Z/]{4,30}\]?\s*(?:(?!ERROR|WARN|FATAL|CRITICAL)[^\s\"'{}]{1,60}\s+){1,4}?(?:INFO|DEBUG|TRACE)\b"
    # [TensorRT-LLM][INFO] …; [11/30/2025-06:00:00] [TRT-LLM] [I] …
    r"|^(?:\[[^\]]{0,60}\]\s*){0,4}\[(?:INFO|DEBUG|VERBOSE|I|V)\]"
    # gpu-1:7:7 [0] NCCL INFO …
    r"|^[^\"']{0,80}\bNCCL INFO\b"
    # level=info msg="…"; {"severity": "INFO", …}
    r'|^(?:\w+=(?:"[^"]*"|\S+)\s+){0,4}level=(?i:info|debug|trace)\b'
    r'|^\s*\{.*"(?:level|levelname|severity|lvl)"\s*:\s*"(?i:info|debug|trace)"'
)
_WARNING = re.compile(
    # The same places as above.
    r"^\W{0,3}(?:\([^)]{0,60}\)\s*)?(?:\[?\d[\d:.\-T ,Z/]{4,30}\]?\s*)?\W{0,4}WARN(?:ING)?\b"
    r"|^\[?\d[\d:.\-T ,Z/]{4,30}\]?\s*(?:(?!ERROR|FATAL|CRITICAL)[^\s\"'{}]{1,60}\s+){1,4}?WARN(?:ING)?\b"
    r"|^(?:\[[^\]]{0,60}\]\s*){0,4}\[(?:WARN(?:ING)?|W)\]"
    r'|^(?:\w+=(?:"[^"]*"|\S+)\s+){0,4}level=(?i:warn(?:ing)?)\b'
    r'|^\s*\{.*"(?:level|levelname|severity|lvl)"\s*:\s*"(?i:warn(?:ing)?)"'
    # glog and torch: W1130 06:00:00.123 …; [rank0]:[W1130 …
    r"|^(?:\[rank\d+\]:)?\[?W\d{4}\b"
    # Python's own: …/x.py:105: FutureWarning: …
    r"|^(?:\S{1,300}:\d+: )?(?:User|Future|Runtime|Deprecation|Import|Resource|Pending\w*)?Warning: "
)
_NO_FAILURE = re.compile(
    # An engine's whole configuration, and what it tries and does without.
    r"\bserver_args=|\bnon-default args\b|\bArgs \{|\bNamespace\(|\bIgnore import error\b"
    # What engines and their libraries say at every start, or instead of failing.
    r"|\b[Ff]all(?:s|ing|en)? ?back(?:s|ing)? to\b|\busing base model tokenizer instead\b|\bwill be ignored\b"
    r"|\bHF_TOKEN not found, gated models\b|\bdoes not contain any of the following keys to determine\b"
    r"|\bUnrecognized keys in `rope|\bis preempted by PreemptionMode\b|\bNET/Plugin\b"
    r"|\bUnable to register cu\w+ factory"
    r"|\bfailed call to cuInit\b|\bCannot use FA version \d|\bFailed to import from amdsmi\b"
    r"|\bdestroy_process_group\(\) was not called\b|\bFailed to send usage data\b"
    # Asked for a file that need not be there; what is missing has a line of its own.
    r"|\bHTTP Request: (?:GET|HEAD) \S{1,500} \"HTTP/"
    # Answers to requests: it serves.
    r"|\bThe model `[^`]{0,300}` does not exist|\"object\":\s*\"error\""
    r"|\b(?:openai|litellm|anthropic)\.(?:\w+\.)?\w+Error\b|\" [45]\d\d (?:Unauthorized|Forbidden|Not Found)\b"
)
_SHIPPED = re.compile(
    # kubectl logs --prefix and --timestamps; the runtime's own files; docker's, with the line inside.
    r"^(?:\[pod/[^\]]{1,300}\]\s*)?(?:\d{4}-\d\d-\d\dT[\d:.]{8,20}Z (?:std(?:out|err) [FP] )?|\s*\{\"log\":\s*\")?"
)
"""What is put before a line on its way."""

_KERNEL_LIMIT = re.compile(r"cgroup|inotify|fsnotify", re.IGNORECASE)
"""The kernel says "no space left on device" of these too, and means no disk."""

# What speaks of pulling an image in so many words.
_IMAGE_TEXT = re.compile(
    r"failed to pull|pull(?:ing)? (?:and unpack )?image|errimagepull|imagepullbackoff|resolve reference"
    r"|unable to fetch image|failed to resolve image|pull access denied|toomanyrequests|registryunavailable"
    r"|manifest (?:unknown|for)",
    re.IGNORECASE,
)
_IMAGE = frozenset(slug for slug in CAUSES if slug.startswith("image-"))
_PROBE_TEXT = re.compile(r"^\s*(?:\w+: )?(?:startup|readiness|liveness) probe (?:failed|errored)", re.IGNORECASE)


def classify_text(text: str, *, context: Context = Context.LOG) -> FailureClass | None:
    """
    The best explanation in `text`: a cause before a symptom, whatever their order.

    Returns:
        None if nothing in it is known.
    """
    return min(classify_lines(text, context=context), key=lambda found: found.rank, default=None)


def classify_lines(text: str, *, context: Context) -> list[FailureClass]:
    """Every line that says something, each with its best explanation, in the order of the text."""
    lines = as_printed(text[:_MAX_CHARS]).splitlines()[:_MAX_LINES]
    found = [match for line in lines if (match := _classify_line(line, context))]
    if not found and len(lines) > 1:
        # A sentence that was wrapped.
        whole = _classify_line(" ".join(lines), context)
        found = [whole] if whole else []
    return _without_warnings(found)


def _without_warnings(found: list[FailureClass]) -> list[FailureClass]:
    """Whoever warns goes on: where a line of another level names a cause, it is not what was warned of before."""
    if any(not (each.is_warning or each.cause.is_symptom) for each in found):
        return [each for each in found if not each.is_warning]
    return found


def classify_logs(lines: Sequence[str]) -> list[FailureClass]:
    """The lines of a log that say something; lines at level INFO and below only tell of symptoms."""
    return _without_warnings(
        [match for line in lines[-_MAX_LINES:] for match in classify_lines(line, context=Context.LOG)]
    )


@lru_cache(maxsize=2048)  # what fails says the same again with every update of it
def _classify_line(line: str, context: Context) -> FailureClass | None:
    line = line[:_MAX_LINE_CHARS]
    if context in _OF_CONTAINERS:
        line = _SHIPPED.sub("", line)
    if not line.strip():
        return None
    lowered = line.lower()
    candidates = [(cause, found) for cause, matcher in _matchers() if (found := matcher.search(line, lowered))]
    if candidates:
        candidates = _relevant(candidates, line, context)
    if candidates:
        cause, match = min(candidates, key=lambda pair: rank(pair[0]))
        return FailureClass(
            cause=cause,
            context=context,
            line=quote(line, match.start()),
            hint=_hint(cause.slug, line),
            is_warning=context in _OF_CONTAINERS and _WARNING.match(line) is not None,
        )
    if context in (Context.EVENT, Context.CONDITION, Context.STATUS):
        return _scheduling(line, context)
    return None


def _relevant(
    candidates: list[tuple[Cause, re.Match[str]]], line: str, context: Context
) -> list[tuple[Cause, re.Match[str]]]:
    if context in _OF_CONTAINERS:  # what a container leaves may be the end of its log
        if _NO_FAILURE.search(line):
            return []
        candidates = [pair for pair in candidates if pair[0].slug not in _OF_PODS]
        if _INFORMATION.match(line):
            return [pair for pair in candidates if pair[0].is_symptom]
    elif _DISK_IS_FULL.search(line) and not _KERNEL_LIMIT.search(line):
        # The innermost of the errors that wrap each other.
        candidates = [pair for pair in candidates if pair[0].slug in _DISK_FULL] or candidates
    if context is Context.EVENT and _ABOUT_PROVISIONING.search(line):
        # A cloud that refuses a volume refuses no model.
        candidates = [pair for pair in candidates if pair[0].category is not Category.MODEL_ARTIFACT]
    if context in _OF_KUBELET or (context is Context.EVENT and _ABOUT_VOLUMES.search(line)):
        # A kubelet reads no model; what it says of a claim called "models" is about the claim.
        candidates = [pair for pair in candidates if pair[0].slug not in _MODEL_FILES]
    if _KERNEL_LIMIT.search(line):
        candidates = [pair for pair in candidates if pair[0].slug not in _DISK_FULL]
    if _PROBE_TEXT.match(line):
        # What the probe answered (connection refused, 503) is no finding of its own.
        return [
            pair
            for pair in candidates
            if pair[0].slug in ("slow-load", "liveness-failing", "not-ready", "by-design-not-ready")
        ]
    if context in (Context.LOG, Context.TERMINATED, Context.CONDITION) and not _IMAGE_TEXT.search(line):
        # A program never pulls images; "image" in its log is a picture or a path.
        return [pair for pair in candidates if pair[0].slug not in _PULL_CAUSES]
    return candidates


_OF_PODS = frozenset({"preempted", "evicted", "evicted-memory", "node-lost"})
"""What only happens to pods; in a program's log it happens to requests and caches."""

_DISK_FULL = frozenset({"image-disk-full", "artifact-disk-full", "shm-too-small", "node-disk-full"})
_DISK_IS_FULL = re.compile("no space left on device|disk quota exceeded", re.IGNORECASE)
_OF_KUBELET = (Context.STATUS, Context.WAITING)
_ABOUT_VOLUMES = re.compile(r"FailedMount|MountVolume\.|AttachVolume\.|unmounted volumes=|persistentvolumeclaim")
_ABOUT_PROVISIONING = re.compile(r"ProvisioningFailed|[Ff]ailed to provision volume|FailedBinding")
_MODEL_FILES = frozenset(
    slug
    for slug, cause in CAUSES.items()
    if cause.category is Category.MODEL_ARTIFACT and slug not in ("artifact-access-denied", "artifact-not-found")
)
"""Of the files themselves; a driver that mounts a bucket does hear that it may not, or that there is none."""

_PULL_CAUSES = _IMAGE - {"image-content", "image-platform", "image-pull-unexplained", "image-name", "image-never-pull"}


def _scheduling(line: str, context: Context) -> FailureClass | None:
    verdict = classify_scheduler_message(line)
    if verdict is None:
        return None
    return FailureClass(cause=CAUSES[verdict.cause], context=context, line=quote(line))


_KV_TOKENS = (
    re.compile(r"estimated maximum model length is\s+(?P<tokens>\d+)", re.IGNORECASE),
    re.compile(r"stored in (?:the )?kv cache \((?P<tokens>\d+)\)", re.IGNORECASE),
)
_DERIVED_LENGTH = re.compile(r"derived max_model_len \([^)\d]*(?P<tokens>\d+)", re.IGNORECASE)


def _hint(slug: str, line: str) -> str:
    if slug == "kv-cache-too-small":
        tokens = next((match["tokens"] for words in _KV_TOKENS if (match := words.search(line))), None)
        return f"Set `--max-model-len` to at most {tokens}." if tokens else ""
    if slug == "engine-config":
        derived = _DERIVED_LENGTH.search(line)
        return f"Set `--max-model-len` to at most {derived['tokens']}." if derived else ""
    return ""
