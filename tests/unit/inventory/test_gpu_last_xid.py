"""dcgm-exporter shows a GPU's last XID for ever, without its time: only a change of it is a new one."""

from __future__ import annotations

import msgspec
import pytest

from sevenhop.core.inventory.gpu_keeping import KeptGpus, kept_gpus, recall_gpus
from tests.builders import node
from tests.unit.inventory.gpu_agents import Agent, uuid
from tests.unit.inventory.scenes import Scene

GPU = f"gpu:{uuid('n', 0)}"
NAMES = ("xid", "xid_class", "trouble")


class Exporter:
    """What it shows of one GPU, look after look; it starts anew with an `epoch`."""

    def __init__(self, scene: Scene, epoch: int = 1) -> None:
        self.scene = scene
        self.agent = Agent("n", 1, epoch=epoch)

    def shows(self, seconds: float, last_xid: int | None) -> None:
        self.agent.changes[0] = {"last_xid": last_xid}
        self.scene.tell([self.agent.sample(seconds)])
        self.scene.wait(seconds)

    def until(self, seconds: float, last_xid: int) -> None:
        """A look every 15 s, so that it does not fall silent."""
        at = self.scene.seconds
        while at + 15 < seconds:
            at += 15
            self.shows(at, last_xid)
        self.shows(seconds, last_xid)

    @property
    def told(self) -> tuple[str, ...]:
        return tuple(str(self.scene.fact(GPU, name)).split(" (")[0] for name in NAMES)


@pytest.fixture
def exporter() -> Exporter:
    return Exporter(Scene(node("n", gpus=1)))


def test_a_change_is_a_new_one(exporter: Exporter) -> None:
    """
    From none to one, and from one to another.
    """
    exporter.shows(1, 0)
    assert exporter.told == ("0", "none", "")
    exporter.shows(16, 31)
    assert exporter.told == ("31", "app", "GPU 0: XID 31, GPU memory page fault")
    exporter.shows(31, 79)
    assert exporter.told[:2] == ("79", "reboot")


def test_what_is_shown_again_and_again_is_one(exporter: Exporter) -> None:
    """
    It stands as long as any XID of its kind does, not for as long as it is shown.
    """
    exporter.shows(1, 0)
    exporter.shows(16, 31)
    exporter.until(615, 31)
    assert exporter.told[0] == "31"
    exporter.until(617, 31)
    assert exporter.told == ("0", "none", "")
    assert exporter.scene.fact(GPU, "xid_repeats_24h") == 0


@pytest.mark.parametrize(("number", "over_s"), [(79, 3 * 3600), (31, 600), (999, 3 * 3600)], ids=str)
def test_at_first_sight_it_is_unknown(exporter: Exporter, number: int, over_s: int) -> None:
    """
    It may be of now or of last month: neither bad nor well, until it could stand no longer.
    """
    exporter.shows(1, number)
    assert exporter.told == ("unknown", "unknown", "")
    assert exporter.scene.fact("node:n", "gpu.unhealthy_allocatable") == 0
    exporter.scene.wait(over_s)
    exporter.shows(over_s, number)
    assert exporter.told[0] == "unknown"
    exporter.shows(over_s + 1, number)
    assert exporter.told == ("0", "none", "")


@pytest.mark.parametrize("number", [43, 45])
def test_a_consequence_leaves_nothing_open(exporter: Exporter, number: int) -> None:
    """
    Whenever it came, it is never told alone.
    """
    exporter.shows(1, number)
    assert exporter.told == ("0", "none", "")


def test_a_new_one_after_an_undated_one_is_told(exporter: Exporter) -> None:
    """
    What is known is not hidden by what is not.
    """
    exporter.shows(1, 13)
    exporter.shows(16, 79)
    assert exporter.told[:2] == ("79", "reboot")


@pytest.mark.parametrize("meanwhile", [None, 0], ids=["nothing was shown", "none was shown"])
def test_an_exporter_that_starts_anew_tells_nothing_new(exporter: Exporter, meanwhile: int | None) -> None:
    """
    A gap in what it shows, or a zero, is no XID, and what was seen to come stands.
    """
    exporter.shows(1, 0)
    exporter.shows(16, 31)
    exporter.shows(31, meanwhile)
    assert exporter.told[0] == "31"
    exporter.until(630, meanwhile or 0)
    assert exporter.told[0] == "0"


def test_the_same_one_after_a_gap_is_not_new(exporter: Exporter) -> None:
    """
    The host engine kept it while the exporter was away.
    """
    exporter.shows(1, 0)
    exporter.shows(16, 31)
    exporter.scene.wait(700)
    exporter.shows(701, None)
    exporter.shows(716, 31)
    assert exporter.told == ("0", "none", "")


def restarted(scene: Scene) -> Scene:
    """Another process that reads what the first one stored."""
    kept = kept_gpus(scene.inventory.state.gpus, "n")
    assert kept is not None
    again = Scene(node("n", gpus=1))
    recall_gpus(again.inventory.state.gpus, "n", msgspec.json.decode(msgspec.json.encode(kept), type=KeptGpus))
    return again


@pytest.mark.parametrize(
    ("shown", "expected"),
    [(13, ("0", "none")), (48, ("48", "reset"))],
    ids=["the same", "another one, which came meanwhile"],
)
def test_our_own_restart_forgets_nothing(exporter: Exporter, shown: int, expected: tuple[str, str]) -> None:
    """
    What was shown before is stored: the same is not new, and not unknown either.
    """
    exporter.shows(1, 0)
    exporter.shows(16, 13)
    again = Exporter(restarted(exporter.scene), epoch=2)
    again.shows(1000, shown)
    assert again.told[:2] == expected


def test_what_is_shown_is_stored_when_it_changes(exporter: Exporter) -> None:
    """
    Though nothing else does: it decides after a restart what is new.
    """
    exporter.shows(1, 45)
    stored = exporter.scene.inventory.state.changed_histories
    stored.clear()
    exporter.shows(16, 45)
    assert ("gpus", "n") not in stored
    exporter.shows(31, 0)
    assert ("gpus", "n") in stored


def test_an_undated_one_gets_no_younger_by_a_restart(exporter: Exporter) -> None:
    """
    Its first sight is stored with it.
    """
    exporter.shows(1, 31)
    again = Exporter(restarted(exporter.scene), epoch=2)
    again.shows(300, 31)
    assert again.told[0] == "unknown"
    again.shows(602, 31)
    assert again.told[0] == "0"


def test_a_row_that_cannot_be_mapped_is_known_to_be_bad_whatever_the_last_xid(exporter: Exporter) -> None:
    """
    The reading says so itself.
    """
    exporter.agent.changes[0] = {"last_xid": 64, "remap_failed": True}
    exporter.scene.tell([exporter.agent.sample(1)])
    assert exporter.told == ("unknown", "replace", "GPU 0: remapping of a memory row failed")
