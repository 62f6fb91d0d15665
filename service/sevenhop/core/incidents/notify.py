"""Whether a receiver is told something now, and why, or why not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from sevenhop.core.alerts.rule import Severity
from sevenhop.core.incidents.incident import Incident, NotifyReason, Told
from sevenhop.core.incidents.settings import DeskSettings


class Shown(msgspec.Struct, frozen=True, gc=False):
    """
    Digests of a message.

    Attributes:
        content: Of what people read.
        fine: With names of pods, the command and the evidence, which change all the time.
    """

    content: str
    fine: str


class Quiet(msgspec.Struct, frozen=True, gc=False):
    """What keeps an incident from being told aloud now."""

    maintenance: bool = False
    silence: bool = False
    flapping: bool = False
    own_change: bool = False


class Loud(msgspec.Struct, frozen=True, gc=False):
    """
    A cause of the incident, as far as it decides who is woken.

    Attributes:
        holds: It is true now, and seen to be; otherwise it only fires on, for a while or until it can be seen.
    """

    rule_id: str
    severity: Severity
    holds: bool = True


class Decision(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        reason: What is done.
        withheld: Why a post that was owed is not made; None where none was owed, or it is made.
    """

    reason: NotifyReason
    withheld: NotifyReason | None = None


def notify_reason(
    incident: Incident,
    told: Told | None,
    shown: Callable[[], Shown],
    causes: Sequence[Loud],
    quiet: Quiet,
    now: datetime,
    settings: DeskSettings,
    *,
    asks: str = "",
) -> Decision:
    """
    Decide for one receiver.

    Every situation has exactly one reason.  What is owed aloud and withheld stays owed: it is told when what withholds
    it ends, if it is still true.

    Args:
        told: What this receiver was last told of the incident; None if nothing.
        shown: Asked only where the answer depends on it, for writing a message is the dear part.
        asks: See `PlanWords.asks`.
    """
    if told is None:
        return Decision(_first(incident, quiet, now))
    if told.refused_at is not None and now < told.refused_at + settings.refused_retry:
        return Decision(NotifyReason.NOT_DUE_REFUSED)
    if not incident.is_open:
        if told.refused_at is not None and not told.reference:
            return Decision(NotifyReason.NOT_DUE_NEVER_TOLD)
        if asks and asks != told.asked:
            return Decision(NotifyReason.DECISION_WANTED)
        same = told.content == shown().content
        return Decision(NotifyReason.NOT_DUE_NOTHING_NEW if same else NotifyReason.RESOLVED)
    owed = _owed(incident, told, causes, now, settings)
    if owed is None and asks and asks != told.asked:
        owed = NotifyReason.DECISION_WANTED
    withheld = _withheld(incident, owed, quiet, now) if owed is not None else None
    if owed is NotifyReason.REOPENED and withheld is NotifyReason.NOT_DUE_OWN_CHANGE:
        # Not even quietly: what ended stays green for as long as our own change explains what fires.
        return Decision(NotifyReason.NOT_DUE_OWN_CHANGE)
    if owed is not None and withheld is None:
        return Decision(owed)
    return Decision(_edit(told, shown, now, settings), withheld)


def next_look(incident: Incident, told: Told | None, now: datetime, settings: DeskSettings) -> datetime | None:
    """When the passing of time alone may change the decision; None if it never does."""
    if told is None:
        due = [incident.tell_at] if incident.is_open else []
    elif told.refused_at is not None:
        due = [told.refused_at + settings.refused_retry] if incident.is_open or told.reference else []
    elif not incident.is_open:
        due = []
    else:
        due = [
            (told.loud_at or told.at) + settings.repeat_interval,
            told.at + settings.edit_interval,
            incident.tell_at if incident.opening > told.opening else None,
            _steady_at(incident, settings),
        ]
    return min((at for at in due if at is not None and at > now), default=None)


def is_flapping(openings: Sequence[datetime], now: datetime, settings: DeskSettings) -> bool:
    """Whether it was opened too often lately, and has not stayed open since."""
    recent = [at for at in openings if at > now - settings.flap_window]
    return len(recent) > settings.flap_limit and now < recent[-1] + settings.flap_hold


def _first(incident: Incident, quiet: Quiet, now: datetime) -> NotifyReason:
    if not incident.is_open:
        return NotifyReason.NOT_DUE_NEVER_TOLD
    if quiet.maintenance:
        return NotifyReason.NOT_DUE_MAINTENANCE
    if quiet.silence:
        return NotifyReason.NOT_DUE_SILENCED
    if quiet.own_change:
        return NotifyReason.NOT_DUE_OWN_CHANGE
    if incident.tell_at is not None and now < incident.tell_at:
        return NotifyReason.NOT_DUE_GROUP_WAIT
    return NotifyReason.FIRST_FIRING


def _owed(
    incident: Incident, told: Told, causes: Sequence[Loud], now: datetime, settings: DeskSettings
) -> NotifyReason | None:
    """What would be posted anew."""
    if told.refused_at is not None and not told.reference:
        return NotifyReason.FIRST_FIRING
    if incident.severity.rank > told.severity.rank:
        return NotifyReason.SEVERITY_UP
    if _is_another_cause(told, causes):
        return NotifyReason.NEW_CAUSE
    if incident.opening > told.opening:
        return NotifyReason.REOPENED
    if now >= (told.loud_at or told.at) + settings.repeat_interval:
        return NotifyReason.REPEAT_INTERVAL_ELAPSED
    return None


def _is_another_cause(told: Told, causes: Sequence[Loud]) -> bool:
    """
    Whether what keeps the incident open now is something else than what people were told.

    An incident is one object on one hop.  While anything that was told of it still fires, a further rule describes the
    same trouble: a pool that does not grow, in the incident of those who wait for it.  Once nothing of it fires any
    more and the object is broken all the same, whoever mended the first must hear of the second.
    """
    if any(cause.rule_id in told.causes for cause in causes):
        return False
    return any(cause.holds and cause.severity is not Severity.INFO for cause in causes)


def _withheld(incident: Incident, owed: NotifyReason, quiet: Quiet, now: datetime) -> NotifyReason | None:
    if quiet.maintenance:
        return NotifyReason.NOT_DUE_MAINTENANCE
    if quiet.silence:
        return NotifyReason.NOT_DUE_SILENCED
    if quiet.own_change and owed is not NotifyReason.DECISION_WANTED:
        return NotifyReason.NOT_DUE_OWN_CHANGE
    if owed is NotifyReason.REOPENED:
        if quiet.flapping:
            return NotifyReason.NOT_DUE_FLAPPING
        if incident.tell_at is not None and now < incident.tell_at:
            return NotifyReason.NOT_DUE_GROUP_WAIT
    return None


def _edit(told: Told, shown: Callable[[], Shown], now: datetime, settings: DeskSettings) -> NotifyReason:
    if now < told.at + settings.edit_interval:
        return NotifyReason.NOT_DUE_EDIT_INTERVAL
    current = shown()
    if told.content != current.content:
        return NotifyReason.CHANGED
    if told.fine != current.fine and now >= told.at + settings.refresh_interval:
        return NotifyReason.CHANGED
    return NotifyReason.NOT_DUE_NOTHING_NEW


def _steady_at(incident: Incident, settings: DeskSettings) -> datetime | None:
    return incident.openings[-1] + settings.flap_hold if incident.openings else None
