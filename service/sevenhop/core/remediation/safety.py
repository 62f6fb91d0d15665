"""The kill switch and the circuit breaker: who turns them, when the breaker opens by itself, and what is kept."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from sevenhop.core.effects import Reply, Row
from sevenhop.core.events import BreakerReset, SwitchSet
from sevenhop.core.incidents.text import plain
from sevenhop.core.remediation.approvals import COMMENT_MOST, name_of, who_of
from sevenhop.core.remediation.audit import What
from sevenhop.core.remediation.case import Case
from sevenhop.core.remediation.cases import Cases
from sevenhop.core.remediation.guards_breaker import COUNTS, Breaker, after_run, closed
from sevenhop.core.remediation.guards_question import Switch
from sevenhop.core.remediation.keeping import BREAKER, SWITCH, breaker_row, switch_row
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.settings import RemediationSettings

REQUESTS_KEPT = 50


class Safety:
    """Mutable, owned by the desk of plans."""

    def __init__(self, settings: RemediationSettings, cases: Cases) -> None:
        self._settings = settings
        self._cases = cases
        self.switch = Switch(by_settings=settings.kill_switch)
        self.breaker = Breaker()
        self._dirty: dict[str, None] = {}

    def load(self, found: Switch | Breaker) -> None:
        """From the store; what the settings say of the switch holds as they are now."""
        if isinstance(found, Switch):
            self.switch = replace(found, by_settings=self._settings.kill_switch)
        else:
            self.breaker = found

    def take_rows(self) -> list[Row]:
        rows = []
        if SWITCH in self._dirty:
            rows.append(switch_row(self.switch))
        if BREAKER in self._dirty:
            rows.append(breaker_row(self.breaker))
        self._dirty.clear()
        return rows

    def turn(self, event: SwitchSet, now: datetime) -> Reply:
        """A person turns the kill switch; turned as it is, it stays, and who turned it first is remembered."""
        word = "on" if event.is_on else "off"
        refused = self._refused(event.person, f"turn the kill switch {word}", event.request_id, now)
        return refused if refused is not None else self._turned(event, now)

    def remember(self, event: SwitchSet, now: datetime) -> None:
        """A turn that was followed before all state was lost: whether that person may still is not asked again."""
        self._turned(event, now)

    def _turned(self, event: SwitchSet, now: datetime) -> Reply:
        word, name = "on" if event.is_on else "off", name_of(event.person)
        if self._came_before(event.request_id):
            word = "on" if self.switch.is_on else "off"
            text = f"this was followed before; the kill switch is {word} now"
            return Reply(request_id=event.request_id, accepted=True, text=text)
        if self.switch.is_on != event.is_on:
            comment = plain(event.comment, COMMENT_MOST)
            self.switch = replace(self.switch, is_on=event.is_on, by=name, at=now, comment=comment)
            self._dirty[SWITCH] = None
            said = f": {comment}" if comment else ""
            self._cases.note(now, What.SWITCH, f"{name} turned the kill switch {word}{said}", who_of(event.person, ""))
        text = f"the kill switch is {word}" + ("; nothing new is changed, giving back goes on" if event.is_on else "")
        if not event.is_on and self.switch.by_settings:
            text = "the kill switch is off for people, and still on by the settings"
        return Reply(request_id=event.request_id, accepted=True, text=text)

    def reset(self, event: BreakerReset, now: datetime) -> Reply:
        """A person has looked at why runs failed."""
        name = name_of(event.person)
        refused = self._refused(event.person, "reset the circuit breaker", event.request_id, now)
        if refused is not None:
            return refused
        if self._came_before(event.request_id):
            state = "open" if self.breaker.is_open else "closed"
            return Reply(
                request_id=event.request_id, accepted=True, text=f"this was followed before; the breaker is {state} now"
            )
        if self.breaker.is_open:
            self.breaker = closed(self.breaker, name, now)
            self._dirty[BREAKER] = None
            said = f": {plain(event.comment, COMMENT_MOST)}" if event.comment else ""
            self._cases.note(now, What.BREAKER, f"{name} reset the circuit breaker{said}", who_of(event.person, ""))
        return Reply(request_id=event.request_id, accepted=True, text="the circuit breaker is closed")

    def after(self, case: Case, before: Case | None, now: datetime) -> None:
        """
        A run may have ended in a way that counts.

        What a person stopped before it began does not, nor what only a mark tells of, which anybody may have written.
        """
        ended = case.state in COUNTS and (before is None or before.state is not case.state)
        if not ended or case.started_at is None or case.is_stopped or case.is_adopted:
            return
        was_open = self.breaker.is_open
        self.breaker = after_run(self.breaker, case.id, case.state, now, self._settings.breaker)
        self._dirty[BREAKER] = None
        if self.breaker.is_open and not was_open:
            self._cases.note(now, What.BREAKER, "too many runs failed: the circuit breaker is open", "", case.id)

    def _came_before(self, request_id: str) -> bool:
        if request_id in self.switch.requests:
            return True
        self.switch = replace(self.switch, requests=(*self.switch.requests, request_id)[-REQUESTS_KEPT:])
        self._dirty[SWITCH] = None
        return False

    def _refused(self, person: Person, what: str, request_id: str, now: datetime) -> Reply | None:
        if self._settings.may_anything(frozenset((*person.ids, *person.groups))):
            return None
        text = f"{name_of(person)} may not {what}; ask an approver of a playbook"
        self._cases.note(now, What.REFUSED, text, who_of(person, ""))
        return Reply(request_id=request_id, accepted=False, text=text)
