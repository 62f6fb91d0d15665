"""
Plays a scene of a playbook: watch events → alert → plan → decision → steps → goal → undone, or lent and given back.

    SimulatedCluster ─changes─► Engine ─steps─► executor ─HTTP─► SimulatedCluster's API server

Engine, guards and executor are those of production; time is virtual and goes from one due moment to the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from sevenhop.actions.errors import RetryableActError, UncertainActError
from sevenhop.core.alerts.alert import AlertState
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.effects import Act
from sevenhop.core.engine import Engine, Step
from sevenhop.core.events import (
    Applied,
    Decided,
    Deleted,
    Event,
    GpusSampled,
    SourceChanged,
    StepDone,
    SwitchSet,
    SyncState,
    XidSeen,
)
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.decode import convert
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation.case import Case
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.frameworks.scaling import SCALING
from sevenhop.rehearsal import cluster as stage
from sevenhop.rehearsal.cluster import SceneError
from sevenhop.rulebook.gpu_timeline import GpuWorld, events_of
from sevenhop.rulebook.playbook_scene import NONE, PlaybookScene, SceneExpectation, SceneMoment
from sevenhop.rulebook.playbook_world import START, person_named
from sevenhop.runtime.acting import build_acting
from sevenhop.simulation.store import Data, StoreError
from sevenhop.sources.kubernetes.api import Access, ApiServer

_AGAIN = timedelta(seconds=5)
_MOST_ROUNDS = 100
_CLUSTER = "test"

Difference = tuple[int, str]
"""(index of the expectation, what is otherwise)"""


def play(playbook: Playbook, scene: PlaybookScene, rules: Iterable[Rule]) -> list[Difference]:
    """
    What is otherwise than the scene expects.

    Args:
        playbook: As its file says; the scene sets mode and approvers.
        rules: All that may fire, also for other playbooks.

    Raises:
        SceneError: The scene cannot be played as it is written.
    """
    asked = replace(
        playbook, mode=scene.mode, approvers=tuple(scene.approvers), approvals=scene.approvals or playbook.approvals
    )
    try:
        return asyncio.run(_Play(asked, scene, tuple(rules)).run())
    except (StoreError, ValueError) as error:
        raise SceneError(str(error)) from error


class _Play:
    def __init__(self, playbook: Playbook, scene: PlaybookScene, rules: Sequence[Rule]) -> None:
        self._scene = scene
        self._rules = {rule.id for rule in rules if rule.playbook == playbook.id}
        settings = RemediationSettings(playbooks={playbook.id: playbook})
        desk = DeskSettings(receivers=("console",))
        self._engine = Engine(_CLUSTER, FRAMEWORKS, rules, Policy(), desk, settings, SCALING)
        self._cluster = stage.open_cluster(scene, START)
        self._clock = self._cluster.clock
        self._seen: dict[str, int] = {}
        self._firing: dict[str, str] = {}
        self._waiting: list[tuple[datetime, Act, bool, int]] = []
        self._samples = list(_samples(scene))
        self._wake: datetime | None = None
        self._told = ""
        self._requests = 0

    async def run(self) -> list[Difference]:
        found: list[Difference] = []
        moments, expected = list(self._scene.story), list(enumerate(self._scene.expect))
        async with self._cluster.server.serve() as url, ApiServer(Access(base_url=url)) as api:
            acting = build_acting(api, self._engine.permit, self._clock)
            self._carry_out = acting.carry_out
            await self._settle([*self._changes(), *_synced()])
            while expected:
                now = self._clock()
                while moments and START + moments[0].at <= now:
                    await self._live(moments.pop(0))
                await self._settle(())
                while expected and START + expected[0][1].at <= now:
                    index, wanted = expected.pop(0)
                    found += [(index, text) for text in self._differences(wanted)]
                self._clock.advance_to(self._next(moments, expected))
        return found

    def _next(self, moments: Sequence[SceneMoment], expected: Sequence[tuple[int, SceneExpectation]]) -> datetime:
        now = self._clock()
        times = [
            self._at_rest(),
            self._wake,
            *(START + moment.at for moment in moments[:1]),
            *(START + wanted.at for _, wanted in expected[:1]),
            *(event.at for event in self._samples[:1]),
            *(at for at, *_ in self._waiting),
        ]
        # A wake that is due now was asked for by what this second brought; the next one is a moment later.
        return min((at for at in times if at is not None and at > now), default=now + timedelta(seconds=1))

    def _at_rest(self) -> datetime | None:
        """When the cluster has something to do next."""
        try:
            return self._cluster.settle()
        except (LookupError, TypeError, AttributeError) as error:
            said = f"{type(error).__name__}: {error}"
            raise SceneError(f"the cluster does not work with what was patched ({said})") from error

    async def _live(self, moment: SceneMoment) -> None:
        stage.happen(self._cluster, moment)
        await self._settle(())
        now = self._clock()
        if moment.kill_switch is not None:
            who = person_named(self._scene.approvers[0], now)
            await self._ask(SwitchSet(at=now, request_id=self._request(), person=who, is_on=moment.kill_switch))
        for decision in moment.decide:
            case = self._case()
            decided = Decided(
                at=now,
                request_id=self._request(),
                person=person_named(decision.by, now),
                verb=decision.verb,
                plan_id=case.id if case is not None else NONE,
                plan_hash=case.plan.hash if case is not None else "",
                via="test",
            )
            await self._ask(decided)

    def _request(self) -> str:
        self._requests += 1
        return f"request-{self._requests}"

    async def _ask(self, event: Decided | SwitchSet) -> None:
        await self._settle([event])

    async def _settle(self, events: Sequence[Event]) -> None:
        """Until the cluster, the engine and the steps have come to rest at this second."""
        given = list(events)
        for _ in range(_MOST_ROUNDS):
            self._at_rest()
            now = self._clock()
            while self._samples and self._samples[0].at <= now:
                given.append(self._samples.pop(0))
            given += self._changes()
            is_due = self._wake is not None and self._wake <= now
            if not given and not is_due:
                done = await self._steps()
                if not done:
                    return
                given = done
            self._take(self._engine.handle(given, now))
            given = await self._steps()
        raise SceneError(f"no rest at {self._clock() - START}")

    def _take(self, step: Step) -> None:
        self._wake = step.next_wake
        for change in step.changes:
            alert = change.alert
            if alert.state is AlertState.FIRING:
                self._firing[alert.fingerprint] = alert.rule_id
            else:
                self._firing.pop(alert.fingerprint, None)
        for reply in step.replies:
            self._told = reply.text
        now = self._clock()
        self._waiting += [(now, effect, False, 0) for effect in step.effects if isinstance(effect, Act)]

    async def _steps(self) -> list[Event]:
        """Steps whose time has come are carried out; what is to be tried again is put off, as the outbox does."""
        now, done = self._clock(), list[Event]()
        due = [each for each in self._waiting if each[0] <= now]
        self._waiting = [each for each in self._waiting if each[0] > now]
        for _, act, uncertain, attempts in due:
            answer: StepDone | None = None
            try:
                answer = await self._carry_out(act, uncertain=uncertain, attempts=attempts)
            except RetryableActError:
                self._waiting.append((now + _AGAIN, act, uncertain, attempts + 1))
            except UncertainActError:
                self._waiting.append((now + _AGAIN, act, True, attempts + 1))
            done += [answer] if answer is not None else []
        return done

    def _changes(self) -> list[Event]:
        """What watches would tell of the store since the last time, in its order."""
        store, now = self._cluster.store, self._clock()
        found: list[tuple[int, Event]] = []
        for kind in KINDS:
            for change in store.changes_since(kind, self._seen.get(kind, 0)):
                self._seen[kind] = change.revision
                found.append((change.revision, _told(kind, change.type, change.data, change.revision, now)))
        return [event for _, event in sorted(found, key=lambda each: each[0])]

    # What is so

    def _case(self) -> Case | None:
        cases = list(self._engine.remediation.cases)
        return cases[-1] if cases else None

    def _differences(self, wanted: SceneExpectation) -> Iterator[str]:
        case = self._case()
        answers = [a for key in self._engine.desk.incidents if (a := self._engine.remediation.answer(key)) is not None]
        reasons = [answer for answer in answers if answer.plan is None]
        state = str(case.state) if case is not None else NONE
        said = " / ".join([*(answer.text for answer in reasons), *((case.plan.title, case.why) if case else ())])
        fires = sorted(set(self._firing.values()) & self._rules)
        if wanted.fires is not None and fires != sorted(wanted.fires):
            yield f"expected {wanted.fires or 'nothing'} to fire, {fires or 'nothing'} does"
        if wanted.plan is not None and str(wanted.plan) != state:
            yield f"expected the plan to be {wanted.plan}, is {state}: {said or 'nothing is said'}"
        if wanted.because is not None and wanted.because not in [answer.reason for answer in reasons]:
            given = [str(answer.reason) for answer in reasons]
            yield f"expected no plan because {wanted.because}, is because {given or 'nothing'}: {said}"
        if wanted.says is not None and wanted.says not in said:
            yield f"expected {wanted.says!r} to be said, is {said!r}"
        if wanted.told is not None and wanted.told not in self._told:
            yield f"expected {wanted.told!r} to be answered, is {self._told!r}"
        for what, numbers, count in (
            ("replicas", wanted.replicas, stage.replicas_of),
            ("Ready pods", wanted.ready, stage.ready_of),
        ):
            for name, number in numbers.items():
                if (found := count(self._cluster, name)) != number:
                    yield f"expected {number} {what} of {name}, are {found}"
        nodes = stage.cordoned(self._cluster)
        if wanted.cordoned is not None and sorted(wanted.cordoned) != nodes:
            yield f"expected {wanted.cordoned} to be cordoned, are {nodes}"


def _told(kind: str, change: str, data: Data, revision: int, now: datetime) -> Event:
    meta = data["metadata"]
    if change == "DELETED":
        return Deleted(
            at=now, epoch=1, seq=revision, kind=kind, namespace=meta.get("namespace", ""), name=meta["name"],
            uid=meta["uid"],
        )  # fmt: skip
    return Applied(at=now, epoch=1, seq=revision, kind=kind, obj=convert(KINDS[kind], data))


def _synced() -> list[Event]:
    return [SourceChanged(at=START, epoch=1, seq=1, kind=kind, state=SyncState.SYNCED) for kind in KINDS]


def _samples(scene: PlaybookScene) -> Iterator[Event]:
    """What the agents say; of the nodes themselves the cluster tells."""
    if not scene.cluster.agents:
        return
    nodes = scene.cluster.nodes
    world = GpuWorld(nodes=len(nodes), gpus=max(nodes.values()), product=stage.PRODUCT)
    for event in events_of(world, scene.samples, START, scene.end):
        if isinstance(event, GpusSampled | XidSeen):
            yield event
