"""Kubernetes Events by the object that they are about, and what autoscalers said in them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from sevenhop.core.hops.scheduler_text_autoscaler import read_autoscaler
from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.cluster import Event

About = tuple[str, str, str]
"""(bare kind, namespace, name)"""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_WORDS = {
    "autoscaler-adding": "adding",
    "autoscaler-maxed": "maxed",
    "autoscaler-backoff": "backoff",
}
_REPORTERS = ("cluster-autoscaler", "karpenter")


class ScaleWord(msgspec.Struct, frozen=True, gc=False):
    """What an autoscaler last said about one pod: adding, maxed, backoff or idle."""

    at: datetime
    word: str


class Evidence:
    """Mutable; `seen_autoscaler` stays true once any spoke."""

    def __init__(self) -> None:
        self._about: dict[About, dict[Key, Event]] = {}
        self.seen_autoscaler = False

    def put(self, before: Event | None, event: Event) -> About:
        """Keep an Event; returns what it is about."""
        if before is not None:
            self.drop(before)
        about = about_of(event)
        self._about.setdefault(about, {})[event.metadata.key] = event
        self.seen_autoscaler = self.seen_autoscaler or _is_autoscaler(event)
        return about

    def drop(self, event: Event) -> About:
        about = about_of(event)
        here = self._about.get(about, {})
        here.pop(event.metadata.key, None)
        if not here:
            self._about.pop(about, None)
        return about

    def has(self, about: About) -> bool:
        """Whether any Event tells of the object."""
        return about in self._about

    def about(self, kind: str, key: Key, uid: str = "") -> list[Event]:
        """Events of one object, the oldest first; with a `uid`, not those of an earlier object of the same name."""
        here: Iterable[Event] = self._about.get((kind, *key), {}).values()
        mine = [e for e in here if not uid or not e.about.uid or e.about.uid == uid]
        return sorted(mine, key=lambda e: (e.last_seen or _LONG_AGO, e.metadata.name))

    def autoscaler(self, pod: Key, uid: str, since: datetime | None) -> ScaleWord | None:
        """The last that an autoscaler said about a pod since it waits."""
        for event in reversed(self.about("Pod", pod, uid)):
            at = event.last_seen or _LONG_AGO
            if not _is_autoscaler(event) or (since is not None and at < since):
                continue
            verdict = read_autoscaler(f"{event.reason}: {event.text}") or read_autoscaler(event.text)
            return ScaleWord(at, _WORDS.get(verdict[0], "idle") if verdict is not None else "idle")
        return None


def about_of(event: Event) -> About:
    about = event.about
    return (about.kind, about.namespace, about.name)


def _is_autoscaler(event: Event) -> bool:
    reporter = event.reporting_component or (event.source.component if event.source else "")
    return reporter.startswith(_REPORTERS) or event.reason in ("TriggeredScaleUp", "NotTriggerScaleUp")
