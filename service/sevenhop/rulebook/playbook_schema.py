"""What people write in a playbook's file; the descriptions are the reference and the editor's help."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from sevenhop.core.remediation.playbook import Goal, Mode
from sevenhop.rulebook.problem import did_you_mean
from sevenhop.rulebook.schema import Duration, Model, Slug, Text, word

IDENTITIES: tuple[str, ...] = ("slack", "slack-group", "kubernetes", "kubernetes-group", "unix")
"""Kinds of people and groups that a channel can verify."""
GROUPS: frozenset[str] = frozenset({"slack-group", "kubernetes-group"})
"""Those of them that may be many people."""


def approver(text: str) -> str:
    """
    A person or a group as a channel verifies it.

    Raises:
        ValueError: Not `kind:id`, or a kind that no channel verifies.

    >>> approver("slack-group:S0123")
    'slack-group:S0123'
    """
    kind, colon, name = text.partition(":")
    if not colon or not name.strip() or re.search(r"\s", text):
        raise ValueError(f"expected an id such as slack:U0123 or slack-group:S0123, got {text!r}")
    if kind not in IDENTITIES:
        hint = did_you_mean(kind, IDENTITIES) or f"; one of {', '.join(IDENTITIES)}"
        raise ValueError(f"nobody verifies {kind!r}{hint}")
    return text


def off_as_written(value: object) -> object:
    """YAML 1.1 reads `off` without quotes as false; who writes `mode: off` means the word."""
    return str(Mode.OFF) if value is False else value


Approver = Annotated[str, AfterValidator(approver)]
ModeWord = Annotated[Mode, word(Mode), BeforeValidator(off_as_written)]
AtLeastOne = Annotated[int, Field(ge=1)]


class PlaybookFile(Model):
    """One playbook: ``playbooks/<id>.yaml``."""

    id: Slug = Field(description="Name of the playbook, in kebab-case; equal to the file's name.")
    title: Text = Field(description="What it does, in a few words for a button's dialog.")
    mode: ModeWord = Field(
        default=Mode.SHADOW,
        description="`off`: no plans; `shadow`: plans are made and recorded, nobody is asked; `approve`: people are "
        "asked. The settings may say otherwise for one installation.",
    )
    steps: Annotated[list[str], Field(min_length=1)] = Field(description="Names in the table of actions, in order.")
    goal: Annotated[Goal, word(Goal)] = Field(
        description="What must be true for a run to have helped: `beneficiary-ready` (the pods that waited are Ready), "
        "`owner-ready` (the owner has as many ready pods as before, the new one included), `node-cordoned`, "
        "`node-advertises` (the node offers as many GPUs as it should)."
    )
    approvers: list[Approver] = Field(
        default_factory=list,
        description="Who may approve, as a channel verifies it: `slack:U0123`, `slack-group:S0123`, "
        "`kubernetes:alice@corp`, `kubernetes-group:llm-oncall`, `unix:root`; nobody if empty.",
    )
    approvals: Literal[1, 2] = Field(default=1, description="How many different people must agree.")
    no_progress: Duration = Field(
        default=timedelta(minutes=15),
        description="A run is undone after so long without progress; where a model is known to load longer, later.",
    )
    lease: Duration = Field(
        default=timedelta(0), description="How long what a step lends stays lent; 0s for what is not given back."
    )
    expires: Duration = Field(
        default=timedelta(minutes=15), description="How long people may take to decide; silence is a no."
    )
    remind_after: Duration = Field(default=timedelta(minutes=5), description="When they are reminded, once.")
    cooldown: Duration = Field(
        default=timedelta(minutes=30),
        description="After any outcome it leaves the same objects alone for so long.",
    )
    most_replicas: AtLeastOne = Field(default=2, description="Of one plan: replicas fewer, or pods removed.")
    most_gpus: AtLeastOne = Field(default=16, description="Of one plan: GPUs taken from donors.")
    most_runs_per_day: AtLeastOne = Field(default=10, description="In one cluster, within 24 hours.")
    most_concurrent: AtLeastOne = Field(default=1, description="Runs at once in one cluster.")
    description: Annotated[str, StringConstraints(strip_whitespace=True, min_length=40)] = Field(
        description="What it does and why that helps, in one or two sentences."
    )
    costs: Annotated[list[Text], Field(min_length=1)] = Field(description="What it may cost, and whom.")
    not_for: Annotated[list[Text], Field(min_length=1)] = Field(description="When it is no help, or does harm.")
