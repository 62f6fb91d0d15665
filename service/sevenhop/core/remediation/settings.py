"""What the desk of plans needs of the settings: playbooks, limits of the guards, and how long things may take."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from sevenhop.core.remediation.guards_breaker import BreakerLimits
from sevenhop.core.remediation.guards_freeze import Freeze
from sevenhop.core.remediation.guards_question import GuardLimits
from sevenhop.core.remediation.playbook import Mode, Playbook


class RemediationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        playbooks: By id.
        kill_switch: The setting of that name: true stops everything new, whatever people switch.
        replan_every: A plan is looked at again at most so often, and only if what it rests on has changed.
        replan_at_latest: And so often in any case: not all that a plan rests on can be compared cheaply.
        look_every: A run is compared with the cluster so often.
        lent_every: The same for a lease: room is simulated, which costs milliseconds in a large cluster.
        answer_within: A step that was asked for and not answered for so long is read back.
        answer_after_start: The same, after a start of ours: the answer may have been lost with the process.
        failing_for: Failure evidence has to stand for so long, so that one bad second undoes nothing.
        seen_within: After a patch the cluster may show the old value for so long.
        room_for: Room for the donor must be there for so long before it is given back early.
        extend_wait: How long people may take to decide about extending a lease; silence restores.
        own_change_hold: Alerts that our own change explains are held back for at most so long.
        give_back_retry, give_back_longest: Giving back is tried again after so long, doubling up to the latter.
        give_back_attempts: After so many attempts a person is told to look; trying goes on.
        adopt_every: Marks on donors are compared with what we know so often.
        past_kept: Plans that are over are kept up to this number, the newest.
    """

    playbooks: dict[str, Playbook] = {}
    freezes: tuple[Freeze, ...] = ()
    breaker: BreakerLimits = BreakerLimits()
    guard_limits: GuardLimits = GuardLimits()
    kill_switch: bool = False
    replan_every: timedelta = timedelta(seconds=5)
    replan_at_latest: timedelta = timedelta(seconds=60)
    look_every: timedelta = timedelta(seconds=2)
    lent_every: timedelta = timedelta(seconds=5)
    answer_within: timedelta = timedelta(minutes=10)
    answer_after_start: timedelta = timedelta(minutes=1)
    failing_for: timedelta = timedelta(seconds=30)
    seen_within: timedelta = timedelta(seconds=30)
    room_for: timedelta = timedelta(seconds=60)
    extend_wait: timedelta = timedelta(minutes=15)
    own_change_hold: timedelta = timedelta(minutes=10)
    give_back_retry: timedelta = timedelta(seconds=30)
    give_back_longest: timedelta = timedelta(minutes=10)
    give_back_attempts: int = 6
    adopt_every: timedelta = timedelta(minutes=1)
    past_kept: int = 200

    def playbook(self, playbook_id: str) -> Playbook | None:
        """The one that holds now; None if it is off or no more."""
        found = self.playbooks.get(playbook_id)
        return None if found is None or found.mode is Mode.OFF else found

    def may_anything(self, allowed: frozenset[str]) -> bool:
        """Whether these ids and groups are approvers of any playbook: who may stop everything, and let it go on."""
        return any(not allowed.isdisjoint(playbook.approvers) for playbook in self.playbooks.values())
