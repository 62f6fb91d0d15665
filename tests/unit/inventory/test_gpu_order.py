"""Samples and XIDs that come late, twice, or in another order, from agents that start anew."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.events import Event, GpusSampled, XidSeen
from sevenhop.core.facts.schema import Facts
from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.subject import Subject, SubjectKind
from sevenhop.frameworks import FRAMEWORKS
from tests.builders import Feed, at, node
from tests.unit.inventory.gpu_agents import Agent, uuid
from tests.unit.inventory.scenes import Scene

GPU0 = f"gpu:{uuid('n', 0)}"


def told(events: Sequence[Event]) -> dict[Subject, Facts]:
    """Facts of GPUs, nodes and pools after these events on one node of two GPUs, at 50 s."""
    inventory = Inventory("test", FRAMEWORKS)
    feed = Feed()
    for event in [*feed.synced(), *feed.applied(node("n", gpus=2))]:
        inventory.apply(event)
    inventory.settle(at(0))
    for event in events:
        inventory.apply(event)
        inventory.settle(event.at)
    inventory.settle(at(50))
    kinds = (SubjectKind.GPU, SubjectKind.NODE, SubjectKind.POOL)
    return {subject: facts for subject, facts in inventory.facts.items() if subject.kind in kinds}


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """What an agent said within 40 seconds: whole and partial samples, GPUs that go and come, XIDs, a restart."""
    agent = Agent("n", 2)
    events: list[Event] = []
    for second in range(1, draw(st.integers(2, 8))):
        for index in (0, 1):
            agent.changes[index] = draw(
                st.sampled_from([{}, {"sm_active": 0.9}, {"error": "GPU is lost"}, {"remap_failed": True}, None])
            )
        if draw(st.booleans()) and second > 3:
            agent.epoch, agent.seq = agent.epoch + 1, 0
        only = draw(st.sampled_from([None, None, [0], [1]]))
        events.append(agent.sample(5 * second, only=only))
    return events


@given(histories(), st.randoms(use_true_random=False))
def test_any_order_and_any_repetition_end_in_the_same_facts(history: list[Event], chance: Random) -> None:
    """
    The newest of each GPU stands, however the samples came.

    When a GPU went missing or well again may differ by what was seen in between, and is no fact.
    """
    shuffled = [*history, *chance.sample(history, k=min(3, len(history)))]
    chance.shuffle(shuffled)

    assert told(shuffled) == told(history)


def test_the_same_sample_again_tells_nothing() -> None:
    """
    Not a single subject.
    """
    scene = Scene(node("n", gpus=2))
    agent = Agent("n", 2)
    sample = agent.sample(10)
    scene.wait(10)
    scene.tell([sample])

    scene.tell([sample])

    assert scene.last.changed == {}


def test_an_older_sample_changes_nothing_and_makes_nothing_fresh() -> None:
    """
    By (epoch, sequence), not by when it comes.
    """
    scene = Scene(node("n", gpus=2))
    agent = Agent("n", 2)
    agent.changes[0] = None
    old = agent.sample(10)
    agent.changes[0] = {}
    scene.wait(12)
    scene.tell([agent.sample(12)])

    scene.wait(40)
    scene.tell([old])
    assert scene.fact(GPU0, "present") is True

    scene.wait(72)
    assert scene.fact(GPU0, "present") is not True


def test_an_agent_that_starts_anew_counts_from_one() -> None:
    """
    A newer epoch is newer, whatever its sequence numbers.
    """
    scene = Scene(node("n", gpus=2))
    first = Agent("n", 2)
    for second in range(5):
        scene.tell([first.sample(second)])
    second_life = Agent("n", 2, epoch=2)
    second_life.changes[0] = None

    scene.tell([second_life.sample(6)])

    assert scene.fact(GPU0, "present") is False


def xid(seconds: float, **fields: object) -> XidSeen:
    known: dict[str, object] = {"at": at(seconds), "node": "n", "xid": 79, "pci": "0000:10:00"}
    return XidSeen(**{**known, **fields})  # type: ignore[arg-type]


def test_an_xid_before_the_first_sample_finds_its_gpu() -> None:
    """
    By its PCI address, in the kernel's spelling or NVML's; until then it stands for a GPU without a name.
    """
    scene = Scene(node("n", gpus=2))
    scene.wait(5)
    scene.tell([xid(5)])
    assert scene.fact("gpu:n/0000:10:00.0", "xid") == 79

    scene.tell([Agent("n", 2).sample(6)])

    assert scene.fact(GPU0, "xid") == 79
    assert not scene.knows("gpu:n/0000:10:00.0")


def test_an_xid_by_uuid_and_one_that_names_nothing() -> None:
    """
    The first finds its GPU; the second is nobody's, and a problem of the node.
    """
    scene = Scene(node("n", gpus=2))
    scene.tell([Agent("n", 2).sample(4)])
    scene.tell([xid(5, pci="", uuid=uuid("n", 1)), xid(5, pci="", xid=48)])

    assert scene.fact(f"gpu:{uuid('n', 1)}", "xid") == 79
    assert scene.fact(GPU0, "xid") == 0
    assert scene.inventory.state.gpus.agents["n"].problems == ("XID 48 names no device",)


def test_an_xid_by_a_clock_that_is_minutes_ahead_is_of_now() -> None:
    """
    What the samples tell of the agent's clock holds for its XIDs, and none moves our time.
    """
    scene = Scene(node("n", gpus=2))
    agent = Agent("n", 2)
    scene.wait(4)
    scene.tell([agent.sample(4, skew=600)])

    scene.tell([xid(605)])

    scene.wait(10)
    assert scene.fact(GPU0, "xid") == 79
    (record,) = scene.inventory.state.gpus.agents["n"].gpus[uuid("n", 0)].xids
    assert record.at == at(5)
    scene.tell([xid(11, xid=48)])  # set right by the receiver
    assert scene.inventory.state.gpus.agents["n"].gpus[uuid("n", 0)].xids[-1].at == at(11)


def test_a_sample_that_is_not_numbered_is_ordered_by_its_time() -> None:
    """
    Sources that poll a metrics page have no sequence of their own.
    """
    scene = Scene(node("n", gpus=2))
    agent = Agent("n", 2)
    gone = Agent("n", 2)
    gone.changes[0] = None
    newer: GpusSampled = agent.sample(20, epoch=0, seq=0)
    older: GpusSampled = gone.sample(10, epoch=0, seq=0)
    scene.wait(20)

    scene.tell([newer, older])
    assert scene.fact(GPU0, "present") is True

    scene.tell([gone.sample(30, epoch=0, seq=0)])
    assert scene.fact(GPU0, "present") is False
