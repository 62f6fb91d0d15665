"""A playbook as the core sees it: what may be done, how far it may go, and who must agree."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

import msgspec


class Mode(StrEnum):
    OFF = "off"  # no plans
    SHADOW = "shadow"  # plans are made and recorded, nobody is asked
    APPROVE = "approve"  # people are asked


class Goal(StrEnum):
    """What must be true for a run to have helped."""

    BENEFICIARY_READY = "beneficiary-ready"  # the pods that waited are Ready
    OWNER_READY = "owner-ready"  # the pod's owner has as many ready pods as before, the new one included
    NODE_CORDONED = "node-cordoned"
    NODE_ADVERTISES = "node-advertises"  # the node advertises as many GPUs as expected


class Playbook(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        steps: Names in the table of actions, in order.
        approvers: Ids and groups as in `Person`; empty allows nobody.
        approvals: People who must agree, 1 or 2.
        goal: See `Goal`.
        no_progress: The run is undone after so long without progress; the model's own load times may make it longer.
        lease: How long the capacity stays borrowed; zero for what is not given back.
        expires: How long a person may take to decide; `remind_after` is when they are reminded, once.
        cooldown: After any outcome, unknown included, the same playbook leaves the same objects alone for so long.
        most_replicas, most_gpus: Of one plan.
        most_runs_per_day: Of this playbook in one cluster.
        most_concurrent: Runs of this playbook at once.
    """

    id: str
    title: str = ""
    steps: tuple[str, ...]
    mode: Mode = Mode.SHADOW
    approvers: tuple[str, ...] = ()
    approvals: int = 1
    goal: Goal
    no_progress: timedelta = timedelta(minutes=15)
    lease: timedelta = timedelta(hours=2)
    expires: timedelta = timedelta(minutes=15)
    remind_after: timedelta = timedelta(minutes=5)
    cooldown: timedelta = timedelta(minutes=30)
    most_replicas: int = 2
    most_gpus: int = 16
    most_runs_per_day: int = 10
    most_concurrent: int = 1
