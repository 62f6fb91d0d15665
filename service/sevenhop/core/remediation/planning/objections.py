"""What stands against a set of victims that would make room: too slow, a gift to somebody else, or a bad GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.state import State
from sevenhop.core.remediation.plan import Considered, Need
from sevenhop.core.remediation.planning.candidates import Field
from sevenhop.core.remediation.planning.cuts import Candidate
from sevenhop.core.remediation.planning.drains import grace_of, too_late
from sevenhop.core.remediation.planning.search import Search
from sevenhop.core.remediation.planning.sick import sick_place
from sevenhop.core.remediation.planning.words import slot_name
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.reduction import ConflictReason, Taker, View
from sevenhop.core.remediation.view import view_of

MOST_TOLD = 50
"""Choices of victims for which it is worked out where the pods then run; of more, the first so many."""


Choices = Sequence[Sequence[frozenset[Key]] | None]
"""Of each cut, the sets of pods that may go."""


class Objections:
    """What stands against candidates of one need, in one field."""

    def __init__(self, state: State, need: Need, playbook: Playbook, field: Field, search: Search) -> None:
        self._state, self._need, self._playbook, self._field, self._search = state, need, playbook, field, search
        self._takers: dict[Callable[[View], Taker], Taker] = {}

    def against(self, candidate: Candidate, steered: Sequence[bool]) -> dict[int, Considered]:
        """
        By place of the donor, what stands against its part; empty if nothing does.

        Args:
            steered: For each cut, whether the victims are certain.
        """
        choices = self._search.choices(candidate, steered)
        found = self._late(candidate, choices)
        if not found and (text := self._taken(candidate, choices)):
            found = self._for_all(candidate, str(ConflictReason.QUEUED), text)
        if not found and (text := self._sick(choices)):
            found = self._for_all(candidate, "bad-gpu", text)
        return found

    def _for_all(self, candidate: Candidate, reason: str, text: str) -> dict[int, Considered]:
        return {cut.donor: self._considered(cut.donor, reason, text) for cut in candidate.cuts}

    def _considered(self, donor: int, reason: str, text: str) -> Considered:
        return Considered(slot_name(self._field.donors[donor].slot), reason, text)

    def _late(self, candidate: Candidate, choices: Choices) -> dict[int, Considered]:
        """Who takes, or may take, longer to end than the capacity would be lent."""
        pods = self._state.objects.pods()
        found = {}
        for cut, chosen in zip(candidate.cuts, choices, strict=True):
            text = too_late(grace_of(pods[key] for keys in chosen or () for key in keys), self._playbook)
            if text:
                found[cut.donor] = self._considered(cut.donor, "slow", text)
        return found

    def _taken(self, candidate: Candidate, choices: Choices) -> str:
        """Who waits outside of the scheduler, such as in a queue, and is let in by what is given back."""
        donors = [self._field.donors[cut.donor] for cut in candidate.cuts]
        takers = [self._taker(make) for make in dict.fromkeys(donor.spec.taker for donor in donors) if make is not None]
        pods, pending = self._state.objects.pods(), self._state.placement.pending
        needy = [pending[key] for key in self._need.pods]
        for gone in self._search.gone(choices, MOST_TOLD if takers else 0):
            victims = [pods[key] for key in sorted(gone)]
            if text := next(filter(None, (taker(victims, needy) for taker in takers)), ""):
                return text
        return ""

    def _taker(self, make: Callable[[View], Taker]) -> Taker:
        if make not in self._takers:
            self._takers[make] = make(view_of(self._state))
        return self._takers[make]

    def _sick(self, choices: Choices) -> str:
        """Why what comes free may hold a GPU that is bad: it fitted nowhere before, so these are its nodes."""
        for gone in self._search.gone(choices, MOST_TOLD):
            text = sick_place(self._state, gone, nodes_of(self._state, sorted(gone)))
            if text:
                return text
        return ""


def nodes_of(state: State, pods: Iterable[Key]) -> tuple[str, ...]:
    """Where they run, in order of name."""
    found = (state.placement.where(pod) for pod in pods)
    return tuple(sorted({name for name in found if name is not None}))
