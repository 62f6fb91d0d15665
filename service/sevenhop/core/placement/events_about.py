"""Kubernetes Events by the object that they are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.cluster import Event


def recency(event: Event) -> tuple[float, str]:
    """
    To sort Events by, the newest last.

    Several of one second stand by their names: in the order of arrival they would be told otherwise in every replay.
    """
    seen = event.last_seen
    return (seen.timestamp() if seen is not None else 0.0), event.metadata.name


class EventsAbout:
    """Grouped when first asked for, and kept current from then on."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._about: dict[Key, dict[Key, Event]] | None = None

    def of(self, key: Key) -> list[Event]:
        """Events about the object of that namespace and name, in the order of `recency`."""
        if self._about is None:
            self._about = {}
            for each, event in cast("Mapping[Key, Event]", self._objects.of("Event")).items():
                self._about.setdefault((event.about.namespace, event.about.name), {})[each] = event
        return sorted(self._about.get(key, {}).values(), key=recency)

    def update(self, key: Key) -> None:
        """This Event came, changed or went."""
        if self._about is None:
            return
        event = self._objects.of("Event").get(key)
        if isinstance(event, Event):
            self._about.setdefault((event.about.namespace, event.about.name), {})[key] = event
        else:
            for about in self._about.values():
                about.pop(key, None)
