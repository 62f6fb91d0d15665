"""Who may approve changes while a plan waits, or between a click and the step: what holds now counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from sevenhop.core.events import Verb
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.states import PlanState
from tests.builders import at
from tests.unit.remediation.desk.desk_scene import FREE, Scene, approved, lent, person, settings_of

BOB_ONLY = ("slack:U-bob",)


def _now(scene: Scene, approvers: tuple[str, ...], approvals: int = 1) -> None:
    """The settings are changed, which takes a restart of the service."""
    scene.settings = settings_of(replace(FREE, approvers=approvers, approvals=approvals))
    scene.restart()


def _clicked(scene: Scene) -> Scene:
    scene.begin()
    assert scene.decides(Verb.APPROVE, "ann").accepted
    return scene


def _tried(scene: Scene) -> Scene:
    _clicked(scene).does(Purpose.DRY_RUN)
    return scene


@pytest.mark.parametrize(
    ("begin", "purpose"),
    [(_clicked, Purpose.DRY_RUN), (_tried, Purpose.APPLY)],
    ids=["before it was tried", "before it is done"],
)
@pytest.mark.parametrize("approvers", [BOB_ONLY, ()], ids=["others may", "nobody may"])
def test_who_was_taken_off_the_list_has_not_approved(
    begin: Callable[[Scene], Scene], purpose: Purpose, approvers: tuple[str, ...]
) -> None:
    """The step is refused with the name, and nothing in the cluster is changed."""
    scene = begin(Scene())
    _now(scene, approvers)
    done = scene.does(purpose)
    assert "ann may not approve free-gpu-capacity" in done.detail
    assert (scene.case().state, scene.applied) == (PlanState.FAILED, [])
    assert "nothing was changed" in scene.case().why


def test_one_of_two_was_taken_off_the_list() -> None:
    """What is left is one yes, and two are needed."""
    scene = Scene(settings_of(replace(FREE, approvals=2))).begin()
    scene.decides(Verb.APPROVE, "ann")
    assert scene.decides(Verb.APPROVE, "bob").accepted
    _now(scene, BOB_ONLY, approvals=2)
    done = scene.does(Purpose.DRY_RUN)
    assert "1 of 2 approvals count: ann may not approve" in done.detail
    assert scene.applied == []


def test_a_second_person_was_made_necessary() -> None:
    """A plan that one had approved waits for no second one: it is not carried out."""
    scene = _clicked(Scene())
    _now(scene, FREE.approvers, approvals=2)
    assert "1 of 2 approvals count" in scene.does(Purpose.DRY_RUN).detail
    assert scene.applied == []


def test_an_emptied_list_while_a_plan_waits() -> None:
    """Everybody is told that nobody may; the plan ends by itself, never with a silent yes."""
    scene = Scene().begin()
    _now(scene, ())
    for verb in (Verb.APPROVE, Verb.REJECT):
        reply = scene.decides(verb, "ann")
        assert not reply.accepted
        assert "it names no approvers, so nobody may" in reply.text
    scene.passes(FREE.expires.total_seconds())
    assert scene.case().state is PlanState.EXPIRED
    assert scene.acts == {}


@pytest.mark.parametrize("begin", [approved, lent], ids=["under way", "lent"])
def test_what_was_taken_is_given_back_whoever_may_approve_now(begin: Callable[[Scene], Scene]) -> None:
    """Giving back needs nobody's leave."""
    scene = begin(Scene())
    _now(scene, ())
    scene.until(scene.seconds + FREE.lease.total_seconds() + 3_600, stop=lambda: bool(scene.undelivered))
    purpose = scene.undelivered[0].purpose
    assert purpose.gives_back
    scene.does(purpose)
    assert scene.donor.spec.replicas == 2


def test_one_person_by_two_identities_is_one() -> None:
    """Ann in Slack and Ann with her token carry one address, however it is written in the list."""
    both = replace(FREE, approvals=2, approvers=("slack:U-ann", "kubernetes:ann@corp", "slack:U-bob"))
    scene = Scene(settings_of(both)).begin()
    address = ("email:ann@corp",)
    assert scene.decides(Verb.APPROVE, person=person("ann", scene.seconds, is_same_as=address)).accepted
    token = Person(id="kubernetes:ann@corp", is_same_as=address, verified_at=at(scene.seconds))
    again = scene.decides(Verb.APPROVE, person=token)
    assert not again.accepted
    assert "another person is needed" in again.text
    assert scene.acts == {}
    bob = person("bob", scene.seconds, is_same_as=("email:bob@corp",))
    assert scene.decides(Verb.APPROVE, person=bob).accepted
    assert scene.purposes() == [Purpose.DRY_RUN]
