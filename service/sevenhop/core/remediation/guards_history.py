"""What was done before: circuit breaker, cooldown, runs at once, runs per day."""

from __future__ import annotations

from sevenhop.core.remediation.guards_question import PastRun, Question, place
from sevenhop.core.remediation.states import PlanState


def breaker(question: Question) -> str | None:
    found = question.breaker
    if found.opened_at is not None:
        which = ", ".join(plan_id for _, plan_id in found.failures)
        since = f"{found.opened_at:%Y-%m-%d %H:%M} UTC"
        then = "look at them, then `sevenhop switch reset-breaker`"
        return f"the circuit breaker is open since {since}, after runs {which}; {then}"
    return None


def cooldown(question: Question) -> str | None:
    playbook, plan = question.playbook, question.plan
    if playbook is None:
        return f"there is no playbook {plan.playbook} that says how long to wait"
    for run in _others(question):
        # A pod that is made anew has another name; it is the incident that tells that this was tried already.
        again = plan.need is None and run.incident == plan.incident
        if run.playbook != plan.playbook or not (again or _shared(run, question)):
            continue
        if run.state is PlanState.RUNNING:
            continue
        over = (run.ended_at or run.started_at) + playbook.cooldown
        if question.now < over:
            return f"{playbook.id} did {run.plan_id} here, {run.state}; it waits until {over:%Y-%m-%d %H:%M:%S} UTC"
    return None


def concurrent(question: Question) -> str | None:
    playbook, plan = question.playbook, question.plan
    if playbook is None:
        return f"there is no playbook {plan.playbook} that says how many runs at once"
    others = _others(question)
    for run in others:
        # What came of an unknown run is for a person to say, before anything else happens to these objects.
        if run.state in (PlanState.RUNNING, PlanState.UNKNOWN) and (shared := _shared(run, question)):
            return f"run {run.plan_id} on {shared} is {run.state}; it has to end first"
        # The mark on the donor says so too, but anybody may take that off.
        if run.lends and (shared := _shared(run, question)):
            return f"run {run.plan_id} has lent from {shared}; that is given back first"
        if run.state is PlanState.RUNNING and run.incident == plan.incident:
            return f"run {run.plan_id} for the same incident has not ended"
    running = {r.plan_id for r in others if r.state is PlanState.RUNNING and r.playbook == plan.playbook}
    if len(running) >= playbook.most_concurrent:
        return f"{len(running)} other runs of {playbook.id} now, and it allows {playbook.most_concurrent} at once"
    return None


def daily_budget(question: Question) -> str | None:
    playbook, plan = question.playbook, question.plan
    if playbook is None:
        return f"there is no playbook {plan.playbook} that says how many runs a day"
    since = question.now - question.limits.day
    recent = {r.plan_id for r in _others(question) if r.playbook == plan.playbook and r.started_at > since}
    if len(recent) >= playbook.most_runs_per_day:
        return f"{len(recent)} runs of {playbook.id} within a day, and it allows {playbook.most_runs_per_day}"
    return None


def _others(question: Question) -> tuple[PastRun, ...]:
    """Runs of other plans: a run is not in its own way."""
    return tuple(run for run in question.history if run.plan_id != question.plan.id)


def _shared(run: PastRun, question: Question) -> str:
    """An object that both touch, in words; empty if there is none.  A new incarnation is the same object here."""
    ours = {place(ref) for ref in question.plan.touches}
    return next((str(ref) for ref in run.touches if place(ref) in ours), "")
