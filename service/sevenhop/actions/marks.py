"""What we write on objects beside the change itself, so that it can be found and taken back."""

from __future__ import annotations

from typing import Any

from sevenhop.actions.pointers import Data, escape
from sevenhop.core.effects import Borrow
from sevenhop.core.remediation.borrowed import BORROWED, decode_borrow

STEERED = "sevenhop.dev/steered"
"""On a pod whose deletion cost we set: the plan, then the cost that stood there before, empty for none."""

CORDONED = "sevenhop.dev/cordoned"
"""On a node that we cordoned: the plan."""

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""https://kubernetes.io/docs/reference/labels-annotations-taints/#pod-deletion-cost"""


def pointer(annotation: str) -> str:
    """Where an annotation stands."""
    return f"/metadata/annotations/{escape(annotation)}"


def annotations_of(data: Data) -> dict[str, Any]:
    return dict((data.get("metadata") or {}).get("annotations") or {})


def borrow_of(data: Data) -> Borrow | str | None:
    """What the annotation on a donor says; why it cannot be read; None without it."""
    text = annotations_of(data).get(BORROWED)
    return None if text is None else decode_borrow(str(text))
