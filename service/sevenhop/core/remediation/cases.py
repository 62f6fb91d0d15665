"""All plans of one cluster with what became of them, indexed; what changed is stored, audited and asked for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from sevenhop.core.effects import Act, Row
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.state import State
from sevenhop.core.remediation.audit import AuditRecord, Head, What, append
from sevenhop.core.remediation.case import Case, Entry, act_of
from sevenhop.core.remediation.guards_question import PastRun
from sevenhop.core.remediation.keeping import case_row
from sevenhop.core.remediation.live import lacking
from sevenhop.core.remediation.plan import Plan

OURSELVES = "sevenhop"
"""Who did it, where no person did."""

_WHAT = {"plan": What.STATE, "decision": What.DECIDED, "step": What.STEP_DONE, "lease": What.LEASE}


class Cases:
    """
    Mutable, owned by the desk.

    Attributes:
        touched: Keys of incidents whose message has to be looked at again.
        problems: What is wrong with us, for people.
    """

    def __init__(self) -> None:
        self._cases: dict[str, Case] = {}
        self._of_incident: dict[str, dict[str, None]] = {}
        self._dirty: dict[str, None] = {}
        self._acts: dict[str, Act] = {}
        self._records: list[AuditRecord] = []
        self._last: AuditRecord | Head | None = None
        self.touched: set[str] = set()

    def __iter__(self) -> Iterator[Case]:
        return iter(list(self._cases.values()))

    def known(self) -> dict[str, Case]:
        """By id; do not change it."""
        return self._cases

    def get(self, plan_id: str) -> Case | None:
        return self._cases.get(plan_id)

    def of_incident(self, key: str) -> list[Case]:
        """The oldest first."""
        return [self._cases[plan_id] for plan_id in self._of_incident.get(key, ())]

    def current(self, key: str) -> Case | None:
        """The one that is open for an incident, else the newest."""
        found = self.of_incident(key)
        return next((case for case in reversed(found) if not case.is_over), found[-1] if found else None)

    def open(self) -> list[Case]:
        return [case for case in self._cases.values() if not case.is_over]

    def reserved(self, but: str = "") -> tuple[Plan, ...]:
        """Plans that hold room for somebody, in order of approval."""
        running = [case for case in self._cases.values() if case.is_running and case.id != but]
        return tuple(case.plan for case in sorted(running, key=lambda case: (case.started_at or case.since, case.id)))

    def history(self) -> tuple[PastRun, ...]:
        """Runs that were started, for the guards; what only a mark tells of counts against nobody, who may write it."""
        return tuple(
            PastRun(
                plan_id=case.id,
                playbook=case.plan.playbook,
                incident=case.plan.incident,
                touches=case.plan.touches,
                state=case.state,
                started_at=case.started_at,
                ended_at=None if case.is_running else case.since,
                lends=case.lease_until is not None and not case.is_over,
            )
            for case in self._cases.values()
            if case.started_at is not None and not case.is_adopted
        )

    def held_until(self, workload: Key, component: str, state: State | None) -> datetime | None:
        """
        Until when our own change explains what happens to a donor.

        It explains as many missing replicas as were taken or given back: of who lacks more, something else is broken.
        """
        slot = (workload, component)
        held = [
            (case.held_until, scale.before - scale.after)
            for case in self._cases.values()
            if case.held_until is not None
            for scale in case.plan.scales
            if (scale.workload, scale.component) == slot
        ]
        until, replicas = max(held, default=(None, 0))
        return None if state is not None and lacking(state, slot) > replicas else until

    def put(self, case: Case) -> Case:
        """Take in a case as it is now; what is new about it becomes a row, records, and the step that it asks for."""
        before = self._cases.get(case.id)
        if before == case:
            return case
        self._cases[case.id] = case
        if before is not None and _only_looked(before, case):
            return case
        self._of_incident.setdefault(case.plan.incident, {})[case.id] = None
        self._dirty[case.id] = None
        self.touched.add(case.plan.incident)
        new = case.entered - (before.entered if before is not None else 0)
        for entry in case.entries[max(0, len(case.entries) - new) :] if new > 0 else ():
            self._record(case, entry)
        if case.asked is not None and (before is None or before.asked is None or before.asked.id != case.asked.id):
            self._ask(case)
        return case

    def load(self, case: Case) -> None:
        """From the store: nothing is new about it, but what it waits for is asked for again."""
        self._cases[case.id] = case
        self._of_incident.setdefault(case.plan.incident, {})[case.id] = None
        if case.asked is not None:
            self._ask(case)

    def note(self, at: datetime, what: str, text: str, who: str = "", plan_id: str = "") -> None:
        """A record of the audit that is about no plan of ours."""
        self._append(at, what, text, who, plan_id, {})

    def follow(self, last: AuditRecord | Head | None) -> None:
        """The record that the next one comes after."""
        self._last = last

    def take_records(self) -> tuple[AuditRecord, ...]:
        records, self._records = self._records, []
        return tuple(records)

    def take_acts(self) -> list[Act]:
        """In the order in which they were asked for; what was overtaken by another step of its plan is left out."""
        acts, self._acts = self._acts, {}
        return list(acts.values())

    def take_rows(self) -> list[Row]:
        rows = [case_row(plan_id, self._cases.get(plan_id)) for plan_id in self._dirty]
        self._dirty.clear()
        return rows

    def forget_old(self, kept: int, now: datetime, day: timedelta) -> None:
        """Plans that are over, beyond the newest `kept`, and not runs of the last day: these count for budgets."""
        over = [case for case in self._cases.values() if case.is_over]
        if len(over) <= kept:
            return
        over.sort(key=lambda case: (case.since, case.id))
        for case in over[: len(over) - kept]:
            if case.started_at is not None and now - case.since < day:
                continue
            del self._cases[case.id]
            of_incident = self._of_incident[case.plan.incident]
            of_incident.pop(case.id)
            if not of_incident:
                del self._of_incident[case.plan.incident]
            self._dirty[case.id] = None

    def _ask(self, case: Case) -> None:
        act = act_of(case)
        if act is not None:
            self._acts[case.id] = act

    def _record(self, case: Case, entry: Entry) -> None:
        area, _, word = entry.what.partition(".")
        what = What.REFUSED if word == "refused" else _WHAT.get(area, What.STEP)
        if entry.what == "step.asked":
            what = What.STEP
        elif word in ("proposed", "shadowed"):
            what = What(word)
        data = {"event": entry.what, "hash": case.plan.hash, "state": case.state, "incident": case.plan.incident}
        self._append(entry.at, what, entry.text, entry.who, case.id, data)

    def _append(self, at: datetime, what: str, text: str, who: str, plan_id: str, data: dict[str, str]) -> None:
        record = append(self._last, at=at, what=what, who=who or OURSELVES, text=text, plan_id=plan_id, data=data)
        self._last = record
        self._records.append(record)


def _only_looked(before: Case, case: Case) -> bool:
    """Whether nothing is new but when it was last looked at: not worth a row, or another message."""
    if before.watch is None or case.watch is None:
        return False
    return replace(case, watch=replace(case.watch, seen_at=before.watch.seen_at)) == before
