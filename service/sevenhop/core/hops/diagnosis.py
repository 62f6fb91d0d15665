"""The words in which every hop answers: category, cause, confidence, evidence."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from sevenhop.core.subject import Hop


class Category(StrEnum):
    RESOURCE = "resource"
    POLICY = "policy"
    TOPOLOGY = "topology"
    QUOTA = "quota"
    DEPENDENCY = "dependency"
    GATED = "gated"
    DEVICE_PLUGIN = "device-plugin"
    AUTOSCALER = "autoscaler"
    IMAGE = "image"
    CONFIG = "config"
    RUNTIME = "runtime"
    PROBE = "probe"
    DEVICE = "device"
    MODEL_ARTIFACT = "model-artifact"
    ENGINE = "engine"
    NONE = "none"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    CERTAIN = "certain"  # computed from objects
    LIKELY = "likely"  # read from text
    UNKNOWN = "unknown"


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """Where it was seen (``node/gpu-07``, ``pod/x condition PodScheduled``) and what, in one line."""

    source: str
    text: str


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What is wrong with one subject at one hop.

    Attributes:
        hop: None when nothing is wrong.
        cause: A slug from the published list (docs/reference/causes).
        summary: One sentence with the numbers in it.
        excluded: Nodes that each constraint excludes: ``(("untolerated-taint", 3), …)``, the binding one first.
        would_help: What would have to change, most helpful first; a sentence each.
        not_preempted: Why the scheduler did not make room by itself; empty where it does not apply.
        disagreement: The scheduler's own words, where they contradict ours; the cause is then `unknown`.
        unmodelled: What was not taken into account, never assumed.
    """

    hop: Hop | None
    category: Category
    cause: str
    confidence: Confidence
    summary: str
    evidence: tuple[Evidence, ...] = ()
    next_steps: tuple[str, ...] = ()
    excluded: tuple[tuple[str, int], ...] = ()
    would_help: tuple[str, ...] = ()
    not_preempted: str = ""
    disagreement: str = ""
    unmodelled: tuple[str, ...] = ()
