"""
Marks on donors, compared with what we know: the promise to give back outlives all our own state.

A mark of a plan that we do not know is taken over, and given back when it says, as far as `mark_terms` lets it; a mark
that was left behind is taken off; one that cannot be read is told to a person, never guessed at.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from sevenhop.core.effects import Borrow
from sevenhop.core.incidents.text import plain
from sevenhop.core.inventory.state import State
from sevenhop.core.remediation.borrowed import Lent, read_borrowed
from sevenhop.core.remediation.case import Case, Stage, Watch, noted
from sevenhop.core.remediation.mark_terms import against_following, is_about
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.reduction import ScalingTable
from sevenhop.core.remediation.runs import give_back
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.core.remediation.states import PlanState
from sevenhop.core.remediation.view import view_of

MOST_CLEANUPS = 3
"""A mark that comes back after so many attempts is somebody else's business."""


class Adopting:
    """When marks were looked at last, and which of them people were told of."""

    def __init__(self, settings: RemediationSettings, scaling: ScalingTable) -> None:
        self._settings = settings
        self._patches = frozenset(patch for spec in scaling.values() for patch in spec.patches)
        self._patched = {kind for kind, _ in self._patches}
        self._looked_at: datetime | None = None
        self.told: dict[str, str] = {}  # object → what is wrong with its mark

    def look(self, known: dict[str, Case], state: State, now: datetime) -> tuple[list[Case], list[str]]:
        """
        Compare, unless that was done a moment ago or the cluster is not listed yet.

        Args:
            known: Cases by id.

        Returns:
            (cases that are new or changed, new problems for people)
        """
        if self._looked_at is not None and self._looked_at <= now < self._looked_at + self._settings.adopt_every:
            return [], []
        if state.gate("Pod", "Node") or state.belonging_gate():
            return [], []
        self._looked_at = now
        cases: dict[str, Case] = {}
        problems: list[str] = []
        view = view_of(state)
        told: dict[str, str] = {}
        for lent in read_borrowed(view, self._kinds(state)):
            case = known.get(lent.borrow.plan) if lent.borrow is not None else None
            why_not = "" if case is not None else against_following(lent, view, self._patches, state.cluster, now)
            problem = _problem(lent, why_not)
            if problem:
                told[str(lent.ref)] = problem
                if self.told.get(str(lent.ref)) != problem:
                    problems.append(problem)
                continue
            if lent.borrow is None or lent.borrow.plan in cases:
                continue
            if case is None:
                after = _adopted(lent.borrow, now)
            else:
                after = _cleaned(case, self._settings, now) if is_about(lent, case.plan) else None
            if after is not None:
                cases[after.id] = after
        self.told = told
        return list(cases.values()), problems

    def _kinds(self, state: State) -> list[str]:
        """What may carry a mark: what is patched, and the roots above it; not the many objects of other kinds."""
        return sorted(
            self._patched | set(state.discovery.root_kinds) | {"Deployment.apps", "StatefulSet.apps"} - {"Pod"}
        )


def _problem(lent: Lent, why_not: str) -> str:
    if lent.borrow is None:
        return f"{lent.ref}: {lent.problem or 'its mark cannot be read'}; look at it and take the mark off"
    if why_not:
        return (
            f"{lent.ref} lent by plan {plain(lent.borrow.plan, 40)}, which is not known here, and {why_not}: give it "
            f"back by hand from {lent.borrow.after} to {lent.borrow.before} if that is right, and take the mark off"
        )
    return ""


def _adopted(borrow: Borrow, now: datetime) -> Case | None:
    """A lease that we do not know of: our state was lost, or another installation began it."""
    if borrow.terms is None:
        return None
    case = Case(
        plan=borrow.terms,
        state=PlanState.SUCCEEDED,
        since=now,
        stage=Stage.LENT,
        why=f"adopted: found by its mark; given back at {borrow.until:%Y-%m-%d %H:%M:%S} UTC",
        # Whoever wrote the mark could write any name.
        decided_by=f"somebody whom the mark calls {plain(borrow.by, 80) or 'nothing'}",
        has_applied=True,
        applied_at=now,
        started_at=borrow.terms.proposed_at,
        borrow=borrow,
        lease_until=borrow.until,
        watch=Watch(progress_at=now, seen_at=now, holds=False),
        is_adopted=True,
    )
    return noted(case, now, "lease.adopted", case.why)


def _cleaned(case: Case, settings: RemediationSettings, now: datetime) -> Case | None:
    """A plan that is over and whose mark is still there: what was left is taken back."""
    if not case.is_over or case.cleanups >= MOST_CLEANUPS or now < case.since + settings.adopt_every:
        return None
    after = replace(case, cleanups=case.cleanups + 1)
    return give_back(after, Purpose.RESTORE, "a mark was left behind", now)
