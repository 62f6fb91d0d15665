"""The agent's own log: what is missing is said once, and once more when it is back; nothing repeats itself."""

from __future__ import annotations

import logging
from collections.abc import Iterable

log = logging.getLogger("sevenhop.agent")

MAX_LINES = 200
"""Different things said while they last; what comes beyond is only counted."""


class Said:
    """What was said and still holds."""

    def __init__(self) -> None:
        self._standing: dict[str, None] = {}
        self.unsaid = 0

    def update(self, problems: Iterable[str]) -> None:
        """Log what is new among all problems of now, and what has ended."""
        now = dict.fromkeys(problems)
        for problem in now:
            if problem not in self._standing:
                if len(self._standing) >= MAX_LINES:
                    self.unsaid += 1
                    continue
                self._standing[problem] = None
                log.warning("%s", problem)
        for problem in [each for each in self._standing if each not in now]:
            del self._standing[problem]
            log.info("no longer: %s", problem)
