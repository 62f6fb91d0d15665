"""How long to wait after a failure."""

from __future__ import annotations

import random


class Backoff:
    """
    Exponential with full jitter: each pause is anywhere between nothing and twice the last bound, up to a cap.

    Full jitter spreads the clients of an API server that has just come back; see "Exponential Backoff And Jitter"
    of the AWS Architecture Blog.
    """

    def __init__(self, base_s: float, cap_s: float, rng: random.Random) -> None:
        self._base_s = base_s
        self._cap_s = cap_s
        self._rng = rng
        self.failures = 0

    def next_s(self, at_least_s: float = 0.0) -> float:
        """
        Seconds to wait now; `at_least_s` is what the server asked for (``Retry-After``).
        """
        bound = min(self._cap_s, self._base_s * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return at_least_s + self._rng.uniform(0.0, bound)

    def reset(self) -> None:
        self.failures = 0
