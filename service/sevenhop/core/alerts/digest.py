"""One alert in place of many: a rule that is new in a running service and true of too many subjects at once."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from sevenhop.core.alerts.rule import Evaluation, Rule, Verdict
from sevenhop.core.facts.schema import Facts, Unknown, UnknownReason
from sevenhop.core.subject import Subject, SubjectKind
from sevenhop.core.words import counted

COUNT = "digest.subjects"
"""The value that a digest alert shows: of how many subjects its rule is true."""

_PREFIX = "rule/"
_SETTLING = timedelta(minutes=10)


def digest_subject(rule_id: str) -> Subject:
    """What the digest alert of a rule is about: the rule itself."""
    return Subject(SubjectKind.SOURCE, "", _PREFIX + rule_id)


def is_digest(subject: Subject) -> bool:
    return subject.kind is SubjectKind.SOURCE and subject.name.startswith(_PREFIX)


def digest_rule(rule: Rule) -> Rule:
    """The rule as its digest alert sees it: the only fact is how many."""
    return replace(rule, reads=frozenset({COUNT}), shows=frozenset(), since="")


class Digest:
    """
    What a demoted rule says of each subject.

    A digest from the store (`expected`) knows nothing yet: it is unknown until as many subjects have been looked at as
    it was about, or until what is not seen by `settled_at` can be taken as gone.
    """

    def __init__(self, expected: int = 0, loaded_at: datetime | None = None) -> None:
        self._true: set[Subject] = set()
        self._unknown: set[Subject] = set()
        self._looked_at: set[Subject] = set()
        self._expected = expected
        self._settled_at = loaded_at + _SETTLING if loaded_at else None

    @property
    def count(self) -> int:
        return len(self._true)

    def note(self, subject: Subject, verdict: Verdict) -> None:
        """A broken evaluation says nothing new: what was known stays."""
        if verdict is Verdict.BROKEN:
            return
        self.forget(subject)
        if self._expected:
            self._looked_at.add(subject)
        if verdict is Verdict.TRUE:
            self._true.add(subject)
        elif verdict is Verdict.UNKNOWN:
            self._unknown.add(subject)

    def forget(self, subject: Subject) -> None:
        self._true.discard(subject)
        self._unknown.discard(subject)

    def evaluation(self, now: datetime) -> Evaluation:
        """True while it is true of any subject; false only if it is false of all."""
        if self._true:
            return Evaluation(Verdict.TRUE)
        is_settled = self._settled_at is not None and now >= self._settled_at
        if self._expected and (is_settled or len(self._looked_at) >= self._expected):
            self._expected = 0
            self._looked_at.clear()
        if self._unknown or self._expected:
            reason = Unknown(UnknownReason.NOT_SYNCED, counted(len(self._unknown) or self._expected, "subject"))
            return Evaluation(Verdict.UNKNOWN, missing=((COUNT, reason),))
        return Evaluation(Verdict.FALSE)

    def facts(self) -> Facts:
        return {COUNT: self.count}
