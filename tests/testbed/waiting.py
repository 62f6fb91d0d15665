"""Waiting for what happens in other processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T | None], *, timeout: float = 30, every: float = 0.05, what: str = "it") -> T:
    """Call `look` until it returns something true, and return that; TimeoutError if it never does."""
    deadline = time.monotonic() + timeout
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {timeout:g} s")
        time.sleep(every)
    return found
