"""
What explains what.

A cause explains a symptom only if it covers every broken pod of it and began no later.  Several causes of one incident
may cover together.  What cannot be seen neither gains nor loses an explanation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from sevenhop.core.incidents.reach import NOBODY, Reach
from sevenhop.core.inventory.objects import Key
from sevenhop.core.subject import HOPS, Hop, Subject, SubjectKind

_BREADTH: tuple[SubjectKind, ...] = (
    SubjectKind.SOURCE,
    SubjectKind.POOL,
    SubjectKind.NODE,
    SubjectKind.GPU,
    SubjectKind.POD,
    SubjectKind.COMPONENT,
    SubjectKind.WORKLOAD,
    SubjectKind.SERVICE,
    SubjectKind.ROUTE,
)
"""From what things stand on to what stands on them: on the same hop, the former may explain the latter."""

_BEFORE_THE_POD = (Hop.GPU, Hop.DISCOVERY)

_SEEN_LATE = timedelta(seconds=20)  # agents send every 15 s
_TURNS_BAD_WITHIN = timedelta(minutes=10)


class Party(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One firing alert in the question of what explains what.

    Attributes:
        home: Key of the incident that it belongs to while nothing explains it.
        reach: None while it cannot be seen.
    """

    fingerprint: str
    subject: Subject
    hop: Hop | None
    since: datetime
    home: str
    reach: Reach | None


class Explained(msgspec.Struct, frozen=True, gc=False):
    """
    The answer for one symptom.

    Attributes:
        by: Fingerprints of the alerts that explain it, of one home; empty if nothing does.
        is_certain: False where what might explain it cannot be seen: an earlier answer then stands.
    """

    by: tuple[str, ...] = ()
    is_certain: bool = True


def explained_by(symptom: Party, candidates: Iterable[Party]) -> Explained:
    """What explains a symptom, among alerts that share a pod or a node with it."""
    if symptom.hop is None:
        return Explained()
    may = [c for c in candidates if _may_explain(c, symptom)]
    if symptom.reach is None:
        return Explained(is_certain=False)
    if not symptom.reach.needs:
        return Explained()
    homes: dict[str, list[Party]] = {}
    for candidate in may:
        homes.setdefault(candidate.home, []).append(candidate)
    unseen = False
    answers: list[tuple[tuple[int, int, datetime, str], tuple[str, ...]]] = []
    for parties in homes.values():
        shares = [(party, share) for party in sorted(parties, key=_order) if (share := _covered(party, symptom.reach))]
        if frozenset().union(*(share for _, share in shares)) >= symptom.reach.needs:
            answers.append((_order(shares[0][0]), tuple(party.fingerprint for party, _ in shares)))
        elif any(party.reach is None for party in parties):
            unseen = True
    if answers:
        return Explained(min(answers)[1])
    return Explained(is_certain=not unseen)


def roots(explained: Mapping[str, tuple[str, ...]], fingerprint: str) -> str:
    """The alert at the end of the chain of explanations; itself where nothing explains it."""
    seen = {fingerprint}
    while (by := explained.get(fingerprint)) and by[0] not in seen:
        fingerprint = by[0]
        seen.add(fingerprint)
    return fingerprint


def _may_explain(cause: Party, symptom: Party) -> bool:
    if cause.hop is None or cause.home == symptom.home or _began(cause) > symptom.since:
        return False
    if _rank(cause) < _rank(symptom):
        return True
    # A rule whose own hop is well speaks of what is broken on another one: restarts of a model that does not load.
    return symptom.reach is not None and not symptom.reach.has_own and cause.reach is not None and cause.reach.has_own


def _began(cause: Party) -> datetime:
    """
    When a cause began, at the earliest.

    A GPU that is gone shows in the next sample, often after its pod has failed; and a pool is said to turn bad only
    once many of its GPUs have.
    """
    if cause.hop is Hop.GPU and cause.subject.kind is SubjectKind.POOL:
        return cause.since - _TURNS_BAD_WITHIN
    return cause.since - _SEEN_LATE if cause.subject.kind is SubjectKind.GPU else cause.since


def _covered(cause: Party, symptom: Reach) -> frozenset[Key]:
    """The part of the symptom's pods that the cause accounts for."""
    if cause.reach is None:
        return NOBODY
    covered = symptom.needs & cause.reach.covers
    if cause.subject.kind is SubjectKind.NODE:
        here = frozenset(pod for pod in covered if symptom.nodes.get(pod) == cause.subject.name)
        if cause.hop in _BEFORE_THE_POD:
            # A pod that got its GPUs and fails later on that node fails of something else.
            return here & symptom.broken_at.get(cause.hop, NOBODY)
        return here
    return covered


def _rank(party: Party) -> tuple[int, int]:
    hop = HOPS.index(party.hop) if party.hop is not None else len(HOPS)
    return hop, _BREADTH.index(party.subject.kind)


def _order(party: Party) -> tuple[int, int, datetime, str]:
    return (*_rank(party), party.since, party.fingerprint)
