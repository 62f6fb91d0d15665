"""How long who makes room may take to end, and whether that leaves anything to lend."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.planning.words import minutes
from sevenhop.core.remediation.playbook import Playbook


def grace_of(pods: Iterable[Pod]) -> timedelta:
    """
    The longest of theirs; zero where nobody runs: a pod without a node is deleted at once.

    Its owner wrote it, so that requests end well; it may end sooner, and nothing says that it will.
    """
    return timedelta(
        seconds=max((0, *(pod.spec.termination_grace_period_seconds for pod in pods if pod.spec.node_name)))
    )


def too_late(grace: timedelta, playbook: Playbook) -> str:
    """
    Why victims with such a grace give nothing: the lease runs from the first step, and would be over before them.

    Empty where they do, and for what is not lent at all.
    """
    if not playbook.lease or grace < playbook.lease:
        return ""
    return (
        f"its pods may take {minutes(grace)} to end (terminationGracePeriodSeconds), and the lease of "
        f"{minutes(playbook.lease)} would be over by then"
    )


def slow(grace: timedelta, playbook: Playbook) -> str:
    """
    What a person has to know where the room may come later than a run otherwise waits without progress.

    The run does wait for it, by that very grace; empty where it comes sooner.
    """
    if grace <= playbook.no_progress:
        return ""
    left = f", and then {minutes(playbook.lease - grace)} of the lease is left" if playbook.lease else ""
    return f"the room may come only after {minutes(grace)}, the grace of who goes{left}"
