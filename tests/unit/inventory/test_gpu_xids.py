"""XIDs: which class each has, which one is the root, what only follows, and how long they stand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.hops.xids import XIDS, XidClass, class_of, is_consequence, words_of
from sevenhop.core.inventory.gpu_xids import Root, XidRecord, breaks_peers, is_victim, repeats, root, with_record
from sevenhop.core.inventory.objects import Key
from tests.builders import at, node
from tests.shared import SHARED
from tests.unit.inventory.gpu_agents import Agent, uuid
from tests.unit.inventory.scenes import Scene

A, B = ("prod", "a"), ("prod", "b")
RESET_TEXT = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
REBOOT_TEXT = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
NONFATAL = "RLW_RXPIPE Nonfatal XC0 i0 Link 3 (0x040130c2 0x00000008)"
FATAL = "RLW_REMAP Fatal XC0 i0 Link 2 (0x00000082 0x00000040)"
NONE_TEXT = "GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)"

ACTIONS: dict[str, set[XidClass | None]] = {
    "RESET_GPU": {XidClass.RESET},
    "RESTART_APP": {XidClass.APP, XidClass.CONTAINED},
    "RESTART_BM": {XidClass.REBOOT},
    "RESTART_VM": {XidClass.REBOOT},
    "CHECK_MECHANICALS": {XidClass.REPLACE},
    "IGNORE": {XidClass.NONE, XidClass.APP},
    "WORKFLOW_XID_48": {XidClass.RESET},
    "WORKFLOW_NVLINK_ERR": {XidClass.RESET},
    "WORKFLOW_NVLINK5_ERR": {None},
    "XID_154": {None},
}


def catalogue() -> list[tuple[int, str]]:
    """(number, NVIDIA's immediate action); empty without the shared data."""
    path = SHARED / "data/failures/xid.yaml"
    rows = yaml.safe_load(path.read_text())["xids"] if path.exists() else []
    return [(row["xid"], row["nvidia_immediate_action"]) for row in rows]


@pytest.mark.parametrize(("number", "action"), catalogue(), ids=lambda value: str(value))
def test_the_class_is_what_the_vendor_recommends(number: int, action: str) -> None:
    """
    In our words; actions that name no class are left to the table.
    """
    assert number in XIDS
    if action in ACTIONS:
        assert class_of(number, "") in ACTIONS[action]


@pytest.mark.parametrize(
    ("number", "text", "expected"),
    [
        (79, "", XidClass.REBOOT),
        (94, "", XidClass.CONTAINED),
        (13, "", XidClass.APP),
        (70, "", XidClass.APP),
        (37, "", XidClass.NONE),
        (171, "", None),
        (154, RESET_TEXT, XidClass.RESET),
        (154, REBOOT_TEXT, XidClass.REBOOT),
        (154, NONE_TEXT, XidClass.NONE),
        (154, "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", XidClass.RESET),
        (154, "GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", XidClass.CONTAINED),
        (154, "", None),
        (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 09 (0x004525c6 0x0)", XidClass.RESET),
        (145, "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x8)", XidClass.NONE),
        (145, "", None),
        (999, "pid=1234, name=test", None),
    ],
    ids=lambda value: str(value)[-30:],
)
def test_what_an_xid_asks_for(number: int, text: str, expected: XidClass | None) -> None:
    """
    By its number, and where that leaves it open by the driver's line; nothing is made up.
    """
    assert class_of(number, text) is expected


def records(*told: tuple[float, int] | tuple[float, int, str]) -> tuple[XidRecord, ...]:
    found: tuple[XidRecord, ...] = ()
    for each in told:
        found = with_record(found, XidRecord(at(each[0]), each[1], each[2] if len(each) > 2 else "", (A,)))
    return found


def named(found: Root | None) -> tuple[int, str | None] | None:
    return (found.xid, str(found.cls) if found.cls else None) if found is not None else None


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([(0, 45)], None),
        ([(0, 43)], None),
        ([(0, 43), (1, 45)], None),
        ([(0, 45), (1, 79)], (79, "reboot")),
        ([(0, 79), (1, 45)], (79, "reboot")),
        ([(0, 31), (1, 43)], (31, "app")),
        ([(0, 94), (1, 48), (2, 45)], (48, "reset")),
        ([(0, 48), (1, 63)], (48, "reset")),
        ([(0, 74), (1, 79)], (79, "reboot")),
        ([(0, 119), (1, 154, REBOOT_TEXT)], (119, "reboot")),
        ([(0, 154, RESET_TEXT)], (154, "reset")),
        ([(0, 119), (1, 154, REBOOT_TEXT), (60, 154, NONE_TEXT)], None),
        ([(0, 999)], (999, None)),
        ([(0, 999), (1, 48)], (48, "reset")),
        ([(0, 63)], (63, "none")),
        ([(0, 145, NONFATAL)], (145, "none")),
        ([(0, 145, NONFATAL), (1, 94)], (94, "contained")),
        ([(0, 145, NONFATAL), (1, 145, FATAL)], (145, "reset")),
        ([(0, 145, FATAL), (1, 145, NONFATAL), (2, 145)], (145, "reset")),
        ([(0, 145), (1, 145, NONFATAL)], (145, "none")),
        ([(0, 145), (90, 145, NONFATAL)], (145, None)),
        ([(0, 119), (1, 154, REBOOT_TEXT), (2, 154)], (119, "reboot")),
        ([(0, 119), (1, 154, REBOOT_TEXT), (30, 154, NONE_TEXT), (30, 154)], None),
    ],
    ids=lambda value: str(value)[:60],
)
def test_the_root_of_several(told: Sequence[tuple[float, int]], expected: tuple[int, str | None] | None) -> None:
    """
    The weightiest one; consequences never stand alone; the driver's directive decides what is asked for.
    """
    assert named(root(records(*told), at(100))) == expected


@pytest.mark.parametrize(
    ("number", "stands_s"),
    [(79, 3 * 3600), (48, 3 * 3600), (999, 3 * 3600), (31, 600), (94, 600), (63, 600)],
    ids=str,
)
def test_how_long_an_xid_stands(number: int, stands_s: int) -> None:
    """
    Three hours where something has to be done, ten minutes where not; to the second.
    """
    told = records((0, number))

    assert named(root(told, at(stands_s - 1))) is not None
    assert root(told, at(stands_s)) is None


def test_a_gpu_that_was_reset_has_its_xids_behind_it() -> None:
    """
    Those from before; one that comes after stands.
    """
    told = records((0, 48))

    assert root(told, at(60), cleared_at=at(30)) is None
    assert named(root(with_record(told, XidRecord(at(40), 95)), at(60), cleared_at=at(30))) == (95, "reset")


@pytest.mark.parametrize(
    ("own", "peer", "expected"),
    [
        ((10, 74), (0, 79), True),
        ((0, 74), (10, 79), True),
        ((0, 74), (179, 48), True),
        ((0, 74), (181, 79), False),
        ((0, 74), (10, 31), False),
        ((0, 149), (10, 79), True),
        ((0, 48), (10, 79), False),
    ],
    ids=str,
)
def test_a_link_fails_because_a_peer_did(own: tuple[float, int], peer: tuple[float, int], *, expected: bool) -> None:
    """
    Within three minutes, whichever line came first; only errors of links are victims.
    """
    mine = Root(own[1], at(own[0]), XidClass.RESET)

    assert is_victim(mine, breaks_peers([XidRecord(at(peer[0]), peer[1])])) is expected


def occurrence(minutes: float, number: int, pod: Key) -> XidRecord:
    return XidRecord(at(60 * minutes), number, "", (pod,))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([(0, 31, A), (60, 31, B), (120, 31, A)], 3),
        ([(0, 31, A), (60, 31, A), (120, 31, A)], 0),
        ([(0, 31, A), (2, 31, B), (4, 31, A)], 1),
        ([(0, 31, A), (60, 13, B), (120, 31, B)], 2),
        ([(0, 45, A), (60, 45, B), (120, 43, A)], 0),
        ([(-24 * 60, 31, A), (60, 31, B), (120, 31, B)], 0),
    ],
    ids=["two pods", "one pod", "one burst", "the commonest", "consequences", "a day ago"],
)
def test_repeats_in_a_day(told: list[tuple[float, int, Key]], expected: int) -> None:
    """
    Bursts of the same XID under at least two pods within 24 hours.
    """
    assert repeats(tuple(sorted(occurrence(*each) for each in told)), at(3 * 3600)) == expected


@given(
    st.lists(
        st.tuples(st.integers(0, 600), st.sampled_from([13, 31, 45, 48, 74, 79, 94, 154, 999])), min_size=1, max_size=12
    ),
    st.randoms(use_true_random=False),
)
def test_twice_is_once_and_a_consequence_is_never_a_root(told: list[tuple[int, int]], chance: object) -> None:
    """
    Reported by NVML and by the kernel log, an XID is one; and whatever came, the root explains the rest.
    """
    once: tuple[XidRecord, ...] = ()
    twice: tuple[XidRecord, ...] = ()
    for seconds, number in told:
        once = with_record(once, XidRecord(at(seconds), number))
    for seconds, number in [*told, *told]:
        twice = with_record(twice, XidRecord(at(seconds), number))

    found, again = root(once, at(601)), root(twice, at(601))

    assert named(found) == named(again)
    assert found is None or not is_consequence(found.xid)


def test_an_unlisted_xid_says_so() -> None:
    """
    And asks for nothing that we would make up.
    """
    scene = Scene(node("n", gpus=1))
    agent = Agent("n", 1)
    scene.tell([agent.sample(1), agent.xid(2, 999)])

    place = f"gpu:{uuid('n', 0)}"
    assert scene.fact(place, "xid") == 999
    assert str(scene.fact(place, "xid_class")) == (
        "unknown (no_source: what XID 999, which is not in our table, asks for)"
    )
    assert scene.fact(place, "trouble") == f"GPU 0: {words_of(999)}"


def test_peers_on_one_node() -> None:
    """
    79 on one GPU, 74 on its peers: one GPU is bad, and its peers say nothing.
    """
    scene = Scene(node("n", gpus=3))
    agent = Agent("n", 3)
    scene.wait(1)
    scene.tell([agent.sample(1), agent.xid(2, 74, 1), agent.xid(2, 79, 0), agent.xid(3, 45, 0), agent.xid(3, 74, 2)])

    def gpu(index: int, name: str) -> object:
        return scene.fact(f"gpu:{uuid('n', index)}", name)

    assert [gpu(index, "xid") for index in range(3)] == [79, 0, 0]
    assert [gpu(index, "xid_class") for index in range(3)] == ["reboot", "none", "none"]
    assert gpu(0, "trouble") == "GPU 0: XID 79, fallen off the bus (then XID 45)"
    agent.changes[0] = {"error": "GPU is lost"}
    scene.tell([agent.sample(10)])
    agent.changes = {}
    scene.tell([agent.sample(20)])
    assert [gpu(index, "xid") for index in range(3)] == [0, 0, 0]


def test_what_was_before_the_node_was_booted_is_over() -> None:
    """
    Whatever asked for a reset; what comes after stands, also what the driver says before the agent is there again.
    """
    scene = Scene(node("n", gpus=2))
    agent = Agent("n", 2)
    scene.tell([agent.sample(10, up_s=5000.0), agent.xid(11, 119, 0), agent.xid(12, 62, 1)])
    place, other = (f"gpu:{uuid('n', index)}" for index in range(2))
    assert (scene.fact(place, "xid"), scene.fact(other, "xid")) == (119, 62)

    scene.wait(300)
    again = Agent("n", 2, epoch=2)
    scene.tell([again.xid(260, 46, 1), again.sample(300, up_s=60.0)])

    assert (scene.fact(place, "xid"), scene.fact(place, "xid_class")) == (0, "none")
    assert (scene.fact(other, "xid"), scene.fact(other, "xid_class")) == (46, "reset")
    assert scene.fact("node:n", "gpu.unhealthy_allocatable") == 1


def test_a_node_that_goes_on_running_clears_nothing() -> None:
    """
    The time since its boot grows; nor does an agent that does not tell it.
    """
    scene = Scene(node("n", gpus=1))
    agent = Agent("n", 1)
    scene.tell([agent.sample(10, up_s=5000.0), agent.xid(11, 119)])
    scene.tell([agent.sample(25, up_s=5015.0), agent.sample(40)])
    assert scene.fact(f"gpu:{uuid('n', 0)}", "xid") == 119
