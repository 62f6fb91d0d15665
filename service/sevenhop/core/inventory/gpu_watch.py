"""How much of a pool went bad within ten minutes: a sum kept current node by node."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.inventory.gpu_agent import AGENT

WINDOW = timedelta(minutes=10)
NO_AGENT = Unknown(UnknownReason.NO_SOURCE, "gpu agent")


class Share(msgspec.Struct, frozen=True, gc=False):
    """
    One node's GPUs of one pool.

    Attributes:
        since: Since when its agent speaks without a gap; None while it is silent.
        bad_at: When each GPU that is bad now went bad, where that was seen.
    """

    gpus: int
    since: datetime | None
    bad_at: tuple[datetime, ...] = ()


class PoolWatch:
    """
    Mutable, owned by one inventory.

    A node counts once its agent has spoken for the whole window: what happened before is not known.  The ratio is
    known while such nodes have at least half of the GPUs that agents ever told of.
    """

    def __init__(self) -> None:
        self._shares: dict[str, dict[str, Share]] = {}
        self._total: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._young: dict[str, dict[str, None]] = {}
        self._bad: dict[str, dict[str, None]] = {}

    def put(self, node: str, shares: dict[str, Share]) -> set[str]:
        """What a node's agent tells now, by pool; returns the pools whose ratio may have changed."""
        touched: set[str] = set()
        known = [pool for pool, nodes in self._shares.items() if node in nodes]
        for pool in {*known, *shares}:
            before, after = self._shares.get(pool, {}).get(node), shares.get(pool)
            if before == after:
                continue
            touched.add(pool)
            self._count_out(pool, node, before)
            self._count_in(pool, node, after)
        return touched

    def ratio(self, pool: str, now: datetime) -> tuple[float | Unknown, datetime | None]:
        """(the share that went bad within the window, when time alone next changes it)"""
        shares = self._shares.get(pool)
        if not shares:
            return NO_AGENT, None
        wakes = self._age(pool, now)
        settled = self._settled.get(pool, 0)
        young = sum(shares[node].gpus for node in self._young.get(pool, ()))
        silent = self._total[pool] - settled - young
        wake = min(wakes, default=None)
        if settled == 0 or settled < young + silent:
            if young >= silent:
                return Unknown(UnknownReason.WINDOW, f"{AGENT}s have not spoken for 10 minutes yet"), wake
            return Unknown(UnknownReason.STALE, f"most {AGENT}s of the pool are silent"), wake
        young_nodes = self._young.get(pool, {})
        times = [at for node in self._bad.get(pool, ()) if node not in young_nodes for at in shares[node].bad_at]
        ends = [at + WINDOW for at in times if now < at + WINDOW]
        wake = min((at for at in (wake, *ends) if at is not None), default=None)
        return len(ends) / settled, wake

    def _age(self, pool: str, now: datetime) -> list[datetime]:
        """Nodes that are watched long enough by now count; returns when the others will."""
        young = self._young.get(pool)
        wakes: list[datetime] = []
        for node in list(young or ()):
            share = self._shares[pool][node]
            assert share.since is not None, "only those that speak are young"
            if now >= share.since + WINDOW:
                del self._young[pool][node]
                self._settled[pool] = self._settled.get(pool, 0) + share.gpus
            else:
                wakes.append(share.since + WINDOW)
        return wakes

    def _count_out(self, pool: str, node: str, share: Share | None) -> None:
        if share is None:
            return
        del self._shares[pool][node]
        self._total[pool] -= share.gpus
        if share.since is not None and node not in self._young.get(pool, {}):
            self._settled[pool] -= share.gpus
        self._young.get(pool, {}).pop(node, None)
        self._bad.get(pool, {}).pop(node, None)
        if not self._shares[pool]:
            del self._shares[pool], self._total[pool]
            self._settled.pop(pool, None)
            self._young.pop(pool, None)
            self._bad.pop(pool, None)

    def _count_in(self, pool: str, node: str, share: Share | None) -> None:
        if share is None:
            return
        self._shares.setdefault(pool, {})[node] = share
        self._total[pool] = self._total.get(pool, 0) + share.gpus
        if share.since is not None:
            self._young.setdefault(pool, {})[node] = None
        if share.bad_at and share.since is not None:
            self._bad.setdefault(pool, {})[node] = None
