"""
The dead man's switch: somebody else is told that we are well, and notices when that ends.

A heartbeat says more than that a process exists: it is withheld while the engine makes no progress or state cannot be
stored, because then nobody is told of anything.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import msgspec

from sevenhop.telemetry.meter import Meter
from sevenhop.telemetry.settings import HeartbeatSettings
from sevenhop.telemetry.table import HeartbeatOutcome
from sevenhop.version import __version__

log = logging.getLogger("sevenhop.heartbeat")

MISSED = 4
"""An alert in Alertmanager outlives so many heartbeats, as Prometheus' own do (rules/alerting.go, resend delay)."""

FIRST_RETRY_S = 5.0
ALERT = "SevenhopAlive"
NOBODY = (
    "Nobody would notice if Sevenhop died: no heartbeat is configured. Set telemetry.heartbeat.url to a service that "
    "expects one, or to an Alertmanager."
)


class HeartbeatStatus(msgspec.Struct, frozen=True, kw_only=True):
    """
    For `doctor`.

    Attributes:
        text: One sentence for people: who would notice our death, or that nobody would.
        problem: Why the last one was not taken, or withheld; empty while all is well.
    """

    configured: bool
    type: str = ""
    every_s: int = 0
    last_success_at: datetime | None = None
    problem: str = ""
    text: str = NOBODY


class Heartbeat:
    """
    Args:
        unwell: Why we are not well; empty while we are.
        role: Part of the scaled runtime; empty where one process is all of it.
        clusters: Clusters that this process serves well now, beside its own: of each an Alertmanager is told by itself.
    """

    def __init__(
        self,
        settings: HeartbeatSettings,
        cluster: str,
        meter: Meter,
        unwell: Callable[[], str],
        now: Callable[[], datetime],
        *,
        role: str = "",
        clusters: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._meter = meter
        self._unwell = unwell
        self._now = now
        self._role = role
        self._clusters = clusters
        self._session: aiohttp.ClientSession | None = None
        self._began = now()
        self.last_success_at: datetime | None = None
        self.problem = ""

    @property
    def is_configured(self) -> bool:
        return self._settings.url is not None

    def status(self) -> HeartbeatStatus:
        """How it is doing."""
        if not self.is_configured:
            return HeartbeatStatus(configured=False)
        last = self.last_success_at
        said = f"last taken at {last:%Y-%m-%dT%H:%M:%SZ}" if last is not None else "not taken yet"
        every_s = int(self._settings.every.total_seconds())
        whom = "an Alertmanager" if self._settings.type == "alertmanager" else "a webhook"
        return HeartbeatStatus(
            configured=True,
            type=self._settings.type,
            every_s=every_s,
            last_success_at=last,
            problem=self.problem,
            text=f"Heartbeat to {whom} every {every_s} s: {said}"
            + (f"; the last one was not: {self.problem}" if self.problem else ""),
        )

    async def run(self) -> None:
        """Beat until cancelled; returns at once where nobody is to be told."""
        every_s = self._settings.every.total_seconds()
        failures = 0
        while self.is_configured:
            outcome = await self.beat()
            self._meter.heartbeat(outcome)
            failures = failures + 1 if outcome is HeartbeatOutcome.FAILED else 0
            # What fails is tried again sooner: the other side counts the seconds.
            again_s = min(every_s, FIRST_RETRY_S * 2 ** min(failures - 1, 16)) if failures else every_s
            await asyncio.sleep(again_s)

    async def beat(self) -> HeartbeatOutcome:
        """One heartbeat to all addresses; one that takes it is enough."""
        unwell = self._unwell()
        if unwell:
            self._say(f"withheld, because {unwell}")
            return HeartbeatOutcome.WITHHELD
        addresses = [self._settings.url, *self._settings.also]
        answers = await asyncio.gather(*(self._post(a.get_secret_value()) for a in addresses if a is not None))
        problems = "; ".join(answer for answer in answers if answer)
        self._say(problems)
        if all(answers):
            return HeartbeatOutcome.FAILED
        self.last_success_at = self._now()
        return HeartbeatOutcome.SENT

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _say(self, problem: str) -> None:
        if problem and not self.problem:
            log.warning("heartbeat: %s", problem)
        elif self.problem and not problem:
            log.info("heartbeat is taken again")
        self.problem = problem

    async def _post(self, address: str) -> str:
        """Why it was not taken; empty if it was.  Never the address, nor an error's own text: both may hold a token."""
        if self._settings.type == "alertmanager":
            address = address.rstrip("/").removesuffix("/api/v2/alerts") + "/api/v2/alerts"
            body: Any = [self._alert(cluster) for cluster in dict.fromkeys((self._cluster, *self._clusters()))]
        else:
            body = self._news()
        try:
            async with self._open().post(
                address,
                data=io.BytesIO(json.dumps(body, separators=(",", ":")).encode()),
                headers={"Content-Type": "application/json", "User-Agent": f"sevenhop/{__version__}"},
                allow_redirects=False,
            ) as answer:
                return "" if 200 <= answer.status < 300 else f"HTTP {answer.status}"
        except TimeoutError:
            return "no answer in time"
        except (aiohttp.ClientError, OSError, UnicodeError, ValueError) as error:
            return f"cannot be reached ({type(error).__name__})"

    def _news(self) -> dict[str, Any]:
        return {
            "source": "sevenhop",
            "version": __version__,
            "cluster": self._cluster,
            **({"role": self._role, "clusters": sorted(self._clusters())} if self._role else {}),
            "status": "alive",
            "at": _text(self._now()),
            "every_s": int(self._settings.every.total_seconds()),
        }

    def _alert(self, cluster: str) -> dict[str, Any]:
        """Fires as long as it is told; its end is set ahead, so that it resolves when nobody tells it any more."""
        every = self._settings.every
        who = {name: value for name, value in (("cluster", cluster), ("role", self._role)) if value}
        return {
            "labels": {"alertname": ALERT, **who, "severity": "none"},
            "annotations": {
                "summary": f"Sevenhop watches {cluster}" if cluster else f"A {self._role} of Sevenhop works",
                "description": "Always firing. Route it to whoever notices that it stops: then Sevenhop is dead.",
            },
            "startsAt": _text(self._began),
            "endsAt": _text(self._now() + max(MISSED * every, timedelta(minutes=1))),
        }

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=self._settings.timeout.total_seconds())
            self._session = aiohttp.ClientSession(timeout=timeout, trust_env=True)
        return self._session


def _text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
