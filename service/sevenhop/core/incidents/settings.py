"""When people are told, and who: what the desk needs of the settings."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from sevenhop.core.incidents.routing import Route


class DeskSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        receivers: Names of all receivers, in order.
        route: Root of the routing tree; without a receiver all receivers are told.
        group_wait: Before an incident's first message: symptoms come before causes.
        rehome_wait: Before the first message about symptoms whose cause has just ended: most end by themselves.
        repeat_interval: Between reminders while an incident stays open.
        edit_interval: At least so long between two quiet edits of one message.
        refresh_interval: An open incident's message is compared with the state of the cluster so often.
        reopen_within: What comes back so soon after it ended is the same episode.
        flap_window, flap_limit: More openings than the limit within the window are flapping: told by edits only.
        flap_hold: What flapped and then stays open for so long is told aloud again.
        blind_grace: So long an alert may be unconfirmed before its message says so.
        ending_grace: So long an alert may be untrue before its message says so: pods made anew are back by then.
        refused_retry: A receiver that refused for good is tried again after this, while the incident is open.
        maintenance_hides: So long maintenance of a node keeps back what users feel of something critical: pods that are
            moved are up again by then, and a node may stay cordoned for days.
        recall_wait: So long an incident that was read back from a channel may stay without a firing alert, counted from
            when its cause can be seen, and longer by the hold of its rules.
        changed_before: How far back "changed before" looks.
        link: Address of runbooks, shown at the end; empty shows none.
    """

    receivers: tuple[str, ...] = ()
    route: Route = Route()
    group_wait: timedelta = timedelta(seconds=5)
    rehome_wait: timedelta = timedelta(seconds=30)
    repeat_interval: timedelta = timedelta(hours=4)
    edit_interval: timedelta = timedelta(seconds=1)
    refresh_interval: timedelta = timedelta(minutes=1)
    reopen_within: timedelta = timedelta(minutes=5)
    flap_window: timedelta = timedelta(hours=1)
    flap_limit: int = 3
    flap_hold: timedelta = timedelta(minutes=10)
    blind_grace: timedelta = timedelta(minutes=1)
    ending_grace: timedelta = timedelta(seconds=10)
    refused_retry: timedelta = timedelta(minutes=5)
    maintenance_hides: timedelta = timedelta(minutes=30)
    recall_wait: timedelta = timedelta(minutes=10)
    changed_before: timedelta = timedelta(minutes=30)
    link: str = ""
