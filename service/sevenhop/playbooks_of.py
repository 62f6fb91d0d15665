"""From settings and files to what the core does: playbooks with the installation's say, freezes, limits."""

from __future__ import annotations

from msgspec.structs import replace

from sevenhop.core.remediation.guards_breaker import BreakerLimits
from sevenhop.core.remediation.guards_freeze import Freeze
from sevenhop.core.remediation.guards_question import GuardLimits
from sevenhop.core.remediation.playbook import Mode, Playbook
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.rulebook.playbook_lint import people
from sevenhop.rulebook.playbook_load import Playbooks, load_playbooks
from sevenhop.rulebook.problem import did_you_mean
from sevenhop.rulebook.shipped import shipped_playbooks
from sevenhop.settings import Settings, SettingsError
from sevenhop.settings_remediation import FreezeSettings


def build_playbooks(settings: Settings) -> Playbooks:
    """The playbooks as their files say, with all their problems: those of the settings, else the shipped ones."""
    return load_playbooks(settings.playbooks or [shipped_playbooks()])


def remediation_of(settings: Settings, book: Playbooks) -> RemediationSettings:
    """
    What the settings say of remediation.

    Raises:
        SettingsError: A playbook that is not there, or one in mode `approve` that nobody could approve; all at once.
    """
    wanted = settings.remediation
    problems = [
        f"remediation.playbooks.{name}: there is no playbook {name}"
        + (did_you_mean(name, book.names) or f"; there are {', '.join(sorted(book.names)) or 'none'}")
        for name in wanted.playbooks
        if name not in book.names
    ]
    playbooks = {playbook.id: _as_installed(playbook, settings) for playbook in book.playbooks}
    for playbook in playbooks.values():
        for _, _, said in people(playbook.mode, list(playbook.approvers), playbook.approvals):
            problems.append(f"remediation.playbooks.{playbook.id}: {said}")
    if problems:
        raise SettingsError(problems)
    return RemediationSettings(
        playbooks=playbooks,
        freezes=tuple(_freeze(freeze) for freeze in wanted.freeze),
        breaker=BreakerLimits(most_failures=wanted.breaker.most_failures, window=wanted.breaker.window),
        guard_limits=GuardLimits(verified_within=wanted.verified_within, approval_good_for=wanted.approval_good_for),
        kill_switch=wanted.kill_switch,
    )


def _as_installed(playbook: Playbook, settings: Settings) -> Playbook:
    wanted = settings.remediation
    said = wanted.playbooks.get(playbook.id)
    approvers = playbook.approvers or tuple(wanted.approvers)
    if said is None:
        return replace(playbook, approvers=approvers)
    return replace(
        playbook,
        mode=playbook.mode if said.mode is None else Mode(said.mode),
        approvers=approvers if said.approvers is None else tuple(said.approvers),
        approvals=said.approvals or playbook.approvals,
    )


def _freeze(freeze: FreezeSettings) -> Freeze:
    return Freeze(
        name=freeze.name,
        start=freeze.start,
        end=freeze.end,
        weekdays=freeze.weekdays,
        since=freeze.since,
        until=freeze.until,
    )
