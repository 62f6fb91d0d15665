"""Marks that somebody else wrote: what stands on an object gives leave for nothing beyond that object."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.core.effects import Borrow
from sevenhop.core.events import StepResult, Verb
from sevenhop.core.remediation.action import Cordon, Edit, EvictPod, ObjectRef, Scale, Steer
from sevenhop.core.remediation.borrowed import BORROWED, encode_borrow
from sevenhop.core.remediation.case import Stage
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.plan import Plan
from sevenhop.core.remediation.states import PlanState
from tests.builders import at, deployment, node
from tests.unit.remediation.desk.desk_scene import FREE, Scene, approved, lent, settings_of

OWN = "Deployment.apps"
GUESTS = "guests"


def ref(namespace: str, name: str) -> ObjectRef:
    return ObjectRef(OWN, namespace, name, f"uid-{namespace}-{name}")


def scale_of(target: ObjectRef, marked: ObjectRef, **more: Any) -> Scale:
    given: dict[str, Any] = {
        "subresource": "scale",
        "edits": (Edit("/spec/replicas", 5, 1),),
        "workload": (marked.namespace, marked.name),
        "component": "engine",
        "before": 5,
        "after": 1,
        **more,
    }
    return Scale(target=target, marked=marked, **given)


def mark_of(*actions: Any, **more: Any) -> str:
    """A mark whose plan, id and hash fit each other: whoever can write an annotation can compute them."""
    given: dict[str, Any] = {"cluster": "test", "lease": timedelta(hours=1), **more}
    until = given.pop("until", at(600))
    plan = Plan(
        playbook="free-gpu-capacity",
        incident="i",
        actions=actions,
        title="a 5 → 1",
        **{"proposed_at": at(0), "expires_at": at(900), **given},
    )
    scale = next((each for each in actions if isinstance(each, Scale)), None)
    workload = "/".join(scale.workload) if scale is not None else "guests/own"
    return encode_borrow(
        Borrow(
            plan=plan.id,
            hash=plan.hash,
            incident="i",
            workload=workload,
            component="engine",
            before=5,
            after=1,
            until=until,
            by="the boss",
            terms=plan,
        )
    )


def carried(mark: str) -> Scene:
    """A guest's Deployment carries the mark; the store is empty, and the lease in it ends."""
    scene = Scene()
    scene.tell(scene.feed.synced(), 0)
    own = deployment("own", replicas=1, gpus=1, namespace=GUESTS, annotations={BORROWED: mark})
    other = deployment("router", replicas=1, gpus=1, namespace="payments")
    scene.put(node("gpu-0", gpus=4), own, other, seconds=1)
    scene.until(1_000)
    scene.passes(10)
    return scene


BEYOND, OTHERS = "beyond its own object", "about other objects"
MORE, FEWER = "more than giving back", "more than giving back replicas"
WAY, TIME, AWAY = "not scaled that way", "no lease has", "another cluster"
param = pytest.param
MINE, THEIRS = ref(GUESTS, "own"), ref("payments", "router")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        param(lambda: mark_of(scale_of(THEIRS, MINE)), BEYOND, id="another namespace's object"),
        param(lambda: mark_of(scale_of(THEIRS, THEIRS)), OTHERS, id="an object that carries no mark"),
        param(lambda: mark_of(scale_of(MINE, MINE), scale_of(THEIRS, MINE)), BEYOND, id="beside its own"),
        param(
            lambda: mark_of(scale_of(ref(GUESTS, "neighbour"), MINE)),
            BEYOND,
            id="a neighbour in the namespace",
        ),
        param(
            lambda: mark_of(scale_of(MINE, MINE, also=((THEIRS, (Edit("/spec/replicas", 5, 1),), ()),))),
            BEYOND,
            id="also",
        ),
        param(
            lambda: mark_of(scale_of(MINE, MINE), Cordon(node=ObjectRef("Node", "", "gpu-0"))),
            MORE,
            id="a node",
        ),
        param(
            lambda: mark_of(scale_of(MINE, MINE), EvictPod(pod=ObjectRef("Pod", "x", "y"))),
            MORE,
            id="a pod",
        ),
        param(
            lambda: mark_of(Steer(pods=(ObjectRef("Pod", "payments", "y"),)), scale_of(MINE, MINE)),
            MORE,
            id="steer",
        ),
        param(
            lambda: mark_of(scale_of(MINE, MINE, before=0, edits=(Edit("/spec/replicas", 0, 1),))),
            "asks for fewer replicas",
            id="fewer",
        ),
        param(
            lambda: mark_of(scale_of(MINE, MINE, edits=(Edit("/spec/template/spec/priority", 5, 1),))),
            FEWER,
            id="a field",
        ),
        param(
            lambda: mark_of(scale_of(MINE, MINE, edits=(Edit("/spec/replicas", 5, 1), Edit("/spec/x", "evil", None)))),
            FEWER,
            id="a text",
        ),
        param(lambda: mark_of(scale_of(MINE, MINE, subresource="status")), WAY, id="a subresource"),
        param(lambda: mark_of(scale_of(MINE, MINE), cluster="elsewhere"), AWAY, id="another cluster"),
        param(
            lambda: mark_of(scale_of(MINE, MINE), lease=timedelta(days=900_000_000)),
            TIME,
            id="an endless lease",
        ),
        param(lambda: mark_of(scale_of(MINE, MINE), until=at(4e9)), TIME, id="the year 2153"),
        param(lambda: mark_of(), OTHERS, id="nothing"),
        param(lambda: '{"x":' + "[" * 100_000, "cannot be read", id="bottomless"),
    ],
)
def test_a_mark_gives_leave_for_nothing_but_its_own_object(make: Callable[[], str], why: str) -> None:
    """It is told to people, once, and nothing is done: not at once, and not when it says that it ends."""
    scene = carried(make())
    assert scene.acts == {}
    assert scene.cases == []
    told = [text for text in scene.audited() if "own" in text]
    assert len(told) == 1
    assert why in told[0]
    scene.until(3 * 3600)
    scene.passes(10)
    assert scene.acts == {}


def test_a_mark_about_its_own_object_is_followed() -> None:
    """The same in order: given back when it says, and only from the object that carries it."""
    scene = carried(mark_of(scale_of(MINE, MINE)))
    (act,) = scene.acts.values()
    assert act.plan.scales[0].target == MINE
    assert act.needs_mark


def test_who_agreed_is_only_what_the_mark_says() -> None:
    """Anybody may have written the name of the boss."""
    scene = carried(mark_of(scale_of(MINE, MINE)))
    (act,) = scene.acts.values()
    assert "approved by the boss" not in act.note
    assert scene.case().decided_by != "the boss"


@pytest.mark.parametrize("of", ["proposed_at", "expires_at"])
def test_a_mark_whose_times_cannot_be_compared_is_told(of: str) -> None:
    """A time without a time zone: everybody else's plans are made and carried out all the same."""
    scene = Scene()
    mark = mark_of(scale_of(MINE, MINE), **{of: at(0).replace(tzinfo=None)})
    scene.put(deployment("own", replicas=1, gpus=1, namespace=GUESTS, annotations={BORROWED: mark}))
    approved(scene)
    assert [text for text in scene.audited() if "no time zone" in text] != []


def test_marks_alone_count_against_nobody() -> None:
    """Whoever may annotate their own objects uses up no budget, and opens no breaker, by leases that never were."""
    scene = Scene(settings_of(replace(FREE, most_runs_per_day=1)))
    for name in ("own-a", "own-b", "own-c"):
        mine = ref(GUESTS, name)
        notes = {BORROWED: mark_of(scale_of(mine, mine), until=at(30))}
        scene.put(deployment(name, replicas=1, gpus=1, namespace=GUESTS, annotations=notes))
    scene.begin()
    assert len(scene.undelivered) == 3
    for _ in range(scene.settings.give_back_attempts):
        for _ in range(len(scene.undelivered)):
            scene.answers(scene.next_act(), StepResult.UNKNOWN, "denied")
        scene.passes(scene.settings.give_back_longest.total_seconds())
    assert [case.state for case in scene.cases if case.is_adopted] == [PlanState.UNKNOWN] * 3
    assert not scene.engine.remediation.breaker.is_open
    (offered,) = (case for case in scene.cases if case.stage is Stage.DECISION)
    assert scene.decides(Verb.APPROVE, plan=offered.id).accepted


def test_a_copy_of_an_old_mark_elsewhere_starts_nothing() -> None:
    """The plan was restored long ago, and somebody puts its mark on an object of theirs: the donor is left alone."""
    scene = lent(Scene(settings_of(replace(FREE, lease=timedelta(minutes=30)))))
    mark = scene.donor.metadata.annotations[BORROWED]
    scene.decides(Verb.RESTORE)
    scene.does(Purpose.RESTORE)
    scene.scale(1)
    scene.passes(3_000)
    asked = len(scene.acts)
    scene.put(deployment("own", replicas=1, gpus=1, namespace=GUESTS, annotations={BORROWED: mark}))
    scene.passes(600)
    assert len(scene.acts) == asked
