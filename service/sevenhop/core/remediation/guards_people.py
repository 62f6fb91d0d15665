"""How many humans stand behind some verified identities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sevenhop.core.remediation.guards_question import Approval
from sevenhop.core.remediation.person import Person


def humans(people: Iterable[Person]) -> int:
    """
    How many different humans these are: identities that share an id, directly or through a third, are one.

    >>> slack, terminal = Person(id="slack:U1"), Person(id="kubernetes:ann", is_same_as=("slack:U1",))
    >>> humans([slack, terminal]), humans([slack, Person(id="slack:U2")])
    (1, 2)
    """
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
    return len(groups)


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
