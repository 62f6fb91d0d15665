"""Who plays in the demo, and what they may decide."""

from __future__ import annotations

from datetime import datetime

from sevenhop.core.remediation.person import Person

PLAYBOOK = "free-gpu-capacity"
ONCALL = "llm-oncall"
"""The Kubernetes group that may approve; in the demo the reader plays one of them."""


def you(now: datetime) -> Person:
    """The reader, on call."""
    return Person(id="kubernetes:you", name="you", groups=(f"kubernetes-group:{ONCALL}",), verified_at=now)


def guest(now: datetime) -> Person:
    """Somebody who reads the same channel and is not on call."""
    return Person(id="kubernetes:guest", name="guest", groups=("kubernetes-group:interns",), verified_at=now)
