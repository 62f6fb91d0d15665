"""While a broker is away aiokafka repeats itself thousands of times a second; once in a while is enough."""

from __future__ import annotations

import logging
from time import monotonic

EVERY_S = 10.0
_LOGGERS = ("aiokafka", "aiokafka.producer.sender", "aiokafka.client", "aiokafka.conn", "aiokafka.cluster",
            "aiokafka.consumer.group_coordinator", "aiokafka.consumer.fetcher", "faust", "mode")  # fmt: skip


class OnceInAWhile(logging.Filter):
    """Lets the same text (before its arguments are put in) through once in `EVERY_S` seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[object, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = monotonic()
        if now - self._last.get(record.msg, -EVERY_S) < EVERY_S:
            return False
        if len(self._last) > 1000:
            self._last.clear()
        self._last[record.msg] = now
        return True


def quieten() -> None:
    """For this process; fine to call twice."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(each, OnceInAWhile) for each in logger.filters):
            logger.addFilter(OnceInAWhile())
        if "." not in name:
            logger.setLevel(logging.WARNING)
