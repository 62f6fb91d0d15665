"""What a playbook must not say although each of its keys is well: findings as (key, code, message)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from sevenhop.core.remediation.action import ACTION_NAMES
from sevenhop.core.remediation.playbook import Goal, Mode
from sevenhop.rulebook.playbook_schema import GROUPS, PlaybookFile
from sevenhop.rulebook.problem import did_you_mean

LENDS: Final = frozenset({"scale"})
"""Actions that take something which is given back."""
CHANGES: Final = ("scale", "evict-pod", "cordon")
"""Actions that change something by themselves; the others prepare."""
GOAL_OF: Final = {
    Goal.BENEFICIARY_READY: "scale",
    Goal.OWNER_READY: "evict-pod",
    Goal.NODE_CORDONED: "cordon",
    Goal.NODE_ADVERTISES: "evict-pod",
}
"""Goal to the action that it measures."""
_LONGEST_WAIT: Final = timedelta(hours=24)

Finding = tuple[tuple[str | int, ...], str, str]


def findings(written: PlaybookFile) -> Iterator[Finding]:
    """Everything at once, in the order of the keys."""
    unknown = [step for step in written.steps if step not in ACTION_NAMES]
    for i, step in enumerate(written.steps):
        if step in unknown:
            hint = did_you_mean(step, ACTION_NAMES) or f"; there are {', '.join(ACTION_NAMES)}"
            yield ("steps", i), "playbook-unknown-action", f"there is no action {step!r}{hint}"
        elif step in written.steps[:i]:
            yield ("steps", i), "playbook-repeated-step", f"{step} stands there twice; a plan decides how often it acts"
    if not unknown:
        yield from _steps(written)
        yield from _lease(written)
    yield from people(written.mode, written.approvers, written.approvals)
    yield from _times(written)


def people(mode: Mode, approvers: list[str], approvals: int) -> Iterator[Finding]:
    """Whether anybody could ever approve; nothing is said of what asks nobody."""
    if mode is not Mode.APPROVE:
        return
    if not approvers:
        yield ("approvers",), "playbook-nobody-approves", "mode approve needs approvers, such as slack-group:S0123"
    elif len(set(approvers)) < approvals and not any(a.split(":", 1)[0] in GROUPS for a in approvers):
        text = f"{approvals} people must agree, and {len(set(approvers))} may; name another one, or a group"
        yield ("approvers",), "playbook-nobody-approves", text


def _steps(written: PlaybookFile) -> Iterator[Finding]:
    changing = [step for step in dict.fromkeys(written.steps) if step in CHANGES]
    if len(changing) != 1:
        what = ", ".join(changing) or "nothing"
        yield ("steps",), "playbook-one-change", f"exactly one of {', '.join(CHANGES)} is expected, it has {what}"
        return
    if "steer" in written.steps:
        if changing[0] != "scale":
            yield ("steps",), "playbook-step-order", f"steer says which pods a scale removes; here is {changing[0]}"
        elif written.steps.index("steer") > written.steps.index("scale"):
            yield ("steps",), "playbook-step-order", "steer comes before scale, or the pods are gone already"
    if GOAL_OF[written.goal] != changing[0]:
        fitting = " or ".join(str(goal) for goal, action in GOAL_OF.items() if action == changing[0])
        text = f"{written.goal} is not what {changing[0]} brings about; expected {fitting}"
        yield ("goal",), "playbook-goal", text


def _lease(written: PlaybookFile) -> Iterator[Finding]:
    lends = any(step in LENDS for step in written.steps)
    if lends and not written.lease:
        yield ("lease",), "playbook-lease", "what scale takes is lent: say for how long, such as 2h"
    if written.lease and not lends:
        yield ("lease",), "playbook-lease", f"{', '.join(written.steps)} lends nothing that a lease could end"


def _times(written: PlaybookFile) -> Iterator[Finding]:
    for key in ("no_progress", "expires", "cooldown"):
        if not getattr(written, key):
            yield (key,), "playbook-no-time", f"{key}: expected more than 0s"
    if written.expires > _LONGEST_WAIT:
        yield ("expires",), "playbook-too-long", "expires: at most 24h; nobody knows what holds a day later"
    if written.expires and not timedelta(0) < written.remind_after < written.expires:
        text = "remind_after: expected more than 0s and less than expires, or nobody is reminded in time"
        yield ("remind_after",), "playbook-reminder", text
