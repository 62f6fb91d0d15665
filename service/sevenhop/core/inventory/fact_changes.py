"""What one pass of the inventory changes in the facts that were told."""

from __future__ import annotations

from sevenhop.core.facts.schema import Facts
from sevenhop.core.subject import Subject


class FactChanges:
    """
    Attributes:
        changed: Subjects whose facts differ from what was told last, with all of them.
        gone: Subjects that are no more.
    """

    def __init__(self, told: dict[Subject, Facts]) -> None:
        self._told = told
        self.changed: dict[Subject, Facts] = {}
        self.gone: set[Subject] = set()

    def put(self, subject: Subject, facts: Facts | None) -> bool:
        """The facts of a subject as they are now, None for one that is gone; returns whether anything differs."""
        if self._told.get(subject) == facts:
            return False
        if facts is None:
            del self._told[subject]
            self.changed.pop(subject, None)
            self.gone.add(subject)
        else:
            self._told[subject] = self.changed[subject] = facts
        return True
