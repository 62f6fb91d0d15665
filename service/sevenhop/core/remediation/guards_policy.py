"""What operators have set: cluster, kill switch, mode, freeze windows."""

from __future__ import annotations

from sevenhop.core.remediation.guards_freeze import frozen_until
from sevenhop.core.remediation.guards_question import Question
from sevenhop.core.remediation.playbook import Mode


def same_cluster(question: Question) -> str | None:
    made_for, here = question.plan.cluster, question.cluster
    if not here:
        return "this process does not know which cluster it watches; set `cluster`"
    if made_for != here:
        return f"the plan was made for cluster {made_for or '(none)'}, this is {here}; decide there"
    return None


def kill_switch(question: Question) -> str | None:
    switch = question.switch
    if switch.by_settings:
        return "the setting remediation.kill_switch is on; nothing new is changed until it is off"
    if switch.is_on:
        since = f" since {switch.at:%Y-%m-%d %H:%M} UTC" if switch.at else ""
        said = f": {switch.comment}" if switch.comment else ""
        return f"the kill switch is on{since} by {switch.by or 'somebody'}{said}; nothing new until it is off"
    return None


def mode(question: Question) -> str | None:
    playbook, wanted = question.playbook, question.plan.playbook
    if playbook is None or playbook.id != wanted:
        return f"there is no playbook {wanted} any more"
    if playbook.mode is not Mode.APPROVE:
        return f"playbook {wanted} is in mode {playbook.mode}; only `approve` changes anything"
    return None


def freeze(question: Question) -> str | None:
    for window in question.freezes:
        end = frozen_until(window, question.now)
        if end is not None:
            return f"freeze window {window.name} is open until {end:%Y-%m-%d %H:%M} UTC"
    return None
