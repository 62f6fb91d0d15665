"""How many humans stand behind some verified identities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import combinations

from sevenhop.core.remediation.guards_question import Approval
from sevenhop.core.remediation.person import Person


def humans(people: Iterable[Person]) -> int:
    """
    How many different humans these surely are.

    Identities that share an id, directly or through a third, are one.  So are those of which nobody can say: a Slack
    user and a user of the host have nothing in common to be compared by, and may be the same person.

    >>> slack, terminal = Person(id="slack:U1"), Person(id="kubernetes:ann", is_same_as=("slack:U1",))
    >>> humans([slack, terminal]), humans([slack, Person(id="slack:U2")]), humans([slack, Person(id="unix:ann")])
    (1, 2, 1)
    """
    groups = _identities(people)
    kinds = [frozenset(name.partition(":")[0] for name in group) for group in groups]
    return max(
        len(some)
        for size in range(len(kinds) + 1)
        for some in combinations(kinds, size)
        if all(not one.isdisjoint(other) for one, other in combinations(some, 2))
    )


def cannot_be_compared(people: Sequence[Person]) -> bool:
    """Whether there would be more of them if one could tell who is who."""
    return len(_identities(people)) > humans(people)


def _identities(people: Iterable[Person]) -> list[set[str]]:
    groups: list[set[str]] = []
    for person in people:
        joined = set(person.ids)
        apart = []
        for group in groups:
            if group.isdisjoint(joined):
                apart.append(group)
            else:
                joined |= group
        groups = [*apart, joined]
    return groups


def reached_at(approvals: Sequence[Approval], needed: int) -> datetime:
    """
    When as many humans as needed had approved.

    Raises:
        ValueError: They never had.
    """
    in_order = sorted(approvals, key=lambda a: a.at)
    for count, approval in enumerate(in_order, 1):
        if humans(a.person for a in in_order[:count]) >= needed:
            return approval.at
    raise ValueError(f"fewer than {needed} people approved")
