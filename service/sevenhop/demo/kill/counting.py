"""What was lost and what was done twice, from what the cluster, the messages and the audit trail show at the end."""

from __future__ import annotations

import itertools
from collections import Counter

import msgspec


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        kills: By where the service was.
        rounds: Losses that were over in the end.
        approved: Plans of which somebody was told that they are approved.
        ends: Plans that are over, and their last state.
        numbers: What the donor asked for, each change of it in order.
        messages: Posts, without edits.
        posted_twice: Posts of one and the same transition, beyond the first.
        open_messages: (incident, what its newest message says) of those that are not over.
        audit: Records.
        audit_problems: What is wrong with them.
    """

    kills: Counter[str]
    rounds: int
    approved: frozenset[str]
    ends: dict[str, str]
    numbers: tuple[int, ...]
    messages: int
    posted_twice: int = 0
    open_messages: tuple[tuple[str, str], ...] = ()
    audit: int = 0
    audit_problems: tuple[str, ...] = ()

    @property
    def cuts(self) -> int:
        """How often the donor was asked for fewer."""
        return sum(after < before for before, after in itertools.pairwise(self.numbers))


def lost_of(seen: Seen) -> list[str]:
    """Promises that were not kept, a line each."""
    found = [f"plan {each} was approved and has no end" for each in sorted(seen.approved) if each not in seen.ends]
    found += [f"plan {each} ended as {end}" for each, end in sorted(seen.ends.items()) if end == "unknown"]
    found += [f"the message about {key} was left {said}" for key, said in seen.open_messages]
    found += [f"audit: {problem}" for problem in seen.audit_problems]
    if seen.numbers[-1] != seen.numbers[0]:
        found.append(f"the donor was left with {seen.numbers[-1]} of {seen.numbers[0]}")
    restored = sum(end == "restored" for end in seen.ends.values())
    if seen.cuts < restored:
        found.append(f"{restored} plans gave back, and the donor was cut only {seen.cuts} times: {seen.numbers}")
    if not seen.messages and seen.rounds:
        found.append("nobody was told of anything")
    return found


def doubled_of(seen: Seen) -> list[str]:
    """What was done more often than it was agreed to, a line each."""
    found = []
    may_cut = sum(end in ("restored", "undone") for end in seen.ends.values())
    if seen.cuts > may_cut:
        found.append(f"the donor was cut {seen.cuts} times by {may_cut} plans: {seen.numbers}")
    if min(seen.numbers) < seen.numbers[0] - 1:
        found.append(f"the donor was cut by more than one replica: {seen.numbers}")
    if seen.posted_twice:
        found.append(f"{seen.posted_twice} messages were posted twice")
    return found
