"""What the desk of one cluster holds: its open incidents, the alerts in them, and what is still to be done."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.incidents.decisions import DecisionLog
from sevenhop.core.incidents.incident import Incident
from sevenhop.core.incidents.keeping import EPISODES, EPISODES_KEPT, INCIDENTS, SILENCES, Episode
from sevenhop.core.incidents.members import Member, Members
from sevenhop.core.incidents.places import Places
from sevenhop.core.incidents.plans import NoPlans, Plans
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.incidents.silences import Silence
from sevenhop.core.incidents.wakes import Wakes

ADOPT_WITHIN = timedelta(hours=1)
"""After an empty start: what opens within this may have been told before, and is looked for in the channel."""

PROBLEMS_KEPT = 50


class DeskState:
    """
    Mutable, owned by one desk.

    Attributes:
        problems: What could not be made sense of, the newest last.
        incidents: By key: the open ones, and those that ended lately.
        episodes: By key, the longest unused first.
        silences: By id.
        elsewhere: Key to the key of the incident that explains what it was about.
        touched: Keys to be told, or not, at the next step.
        unsettled: Fingerprints to be put where they belong at the next step.
        dirty: (table, key) of rows that are to be stored.
        loaded: Keys whose appointments are still to be made after a start.
        attended: Of large incidents: when they were last looked at as a whole.
        urgent: Keys of large incidents that are not to wait.
        began_empty: Whether nothing was known at the start, or of it was kept that nothing was known.
        empty_since: When that was.  Kept: a crash soon after an empty start must not end the doubt.
        began_at: Time of the first step.
    """

    def __init__(self, settings: DeskSettings, cluster: str, rules: Iterable[Rule]) -> None:
        self.settings = settings
        self.cluster = cluster
        self.rules = {rule.id: rule for rule in rules}
        self.decisions = DecisionLog()
        self.problems: list[str] = []
        self.members = Members(cluster)
        self.places = Places()
        self.incidents: dict[str, Incident] = {}
        self.episodes: dict[str, Episode] = {}
        self.silences: dict[str, Silence] = {}
        self.elsewhere: dict[str, str] = {}
        self.touched: set[str] = set()
        self.unsettled: set[str] = set()
        self.dirty: dict[tuple[str, str], None] = {}
        self.wakes = Wakes()
        self.loaded: list[str] = []
        self.attended: dict[str, datetime] = {}
        self.urgent: set[str] = set()
        self.plans: Plans = NoPlans()
        self.began_empty = True
        self.empty_since: datetime | None = None
        self.began_at: datetime | None = None

    def causes(self, key: str) -> list[Member]:
        """Firing alerts whose cause an incident is; empty for an unknown one."""
        return [self.members[fp] for fp in self.places.causes(key)]

    def symptoms(self, key: str) -> list[Member]:
        """Firing alerts that an incident explains; empty for an unknown one."""
        return [self.members[fp] for fp in self.places.symptoms(key)]

    def may_have_forgotten(self, now: datetime) -> bool:
        """Whether the state began empty lately: a channel may show incidents that we know nothing of."""
        return self.began_empty and (self.empty_since is None or now <= self.empty_since + ADOPT_WITHIN)

    def put(self, incident: Incident) -> Incident:
        """Keep an incident as it is now."""
        if self.incidents.get(incident.key) != incident:
            self.incidents[incident.key] = incident
            self.dirty[(INCIDENTS, incident.key)] = None
        return incident

    def forget(self, key: str) -> None:
        """An incident is over for good."""
        del self.incidents[key]
        self.places.take_departures(key)
        self.elsewhere.pop(key, None)
        self.attended.pop(key, None)
        self.urgent.discard(key)
        self.wakes.put(key, None)
        self.dirty[(INCIDENTS, key)] = None

    def count(self, key: str, episode: int, now: datetime) -> None:
        """The newest episode of a key."""
        self.episodes.pop(key, None)
        self.episodes[key] = Episode(episode, now)
        self.dirty[(EPISODES, key)] = None
        if len(self.episodes) > EPISODES_KEPT:
            oldest = min(self.episodes, key=lambda k: (k in self.incidents, self.episodes[k].at, k))
            del self.episodes[oldest]
            self.dirty[(EPISODES, oldest)] = None

    def put_silence(self, silence: Silence) -> None:
        """A silence as it is now; every open incident may be told otherwise because of it."""
        self.silences[silence.id] = silence
        self._silence_changed(silence.id)

    def drop_silence(self, name: str) -> None:
        """It is over."""
        del self.silences[name]
        self._silence_changed(name)

    def _silence_changed(self, name: str) -> None:
        self.dirty[(SILENCES, name)] = None
        self.touched |= {key for key, incident in self.incidents.items() if incident.is_open}

    def complain(self, problem: str) -> None:
        self.problems.append(problem)
        del self.problems[:-PROBLEMS_KEPT]
