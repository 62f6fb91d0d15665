"""The published causes of the scheduling hop: those that texts name too, and those that only objects prove."""

from __future__ import annotations

from sevenhop.core.hops.cause import Cause, table
from sevenhop.core.hops.causes_scheduling_text import SCHEDULING_TEXT_CAUSES
from sevenhop.core.hops.diagnosis import Category
from sevenhop.core.subject import Hop

COMPUTED_CAUSES: dict[str, Cause] = table(
    Cause(
        "none",
        Hop.SCHEDULING,
        Category.NONE,
        "The pod fits, or has a node already.",
        ("Nothing to do; it should be placed at the scheduler's next attempt.",),
    ),
    Cause(
        "preempting",
        Hop.SCHEDULING,
        Category.NONE,
        "The scheduler makes room by evicting pods of lower priority.",
        ("Wait for the victims to stop; then look at who waits instead of this pod.",),
    ),
    Cause(
        "gpu-never-fits",
        Hop.SCHEDULING,
        Category.RESOURCE,
        "The pod asks for more GPUs than any eligible node has, even empty.",
        (
            "Ask for fewer GPUs per pod (tensor parallel over several nodes), or widen the selector to larger nodes.",
            "Freeing GPUs does not help.",
        ),
    ),
    Cause(
        "dra-extended-resource",
        Hop.SCHEDULING,
        Category.DEPENDENCY,
        "The resource is served by a device class, and too few of its devices are free on any node.",
        ("List the devices of the class in ResourceSlices and the claims that hold them.",),
    ),
    Cause(
        "unknown",
        Hop.SCHEDULING,
        Category.UNKNOWN,
        "Our reading of the objects and the scheduler's own words contradict each other, or something is not modelled.",
        ("Read both; wait for the scheduler's next attempt; report it if it stays.",),
    ),
)
"""Causes that no text proves."""

CAUSES: dict[str, Cause] = table(*COMPUTED_CAUSES.values(), *SCHEDULING_TEXT_CAUSES.values())
"""Slug to row, for everything that this hop can say."""
