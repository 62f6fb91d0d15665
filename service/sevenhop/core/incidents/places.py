"""Which alerts count in which incident, and what left an incident since it was last looked at."""

from __future__ import annotations

import msgspec


class Departures(msgspec.Struct):
    """
    What left one incident.

    Attributes:
        reasons: Why its causes ended or moved.
        orphans: Symptoms that moved away and still fire.
    """

    reasons: list[str] = msgspec.field(default_factory=list)
    orphans: int = 0


class Places:
    """Fingerprint to incident and back; every alert is in one place at most."""

    def __init__(self) -> None:
        self._at: dict[str, tuple[str, bool]] = {}
        self._causes: dict[str, dict[str, None]] = {}
        self._symptoms: dict[str, dict[str, None]] = {}
        self._left: dict[str, Departures] = {}

    def of(self, fingerprint: str) -> tuple[str, bool] | None:
        """(key of the incident, whether it counts as a cause); None where it is in none yet."""
        return self._at.get(fingerprint)

    def causes(self, key: str) -> list[str]:
        """Fingerprints, in order."""
        return sorted(self._causes.get(key, ()))

    def symptoms(self, key: str) -> list[str]:
        """Fingerprints, in order."""
        return sorted(self._symptoms.get(key, ()))

    def count(self, key: str) -> int:
        """Of causes."""
        return len(self._causes.get(key, ()))

    def join(self, fingerprint: str, key: str, *, is_cause: bool) -> None:
        (self._causes if is_cause else self._symptoms).setdefault(key, {})[fingerprint] = None
        self._at[fingerprint] = (key, is_cause)

    def leave(self, fingerprint: str) -> tuple[str, bool] | None:
        """Take an alert out of its place; returns where it was."""
        before = self._at.pop(fingerprint, None)
        if before is not None:
            key, is_cause = before
            group = self._causes if is_cause else self._symptoms
            there = group[key]
            del there[fingerprint]
            if not there:
                del group[key]
        return before

    def note_end(self, key: str, reason: str) -> None:
        """An alert of this incident ended, or moved to another one."""
        self._left.setdefault(key, Departures()).reasons.append(reason)

    def note_orphan(self, key: str) -> None:
        """A symptom lost its cause here, and still fires."""
        self._left.setdefault(key, Departures()).orphans += 1

    def take_departures(self, key: str) -> Departures:
        """What left since the last call."""
        return self._left.pop(key, None) or Departures()
