"""What the narrator adds to Sevenhop's own messages, all of it read from the running engine."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from sevenhop.core import gpu_views, views
from sevenhop.core.durations import format_duration
from sevenhop.core.effects import Notify
from sevenhop.core.engine import Engine, Step
from sevenhop.core.hops.report import HopState
from sevenhop.core.inventory.state import component_subject
from sevenhop.core.remediation.audit import AuditRecord, What
from sevenhop.core.remediation.case import Case
from sevenhop.core.remediation.cases import OURSELVES
from sevenhop.core.remediation.plan import Plan
from sevenhop.core.remediation.planning.words import plan_lines
from sevenhop.core.subject import Subject
from sevenhop.core.words import counted
from sevenhop.demo.page import Page
from sevenhop.demo.story import BEGINS, Story

_BEAT = timedelta(minutes=1)

_TOLD = (What.STEP_DONE,)
"""Records of the audit that a reader is shown beside the message, which tells the others."""


class Tally(msgspec.Struct):
    """
    Attributes:
        posted: Messages that somebody is notified of.
        edits: Changes of a message in place, which notify nobody.
        repeated: Posts that say what an earlier one has said; must stay 0.
        green: Messages that ended as recovered.
    """

    posted: int = 0
    edits: int = 0
    repeated: int = 0
    green: int = 0


class Narrator:
    """Looks at the engine after every move of time, and tells what changed for the subject of the story."""

    def __init__(self, story: Story, engine: Engine, page: Page) -> None:
        self._story = story
        self._engine = engine
        self._page = page
        namespace, workload, component = story.subject
        self.subject: Subject = component_subject(((namespace, workload), component))
        self._now = BEGINS
        self._waiting: frozenset[str] = frozenset()
        self._ever_waited = False
        self._is_well = True
        self._beats = 0
        self._has_edit = self._has_explained = False
        self._posts: set[tuple[Any, ...]] = set()
        self._done: list[AuditRecord] = []  # what was done and not told yet
        self.decided = 0  # the audit record of the last decision
        self._first = ""  # the incident that is told first: the one about the subject
        self.is_green = False  # the message about the subject has recovered
        self.tally = Tally()
        self.refused = ""
        self.unsure: dict[str, list[str]] = {}

    # What the runtime does -------------------------------------------------------------------------------------------

    def heard(self, step: Step) -> None:
        """Count what is told and note what is done; an observer of the runtime."""
        for effect in step.effects:
            if isinstance(effect, Notify):
                self._count(effect)
        for record in step.records:
            if record.who != OURSELVES:
                self.decided = record.number
            elif record.what in _TOLD:
                self._done.append(record)

    def _count(self, notify: Notify) -> None:
        if not notify.anew:
            self.tally.edits += 1
            self._has_edit = True
        else:
            self.tally.posted += 1
            self._first = self._first or notify.key
            said = (notify.receiver, notify.key, notify.episode, notify.message.severity, notify.causes, notify.reason)
            self.tally.repeated += said in self._posts
            self._posts.add(said)
            self._remember()
        if notify.message.status == "resolved" and notify.message.end_reason == "recovered" and not self.is_green:
            self.tally.green += 1
            self.is_green = notify.key == self._first

    def _remember(self) -> None:
        """Who was asked and refused, and what could not be seen, when the first message went out."""
        context = self._engine.inventory.context(self.subject, self._now)
        if context is None or self.refused or self.unsure:
            return
        if context.report is not None:
            for line in context.report.lines:
                if line.state is HopState.UNKNOWN:
                    self.unsure.setdefault((line.reason or "no reason given").replace("_", " "), []).append(
                        line.hop.value
                    )
        cause = context.diagnosis.cause if context.diagnosis is not None else ""
        case = self.case()
        if cause == "rollout-surge":
            self.refused = "to ask a neighbour for GPUs: the rollout itself holds what it needs"
        elif case is not None:
            self.refused = "to ask for GPUs of: " + " · ".join(f"{c.who} ({c.text})" for c in case.plan.considered)

    # What is known of plans ------------------------------------------------------------------------------------------

    def case(self) -> Case | None:
        """The newest plan for the subject of the story."""
        namespace, workload, component = self._story.subject
        cases = [case for case in self._engine.remediation.cases if case.plan.need is not None]
        mine = [
            case
            for case in cases
            if case.plan.need is not None
            and (case.plan.need.workload, case.plan.need.component) == ((namespace, workload), component)
        ]
        return max(mine, key=lambda case: case.plan.proposed_at, default=None)

    def plan_lines(self, plan: Plan) -> list[str]:
        """A plan as the message tells it."""
        return plan_lines(plan)

    def plan_words(self) -> list[str]:
        """What the message says of plans now."""
        case = self.case()
        if case is None:
            return []
        return [f"{line.label}: {line.text}" for line in self._engine.remediation.words(case.plan.incident).lines]

    def ready_of(self, workload: tuple[str, str], component: str) -> int:
        """Ready replicas of a component."""
        rows = views.workloads(self._engine, self._now)
        return next(
            int(row["ready"])
            for row in rows
            if (row["namespace"], row["workload"], row["component"]) == (*workload, component)
        )

    # What the reader is told -----------------------------------------------------------------------------------------

    def opening(self, now: datetime, took_s: float) -> None:
        objects = sum(row["objects"] for row in views.sources(self._engine, now))
        nodes = gpu_views.nodes(self._engine, now)
        with_gpus = [row for row in nodes if row["product"]]
        pools = gpu_views.pools(self._engine, now)
        bound, offered = sum(pool["bound"] for pool in pools), sum(pool["allocatable"] for pool in pools)
        self._page.at(
            now,
            f"✔ {objects} objects read in {took_s:.1f} s: {len(nodes)} nodes, {len(with_gpus)} of them with GPUs, "
            f"{bound} of {offered} GPUs in use",
            good=True,
        )
        parts: dict[str, list[str]] = {}
        for row in views.workloads(self._engine, now):
            name = f"{row['workload']} ({row['framework']}, {row['tier']})"
            parts.setdefault(name, []).append(f"{row['component']} {row['ready']}/{row['desired']}")
        self._page.at(now, " · ".join(f"{name} {' '.join(each)}" for name, each in parts.items()))

    def look(self, now: datetime) -> None:
        """Tell what changed since the last look."""
        self._now = now
        done, self._done = self._done, []
        for record in done:
            self._page.at(record.at, f"· {record.text} (audit {record.number})")
        rows = [row for row in views.pods(self._engine, now) if self._is_about(row)]
        waiting = [row for row in rows if row["waits_since"] is not None]
        names = frozenset(row["pod"] for row in waiting)
        before, self._waiting = self._waiting, names
        if names and not before:
            self._tell_waiting(now, waiting[0])
        elif names and names != before and not names & before:
            new = next(iter(sorted(names)))
            told = counted(self.tally.posted, "message")
            self._page.at(now, f"{new} waits instead. The alert is about the component, not the pod: still {told}.")
        elif before and not names:
            self._tell_scheduled(now, rows)
        self._tell_edit(now)
        self._tell_clock(now)
        self._tell_recovery(now)

    def _is_about(self, row: dict[str, Any]) -> bool:
        return (row["namespace"], row["workload"], row["component"]) == self._story.subject

    def _tell_edit(self, now: datetime) -> None:
        if self._has_edit and not self._has_explained:
            self._has_explained = True
            self._page.at(now, "↑ The same message, brought up to date in place: an edit notifies nobody.")

    def _tell_waiting(self, now: datetime, row: dict[str, Any]) -> None:
        if self._ever_waited:
            return
        self._ever_waited = True
        self._is_well = False
        hold = format_duration(self._engine.alerts.rules[self._story.rule].hold)
        self._page.at(
            now,
            f"{row['pod']} is Pending; known at once: {row['cause']} ({row['confidence']}). "
            f"Nobody is woken yet: the rule {self._story.rule} waits {hold}, so that a blip pages nobody.",
        )

    def _tell_scheduled(self, now: datetime, rows: list[dict[str, Any]]) -> None:
        loading = [row for row in rows if row["node"] and not row["ready"]]
        for row in loading[:1]:
            self._page.at(now, f"{row['pod']} is scheduled on {row['node']} and loads its model: the goal is Ready.")

    def _tell_clock(self, now: datetime) -> None:
        alert = self._engine.alerts.alert(self._story.rule, self.subject)
        if alert is None or alert.fired_at is not None or alert.state.value != "pending":
            return
        hold = self._engine.alerts.rules[self._story.rule].hold
        beats = int((now - alert.since) / _BEAT)
        if beats > self._beats and now - alert.since < hold:
            self._beats = beats
            self._page.at(now, f"… still Pending, {format_duration(beats * _BEAT)} of {format_duration(hold)}")

    def _tell_recovery(self, now: datetime) -> None:
        facts = self._engine.inventory.facts.get(self.subject) or {}
        ready, desired = facts.get("component.ready"), facts.get("component.desired")
        is_well = not self._waiting and ready == desired and facts.get("component.rolling") is not True
        if is_well and not self._is_well and self._ever_waited:
            keep = format_duration(self._engine.alerts.rules[self._story.rule].keep_firing)
            soon = (
                f" The message turns green once nothing has waited for {keep}, so that a short relief is no recovery."
                if not self.tally.green
                else ""
            )
            self._page.at(now, f"✔ {self._story.subject[2]} {ready}/{desired} Ready.{soon}", good=True)
        self._is_well = is_well

    def closing(self) -> list[tuple[str, str]]:
        """(label, text) of what was told, refused and left open."""
        tally = self.tally
        green = ", the last one green" if tally.green else ""
        rows = [
            (
                "Told",
                (
                    f"{counted(tally.posted, 'message')} posted, {counted(tally.edits, 'edit')} in place{green}, "
                    f"{tally.repeated} repeated"
                ),
            )
        ]
        if self.refused:
            rows.append(("Refused", self.refused))
        if self.unsure:
            hops = " · ".join(f"{', '.join(hops)}: {reason}" for reason, hops in self.unsure.items())
            rows.append(("Not sure", f"{hops}. Unknown is never shown as healthy, and never as broken."))
        return rows
