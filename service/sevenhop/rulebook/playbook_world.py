"""The small world of a playbook's test: one plan, everything in order, until the story changes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.remediation.action import Action, Cordon, Edit, EvictPod, ObjectRef, Scale, Steer
from sevenhop.core.remediation.guards_breaker import Breaker
from sevenhop.core.remediation.guards_freeze import Freeze
from sevenhop.core.remediation.guards_question import (
    Approval,
    Evidence,
    PastRun,
    PodBudget,
    Question,
    Switch,
    Target,
    touched,
)
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.plan import Answer, Need, NoPlanReason, Plan
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.states import PlanState
from sevenhop.rulebook.playbook_timeline import Change, Earlier, PlanText, PlaybookMoment

START = datetime(2026, 1, 1, tzinfo=UTC)
"""Time 0 of every test: the plan is proposed."""
_DONOR = ObjectRef("Deployment.apps", "batch", "donor", "uid-donor")
_NODE = ObjectRef("Node", "", "node-1", "uid-node")
_POD = ObjectRef("Pod", "batch", "pod", "uid-pod")
_FAR = timedelta(days=365)


def plan_of(playbook: Playbook, written: PlanText) -> Plan:
    """A plan of this playbook with the numbers of the test; its steps are those that the playbook has."""
    before, after = written.replicas
    fewer = max(0, before - after)
    actions: list[Action] = []
    for step in playbook.steps:
        if step == "steer":
            actions.append(Steer(pods=tuple(replace(_POD, name=f"donor-{i}") for i in range(fewer))))
        elif step == "scale":
            edits = (Edit("/spec/replicas", before, after),)
            actions.append(
                Scale(
                    target=_DONOR, edits=edits, marked=_DONOR, workload=("batch", "donor"), component="predictor",
                    before=before, after=after, unit_gpus=written.gpus_per_replica,
                )
            )  # fmt: skip
        elif step == "evict-pod":
            actions += [EvictPod(pod=replace(_POD, name=f"stuck-{i}", uid=f"uid-{i}")) for i in range(written.pods)]
        elif step == "cordon":
            actions.append(Cordon(node=_NODE))
    scales = "scale" in playbook.steps
    gpus = fewer * written.gpus_per_replica if scales else 0
    need = Need(
        workload=("prod", "waiting"), component="decode", tier="critical", pods=(("prod", "waiting-0"),), gpus=gpus,
        product="H100", ready_goal=1,
    )  # fmt: skip
    return Plan(
        cluster="test",
        playbook=playbook.id,
        incident="test",
        need=need if scales else None,
        actions=tuple(actions),
        victims=tuple(("batch", f"donor-{i}") for i in range(fewer)) if scales else (),
        gpus=gpus,
        lease=playbook.lease if written.lease is None else written.lease,
        title=playbook.title,
        proposed_at=START,
        expires_at=START + playbook.expires,
    )


def person_named(who: str, at: datetime) -> Person:
    """Whom a story means, verified at this moment: a person, or somebody of a group."""
    kind, _, name = who.partition(":")
    is_group = kind.endswith("-group")
    # Known by an id of the same kind: only such ids can be told apart.
    named = f"{kind.removesuffix('-group')}:a-member-of-{name}" if is_group else who
    return Person(id=named, name=who, groups=(who,) if is_group else (), verified_at=at)


class World:
    """What is so at one second of the story."""

    def __init__(self, playbook: Playbook, plan: Plan) -> None:
        self.playbook, self.plan = playbook, plan
        self.approvals: list[Approval] = []
        self.history: list[PastRun] = []
        self.now = Change(needed=True, fits_plan=True, sources=["scheduler", "ledger"], floor=0)
        self.unknown: dict[str, UnknownReason] = {}

    def live(self, moment: PlaybookMoment) -> None:
        """Let one moment of the story happen."""
        at = START + moment.at
        change = moment.set
        given = {key: getattr(change, key) for key in change.model_fields_set}
        for key in given:
            self.unknown.pop(key, None)
        self.now = self.now.model_copy(update=given)
        self.unknown.update({str(key): reason for key, reason in moment.unknown.items()})
        for who in given.get("approved_by") or ():
            self.approvals.append(
                Approval(person=person_named(who, at), plan_id=self.plan.id, plan_hash=self.plan.hash, at=at)
            )
        if "mode" in given and change.mode is not None:
            self.playbook = replace(self.playbook, mode=change.mode)
        if change.earlier_run is not None:
            self.history += self._runs(change.earlier_run, at)

    def _runs(self, earlier: Earlier, at: datetime) -> list[PastRun]:
        ended = at - earlier.ended_ago
        return [
            PastRun(
                plan_id=f"earlier-{len(self.history) + i}",
                playbook=self.playbook.id,
                incident=f"earlier-{i}" if earlier.elsewhere else "test",
                touches=() if earlier.elsewhere else self.plan.touches,
                state=earlier.state,
                started_at=ended,
                ended_at=None if earlier.state is PlanState.RUNNING else ended,
            )
            for i in range(earlier.times)
        ]

    def question(self, since: timedelta, purpose: Purpose) -> Question:
        """What the guards are asked at this second."""
        at, now = START + since, self.now
        live = Answer(plan=self.plan) if now.fits_plan else Answer(reason=NoPlanReason.NOT_ENOUGH, text="as told")
        return Question(
            cluster="test",
            plan=self.plan,
            purpose=purpose,
            effect_id="test",
            actions=self.plan.actions,
            done=0,
            now=at,
            state=PlanState.APPROVED,
            playbook=self.playbook,
            switch=Switch(is_on=bool(now.kill_switch)),
            breaker=Breaker(opened_at=at) if now.breaker_open else Breaker(),
            freezes=(Freeze(name="test", start=START, end=START + _FAR),) if now.frozen else (),
            approvals=tuple(self.approvals),
            history=tuple(self.history),
            targets=self._targets(),
            budgets=self._budgets(),
            is_needed=self._of("needed", value=bool(now.needed)),
            live=live,
            evidence=tuple(Evidence(fact="test", source=source, seen_at=at) for source in now.sources or ()),
            blind=(("Pod", self._unknown("pods")),) if "pods" in self.unknown else (),
            as_of=at,
            pool_turned_bad=self._of("pool_turned_bad", value=bool(now.pool_turned_bad)),
        )

    def _of(self, key: str, *, value: bool) -> bool | Unknown:
        return self._unknown(key) if key in self.unknown else value

    def _unknown(self, key: str) -> Unknown:
        return Unknown(self.unknown[key], "as told")

    def _budgets(self) -> tuple[PodBudget, ...]:
        if "budget_allows" in self.unknown:
            return (PodBudget(name="batch/test", allowed=self._unknown("budget_allows"), victims=0),)
        if self.now.budget_allows is None:
            return ()
        evicted = sum(1 for action in self.plan.actions if isinstance(action, EvictPod))
        victims = len(self.plan.victims) + evicted
        return (PodBudget(name="batch/test", allowed=self.now.budget_allows, victims=victims),)

    def _targets(self) -> tuple[Target, ...]:
        now = self.now
        scales = {scale.target: scale for scale in self.plan.scales}
        sight = self._unknown("target") if "target" in self.unknown else None
        found = []
        for ref in touched(self.plan.actions):
            scale = scales.get(ref)
            replicas = floor = None
            if scale is not None:
                replicas = scale.before if now.replicas_now is None else now.replicas_now
                floor = self._unknown("floor") if "floor" in self.unknown else now.floor
            found.append(
                Target(
                    ref=replace(ref, uid="uid-anew") if now.made_anew else ref,
                    sight=sight,
                    replicas=replicas,
                    floor=floor,
                    opted_out="annotation" if now.opted_out else "",
                )
            )
        return tuple(found)
