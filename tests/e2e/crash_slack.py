"""The Slack of the kill tests: a process that stays up, known by the log of what it was asked and answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tests.e2e.crash_processes import Json, ask, module


@dataclass(frozen=True)
class Body:
    """What a message said at one time; `identity` names the transition, as `Parcel.identity` does."""

    status: str
    identity: tuple[str, str]
    content: str


@dataclass
class Shown:
    """
    A message in the Slack channel.

    Attributes:
        cause: The incident's cause, such as ``component:prod/lane-1/engine``.
        bodies: What it said, post and edits, oldest first.
    """

    ts: str
    cause: str
    thread_ts: str
    bodies: list[Body] = field(default_factory=list)

    @property
    def status(self) -> str:
        return self.bodies[-1].status


class Slack:
    """The local Slack, known by the log of what it was asked and answered."""

    def __init__(self, base_url: str, log: Path) -> None:
        self.base_url = base_url
        self.messages: dict[str, Shown] = {}
        self.taken: set[tuple[str, datetime]] = set()  # identities of messages that were accepted
        self.held = 0  # calls that were left without an answer so far
        self._log = log
        self._read_bytes = 0

    def read(self) -> None:
        """Take in what is new in the log."""
        if not self._log.exists():
            return
        with self._log.open("rb") as log:
            log.seek(self._read_bytes)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._read_bytes += len(line)
                self._take(json.loads(line))

    def _take(self, entry: Json) -> None:
        if entry.get("fault", "").startswith("timeout"):
            self.held += 1
        answer, body = entry.get("answer") or {}, entry["body"]
        if not answer.get("ok") or entry["method"] not in ("chat.postMessage", "chat.update"):
            return
        ts = answer["ts"] if entry["method"] == "chat.postMessage" else body["ts"]
        payload = (body.get("metadata") or {}).get("event_payload", {})
        shown = self.messages.setdefault(ts, Shown(ts, payload.get("cause", ""), body.get("thread_ts", "")))
        content = json.dumps([body.get("text"), body.get("blocks")], sort_keys=True)
        identity = (payload.get("effect", ""), payload.get("at", ""))
        shown.bodies.append(Body(payload.get("status", ""), identity, content))
        if payload.get("effect"):
            self.taken.add((payload["effect"], datetime.fromisoformat(payload["at"])))

    def of(self, cause: str) -> list[Shown]:
        """Messages about a cause, without threads."""
        return [shown for shown in self.messages.values() if shown.cause == cause and not shown.thread_ts]

    def thread_of(self, parent: Shown) -> list[Shown]:
        return [shown for shown in self.messages.values() if shown.thread_ts == parent.ts]

    def hold(self, method: str, *, after_taking: bool, after_others: int = 0) -> None:
        """
        Leave a call of a method without an answer, before or after doing what it asks for.

        Args:
            after_others: So many calls of the method are answered first.
        """
        kind = "timeout_after" if after_taking else "timeout_before"
        faults = [{"method": method, "kind": "pass"}] * after_others + [{"method": method, "kind": kind}]
        ask("POST", self.base_url.replace("/api/", "/_fake/faults"), faults)


@contextmanager
def slack(folder: Path) -> Iterator[Slack]:
    log = folder / "slack.jsonl"
    with module("tests.fakes.slack_server", "--port", "0", "--log", str(log)) as url:
        yield Slack(url, log)
