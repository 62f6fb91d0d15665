"""
How properties are tried, and how tests speak.

CI tries the same examples each time: a failure there is a change of the code, never luck.  On a laptop they are random
and remembered; `HYPOTHESIS_PROFILE=soak` tries twenty times as many.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.saying import Reading, say

__all__ = ["say"]

_SLOW_MACHINE = [HealthCheck.too_slow]

settings.register_profile("laptop", deadline=None, suppress_health_check=_SLOW_MACHINE)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, suppress_health_check=_SLOW_MACHINE)
settings.register_profile("soak", deadline=None, max_examples=2000, suppress_health_check=_SLOW_MACHINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "laptop"))


def pytest_configure(config: pytest.Config) -> None:
    """Listen to what tests say in workers of xdist."""
    config.pluginmanager.register(Reading(config))
