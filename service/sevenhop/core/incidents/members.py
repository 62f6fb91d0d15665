"""The firing alerts of one cluster, and which incident each of them is at home in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

import msgspec

from sevenhop.core.alerts.alert import Alert
from sevenhop.core.alerts.rule import Rule, Severity
from sevenhop.core.incidents.cause import MAINTENANCE, cause_of, family_of
from sevenhop.core.incidents.context import Contexts
from sevenhop.core.incidents.incident import incident_key
from sevenhop.core.incidents.inhibit import Party, explained_by, roots
from sevenhop.core.incidents.reach import Reach, reach_of
from sevenhop.core.incidents.severity import of_alert
from sevenhop.core.inventory.objects import Key
from sevenhop.core.subject import Hop, Subject, SubjectKind

_SERVES = frozenset((SubjectKind.COMPONENT, SubjectKind.WORKLOAD, SubjectKind.SERVICE, SubjectKind.ROUTE))


class Home(msgspec.Struct, frozen=True, gc=False):
    """Identity of an incident in words."""

    cause: Subject
    family: str

    def key(self, cluster: str) -> str:
        return incident_key(cluster, self.cause, self.family)


class Member(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One firing alert.

    Attributes:
        home: Where it belongs while nothing explains it and nobody works on its node.
    """

    alert: Alert
    rule: Rule | None
    hop: Hop | None
    home: Home
    severity: Severity

    @property
    def hits_users(self) -> bool:
        """Whether something critical does less than it must, beside the devices and nodes below it."""
        return self.severity is Severity.CRITICAL and self.alert.subject.kind in _SERVES


class Members:
    """
    Mutable, owned by the desk.

    Only what changed is looked at again: an alert itself, and those that share a pod with it.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._members: dict[str, Member] = {}
        self._reach: dict[str, Reach | None] = {}
        self._on_pod: dict[Key, dict[str, None]] = {}
        self._explained: dict[str, tuple[str, ...]] = {}
        self._explains: dict[str, dict[str, None]] = {}
        self._folded: dict[str, str] = {}  # fingerprint → node under maintenance
        self._unseen: set[str] = set()  # loaded, reach not yet computed

    def __contains__(self, fingerprint: str) -> bool:
        return fingerprint in self._members

    def __getitem__(self, fingerprint: str) -> Member:
        return self._members[fingerprint]

    def get(self, fingerprint: str) -> Member | None:
        return self._members.get(fingerprint)

    def all(self) -> Mapping[str, Member]:
        return self._members

    def put(self, alert: Alert, rule: Rule | None) -> None:
        """Take in a firing alert as it is now; `settle` then says where it belongs."""
        fingerprint = alert.fingerprint
        before = self._members.get(fingerprint)
        if rule is None and before is not None:
            rule = before.rule
        if rule is None:
            home = Home(alert.subject, "unknown")
        else:
            home = Home(cause_of(rule, alert), family_of(rule))
        self._members[fingerprint] = Member(
            alert=alert, rule=rule, hop=rule.hop if rule else None, home=home, severity=of_alert(rule, alert)
        )

    def load(self, alert: Alert, rule: Rule | None, explained: tuple[str, ...], folded: str) -> None:
        """A firing alert from the store, where it was; it moves only once its pods can be seen."""
        self.put(alert, rule)
        fingerprint = alert.fingerprint
        self._unseen.add(fingerprint)
        if explained:
            self._explain(fingerprint, explained)
        if folded:
            self._folded[fingerprint] = folded

    def forget_missing(self) -> set[str]:
        """After `load`: let go of explanations by alerts that are not here; returns those to be settled again."""
        affected = {fp for by, explained in self._explains.items() if by not in self._members for fp in explained}
        for fingerprint in affected:
            self._explain(fingerprint, tuple(by for by in self._explained[fingerprint] if by in self._members))
        return self.following(affected)

    def drop(self, fingerprint: str) -> set[str]:
        """Forget an alert that ended; returns those to be settled again."""
        affected = self._near(self._reach.get(fingerprint)) | set(self._explains.get(fingerprint, ()))
        self._index(fingerprint, None)
        self._reach.pop(fingerprint, None)
        self._explain(fingerprint, ())
        for symptom in list(self._explains.pop(fingerprint, ())):
            rest = tuple(by for by in self._explained.get(symptom, ()) if by != fingerprint)
            self._explain(symptom, ())
            if rest:
                self._explain(symptom, rest)
        self._folded.pop(fingerprint, None)
        self._unseen.discard(fingerprint)
        self._members.pop(fingerprint, None)
        return affected - {fingerprint}

    def look(self, fingerprint: str, contexts: Contexts, now: datetime) -> set[str]:
        """See which pods an alert is about now; returns those to be settled again."""
        member = self._members[fingerprint]
        before = self._reach.get(fingerprint)
        context = contexts.context(member.alert.subject, now, brief=True)
        seen = reach_of(member.alert.subject, member.hop, context)
        if seen is None:
            self._reach.setdefault(fingerprint, None)
            return {fingerprint}
        self._unseen.discard(fingerprint)
        self._index(fingerprint, seen)
        self._reach[fingerprint] = seen
        if before == seen:
            return {fingerprint}
        return {fingerprint, *self._near(before), *self._near(seen), *self._explains.get(fingerprint, ())}

    def settle(
        self, fingerprints: Iterable[str], stands: Callable[[str], bool], contexts: Contexts, now: datetime
    ) -> None:
        """
        Decide anew what explains these, and which are folded under maintenance.

        Args:
            stands: Whether the incident of a key is open and past its first wait: maintenance that begins afterwards is
                most likely the answer to it, and hides nothing.
        """
        for fingerprint in sorted(fp for fp in set(fingerprints) if fp in self._members):
            self._settle(fingerprint, contexts, now)
            self._fold(fingerprint, stands)

    def place(self, fingerprint: str) -> tuple[Home, bool]:
        """(the incident where an alert counts, whether as a cause)"""
        root = roots(self._explained, fingerprint)
        node = self._folded.get(root)
        if node:
            return Home(Subject(SubjectKind.NODE, "", node), MAINTENANCE), root == fingerprint
        return self._members[root].home, root == fingerprint

    def following(self, fingerprints: Iterable[str]) -> set[str]:
        """These, and all that they explain, directly or not: where the former move, the latter move with them."""
        found: set[str] = set()
        queue = [fp for fp in fingerprints if fp in self._members]
        while queue:
            fingerprint = queue.pop()
            if fingerprint not in found:
                found.add(fingerprint)
                queue += self._explains.get(fingerprint, ())
        return found

    def explanation(self, fingerprint: str) -> tuple[str, ...]:
        """Fingerprints of the alerts that explain it; empty if nothing does."""
        return self._explained.get(fingerprint, ())

    def is_unseen(self, fingerprint: str) -> bool:
        """Whether it comes from the store, and its pods have not been seen since."""
        return fingerprint in self._unseen

    def unseen(self) -> list[str]:
        """All that are; empty once everything is listed."""
        return sorted(self._unseen)

    def maintained_node(self, fingerprint: str) -> str:
        return self._folded.get(fingerprint, "")

    def _settle(self, fingerprint: str, contexts: Contexts, now: datetime) -> None:
        before = self._explained.get(fingerprint, ())
        for earlier in before:
            if earlier in self._unseen:
                self.look(earlier, contexts, now)
        near = self._near(self._reach.get(fingerprint)) | set(before)
        near.discard(fingerprint)
        parties = [self._party(fp) for fp in sorted(near) if fp in self._members]
        answer = explained_by(self._party(fingerprint), parties)
        if answer.by or answer.is_certain:
            self._explain(fingerprint, answer.by)

    def _fold(self, fingerprint: str, stands: Callable[[str], bool]) -> None:
        reach = self._reach.get(fingerprint)
        if reach is None:
            return
        node = reach.maintained_node
        if not node:
            self._folded.pop(fingerprint, None)
        elif fingerprint in self._folded or not stands(self._members[fingerprint].home.key(self._cluster)):
            self._folded[fingerprint] = node

    def _party(self, fingerprint: str) -> Party:
        member = self._members[fingerprint]
        return Party(
            fingerprint=fingerprint,
            subject=member.alert.subject,
            hop=member.hop,
            since=member.alert.since,
            home=member.home.key(self._cluster),
            reach=self._reach.get(fingerprint),
        )

    def _explain(self, fingerprint: str, by: tuple[str, ...]) -> None:
        for earlier in self._explained.pop(fingerprint, ()):
            self._explains.get(earlier, {}).pop(fingerprint, None)
        if by:
            self._explained[fingerprint] = by
            for explainer in by:
                self._explains.setdefault(explainer, {})[fingerprint] = None

    def _near(self, reach: Reach | None) -> set[str]:
        if reach is None:
            return set()
        return {fp for pod in reach.pods for fp in self._on_pod.get(pod, ())}

    def _index(self, fingerprint: str, reach: Reach | None) -> None:
        before = self._reach.get(fingerprint)
        old = before.pods if before is not None else frozenset()
        new = reach.pods if reach is not None else frozenset()
        for pod in old - new:
            there = self._on_pod.get(pod, {})
            there.pop(fingerprint, None)
            if not there:
                self._on_pod.pop(pod, None)
        for pod in new - old:
            self._on_pod.setdefault(pod, {})[fingerprint] = None
