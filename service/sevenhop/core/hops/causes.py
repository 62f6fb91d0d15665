"""
The published causes of every hop, in one table; docs/reference/causes is rendered from it.
"""

from __future__ import annotations

from sevenhop.core.hops import causes_scheduling
from sevenhop.core.hops.cause import Cause as Cause
from sevenhop.core.hops.cause import Strength as Strength
from sevenhop.core.hops.cause import table
from sevenhop.core.hops.causes_device import DEVICE_CAUSES
from sevenhop.core.hops.causes_model import MODEL_CAUSES, SERVING_CAUSES
from sevenhop.core.hops.causes_startup import STARTUP_CAUSES

CAUSES: dict[str, Cause] = table(
    *DEVICE_CAUSES.values(),
    *causes_scheduling.CAUSES.values(),
    *STARTUP_CAUSES.values(),
    *MODEL_CAUSES.values(),
    *SERVING_CAUSES.values(),
)
"""Slug to row; of equally strong causes on one hop the earlier row wins."""
