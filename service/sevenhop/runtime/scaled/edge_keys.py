"""
Whether the edge of a cluster has the key that belongs to ours: it signs each tick, so that is known before any order.

Without this a run would learn it from answers that never count, 25 s each.  It decides nothing alone: a tick that does
not fit may be anybody's, so it is believed only while none comes that fits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from time import monotonic

from sevenhop.runtime.scaled.signing import is_signed_for, signature_in

log = logging.getLogger("sevenhop.worker")

COUNTS_FOR_S = 10.0
"""An edge ticks each second; one that was replaced, or has another key since, has shown it by then."""


class _Shown:
    def __init__(self) -> None:
        self.fitted_at: float | None = None
        self.differed_at: float | None = None
        self.why = ""
        self.is_said = False


class EdgeKeys:
    """
    A worker's.

    Args:
        key: Of the workers; empty where nothing is signed, and then an edge is to sign nothing either.
        now: Seconds.
    """

    def __init__(self, key: str, now: Callable[[], float] = monotonic) -> None:
        self._key = key
        self._now = now
        self._shown: dict[str, _Shown] = {}

    def heard(self, cluster: str, value: bytes | None, headers: Sequence[tuple[str, bytes]]) -> None:
        """A tick of a cluster's edge, as its record."""
        shown = self._shown.setdefault(cluster, _Shown())
        why = self._why_other(cluster, value, headers)
        if not why:
            shown.fitted_at = self._now()
            if shown.is_said:
                shown.is_said = False
                log.warning("the key of the edge of %s fits again", cluster)
            return
        shown.differed_at, shown.why = self._now(), why
        if not shown.is_said and self.doubt(cluster):
            shown.is_said = True
            log.error("%s; until then nothing is ordered there", why)

    def doubt(self, cluster: str) -> str:
        """Why nothing can be ordered at a cluster's edge; empty where it can, or nothing is known of its key."""
        shown = self._shown.get(cluster)
        if shown is None or not self._is_recent(shown.differed_at) or self._is_recent(shown.fitted_at):
            return ""
        return shown.why

    def _is_recent(self, at: float | None) -> bool:
        return at is not None and self._now() - at <= COUNTS_FOR_S

    def _why_other(self, cluster: str, value: bytes | None, headers: Sequence[tuple[str, bytes]]) -> str:
        signature = signature_in(headers)
        if not self._key:
            return (
                f"the edge of {cluster} signs what it says and takes no order that is not signed: give the workers "
                "their runtime.decision_key"
                if signature
                else ""
            )
        if not signature:
            return (
                f"the edge of {cluster} signs nothing: give it as runtime.decision_key what `sevenhop edge-key "
                f"{cluster}` makes of that of the workers, or upgrade it"
            )
        if not is_signed_for(self._key, cluster, value, signature):
            return (
                f"the edge of {cluster} signs with another key: its runtime.decision_key has to be what `sevenhop "
                f"edge-key {cluster}` makes of that of the workers"
            )
        return ""
