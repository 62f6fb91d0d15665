"""What comes free may let in somebody who waits outside of the scheduler: then it is not given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.core.inventory.workloads import Framework
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.plan import Answer, Need, NoPlanReason
from sevenhop.core.remediation.planning import Reservations, plan_for
from sevenhop.core.remediation.reduction import View
from tests import builders as b
from tests.unit.remediation.planning.planning_scene import SCALING, World, playbook

NEEDY = (("prod", "needy"), "engine")


class Queue:
    """A queue that lets somebody in when a pod of this name goes; it remembers what it was asked."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.made = 0
        self.asked: list[tuple[list[str], list[str]]] = []

    def make(self, _view: View) -> Callable[[Sequence[Pod], Sequence[Pod]], str]:
        self.made += 1
        return self._taker

    def _taker(self, victims: Sequence[Pod], needy: Sequence[Pod]) -> str:
        names = [pod.metadata.name for pod in victims]
        self.asked.append((names, [pod.metadata.name for pod in needy]))
        return f"the queue lets batch-7 in for {self._name}" if self._name in names else ""


def _answer(world: World, queue: Queue, **more: Any) -> Answer:
    need = world.need(NEEDY)
    assert isinstance(need, Need), need
    return plan_for(
        world.state,
        need,
        playbook=playbook(**more),
        incident="incident-1",
        scaling={Framework.PLAIN: replace(SCALING[Framework.PLAIN], taker=queue.make)},
        reserved=Reservations(),
        now=b.at(600),
    )


def _world(*nodes: str, chooser: str = "replica-set") -> World:
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("filler", ["gpu-2", "gpu-2"], tier="critical")
    world.donor("giver", list(nodes), chooser=chooser)
    world.waits("needy")
    return world


def test_who_would_be_let_in_is_the_reason() -> None:
    """Of no plan, and beside the donor."""
    queue = Queue("giver-aaaa-1")
    answer = _answer(_world("gpu-1", "gpu-1", chooser="highest"), queue)
    assert answer.plan is None
    assert answer.reason is NoPlanReason.NOT_SAFE
    assert "prod/giver/engine: the queue lets batch-7 in for giver-aaaa-1" in answer.text
    [considered] = [each for each in answer.considered if each.who == "prod/giver/engine"]
    assert (considered.reason, considered.text) == ("queued", "the queue lets batch-7 in for giver-aaaa-1")
    assert (["giver-aaaa-1"], ["needy-aaaa-0"]) in queue.asked


def test_another_victim_may_do() -> None:
    """It is asked of exactly those that would go, and looked through once."""
    queue = Queue("giver-aaaa-0")
    answer = _answer(_world("gpu-1", "gpu-1"), queue)
    assert answer.plan is not None, answer.text
    assert [name for _, name in answer.plan.victims] == ["giver-aaaa-1"]
    assert [names for names, _ in queue.asked] == [["giver-aaaa-0"], ["giver-aaaa-1"]]
    assert queue.made == 1


@pytest.mark.parametrize("last", ["giver-aaaa-0", "giver-aaaa-1"])
def test_each_choice_of_the_controller_counts(last: str) -> None:
    """Where it is not known who goes, one that would let somebody in is enough."""
    answer = _answer(_world("gpu-1", "gpu-1", chooser="any"), Queue(last))
    assert answer.plan is None
    assert last in answer.text


def test_nobody_is_let_in() -> None:
    """A queue in which nobody waits for it stands in nobody's way."""
    assert _answer(_world("gpu-1", "gpu-1"), Queue("nobody")).plan is not None
