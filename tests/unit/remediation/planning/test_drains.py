"""Who goes may take as long to end as its owner wrote: what comes too late is not offered, what comes late is said."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.plan import NoPlanReason
from sevenhop.core.remediation.planning.drains import grace_of, slow, too_late
from sevenhop.core.remediation.playbook import Playbook
from tests import builders as b
from tests.unit.remediation.planning.planning_scene import World, names, playbook

NEEDY = (("prod", "needy"), "engine")
LEASE = 7_200


def _world(graces: Mapping[str, int], **giver: Any) -> World:
    """A donor of two pods on one node; by name of a pod, the seconds that its owner gave it to end."""
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"], **giver)
    world.waits("needy")
    _slow(world, graces)
    return world


def _slow(world: World, graces: Mapping[str, int]) -> None:
    for place, each in enumerate(world.objects):
        if isinstance(each, Pod) and each.metadata.name in graces:
            spec = replace(each.spec, termination_grace_period_seconds=graces[each.metadata.name])
            world.objects[place] = replace(each, spec=spec)


def _both(seconds: int) -> dict[str, int]:
    return {"giver-aaaa-0": seconds, "giver-aaaa-1": seconds}


def _told(**more: Any) -> Playbook:
    return replace(playbook(), **more)


@pytest.mark.parametrize(
    ("grace", "lease", "is_offered"),
    [
        pytest.param(LEASE - 1, LEASE, True, id="a second before the lease is over"),
        pytest.param(LEASE, LEASE, False, id="as long as the lease"),
        pytest.param(3_600, 1_800, False, id="an hour, and lent for half of one"),
        pytest.param(86_400, LEASE, False, id="a day"),
        pytest.param(86_400, 0, True, id="what is not given back has no end to come before"),
        pytest.param(-5, LEASE, True, id="less than nothing is nothing"),
    ],
)
def test_what_comes_after_the_lease_is_not_offered(grace: int, lease: int, is_offered: bool) -> None:
    """Nothing would be lent for the disturbance; whoever asks is told which field says so."""
    answer = _world(_both(grace)).answer(NEEDY, using=_told(lease=timedelta(seconds=lease)))
    assert (answer.plan is not None) is is_offered, answer.text
    if not is_offered:
        [considered] = [each for each in answer.considered if each.who == "prod/giver/engine"]
        assert considered.reason == "slow"
        assert "terminationGracePeriodSeconds" in considered.text
        assert answer.reason is NoPlanReason.NO_DONOR
        assert considered.text in answer.text


@pytest.mark.parametrize(
    ("grace", "lease", "said"),
    [
        pytest.param(900, LEASE, "", id="within the limit"),
        pytest.param(
            3_600,
            LEASE,
            "prod/giver/engine: the room may come only after 1 h, the grace of who goes, "
            "and then 1 h of the lease is left",
            id="an hour",
        ),
        pytest.param(
            901, 0, "prod/giver/engine: the room may come only after 15 min, the grace of who goes", id="no lease"
        ),
    ],
)
def test_what_comes_late_is_said(grace: int, lease: int, said: str) -> None:
    """A run waits for a drain however long it may be, so a person hears of it before saying yes."""
    plan = _world(_both(grace)).plan(NEEDY, using=_told(lease=timedelta(seconds=lease)))
    assert [note for note in plan.notes if "the room may come" in note] == ([said] if said else [])


@pytest.mark.parametrize(("seconds", "expected"), [((), 0), ((-5,), 0), ((0,), 0), ((30, 90, 60), 90)])
def test_the_longest_grace_counts(seconds: tuple[int, ...], expected: int) -> None:
    """And nobody's is no time at all."""
    one = b.pod("p", node="gpu-1")
    pods = [replace(one, spec=replace(one.spec, termination_grace_period_seconds=each)) for each in seconds]
    assert grace_of(pods) == timedelta(seconds=expected)


def test_another_replica_that_ends_in_time_is_taken() -> None:
    """The late one is passed over where the choice can be steered."""
    assert names(_world({"giver-aaaa-0": LEASE}).plan(NEEDY)) == ["giver-aaaa-1"]


def test_whoever_may_go_counts_where_the_choice_is_not_ours() -> None:
    """One that would come too late is enough, for it may be the one that goes."""
    world = _world({"giver-aaaa-0": LEASE}, chooser="any")
    answer = world.answer(NEEDY)
    assert answer.plan is None
    assert answer.reason is NoPlanReason.NOT_SAFE
    assert "terminationGracePeriodSeconds" in answer.text


@pytest.mark.parametrize(
    ("grace", "reason", "words"),
    [
        pytest.param(LEASE, "slow", "may take 2 h to end", id="too late"),
        pytest.param(1_800, "larger", "may take longer to end", id="late"),
        pytest.param(900, "larger", "no smaller disturbance", id="in time: the name decides"),
    ],
)
def test_of_equal_donors_the_one_that_ends_soon_is_taken(grace: int, reason: str, words: str) -> None:
    """And the other one stands among those that were looked at, with its reason."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("alike", ["gpu-1", "gpu-1"])
    world.donor("other", ["gpu-2", "gpu-2"])
    world.waits("needy")
    _slow(world, {"alike-aaaa-0": grace, "alike-aaaa-1": grace})
    answer = world.answer(NEEDY)
    assert answer.plan is not None, answer.text
    chosen, passed = ("alike", "other") if grace <= 900 else ("other", "alike")
    assert answer.plan.victims[0][1].startswith(chosen)
    [considered] = [each for each in answer.considered if each.who == f"prod/{passed}/engine"]
    assert considered.reason == reason
    assert words in considered.text


def test_who_never_got_a_node_ends_at_once() -> None:
    """The kubelet waits for what runs; a pod that waits for a node itself is simply deleted."""
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"], waiting=1)
    world.waits("needy")
    _slow(world, {"giver-aaaa-2": LEASE})
    answer = world.answer(NEEDY, using=_told(most_replicas=2))
    assert answer.plan is not None, answer.text
    assert "giver-aaaa-2" in names(answer.plan)


def test_what_ends_soon_needs_no_words() -> None:
    """Neither a refusal nor a note."""
    at_once = timedelta(seconds=30)
    assert (too_late(at_once, playbook()), slow(at_once, playbook())) == ("", "")
