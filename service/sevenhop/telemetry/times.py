"""How long one step took; a module of its own, so that who only measures does not load a metrics library."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class StepTimes(NamedTuple):
    """
    Attributes:
        began, stored: By the runtime's clock, UTC.
        engine_s, store_s: Real seconds.
    """

    began: datetime
    stored: datetime
    engine_s: float
    store_s: float
