"""A worker that makes no progress ends; one that waits for others does not."""

from __future__ import annotations

from time import monotonic

import pytest

from sevenhop.runtime.scaled.watchdog import Watchdog

PATIENCE_S = 60.0


@pytest.mark.parametrize(
    ("told", "later_s", "ends"),
    [
        pytest.param([("a", True)], 59, False, id="not yet"),
        pytest.param([("a", True), ("a", True)], 61, True, id="no progress with work"),
        pytest.param([("a", False), ("a", False)], 61, True, id="the loop itself hangs"),
    ],
)
def test_when_it_ends(told: list[tuple[str, bool]], later_s: float, ends: bool) -> None:
    """Silence of the loop counts, and work on which nothing happens."""
    dog = Watchdog(PATIENCE_S, end=lambda _: None)
    for progress, has_work in told:
        dog.tell(progress, has_work=has_work)
    assert bool(dog.verdict(monotonic() + later_s)) is ends


def test_no_progress_is_measured_from_the_last_progress() -> None:
    """A loop that lives and handles nothing is a hang; a step that was stored begins the time anew."""
    dog = Watchdog(PATIENCE_S, end=lambda _: None)
    dog.tell("a", has_work=True)
    dog._progressed_at -= 61
    dog.tell("a", has_work=True)
    assert "records wait" in dog.verdict(monotonic())

    dog.tell("b", has_work=True)
    assert dog.verdict(monotonic()) == ""


def test_waiting_for_redis_is_no_hang() -> None:
    """What something outside holds up is said elsewhere, and ends by itself."""
    dog = Watchdog(PATIENCE_S, end=lambda _: None)
    dog.tell("a", has_work=True)
    dog._progressed_at -= 61
    dog.tell("a", has_work=False)
    assert dog.verdict(monotonic()) == ""


def test_it_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """From its own thread, for the loop may be what hangs."""
    from sevenhop.runtime.scaled import watchdog

    monkeypatch.setattr(watchdog, "LOOK_EVERY_S", 0.01)
    ended: list[str] = []
    dog = Watchdog(0.1, end=ended.append)
    dog.start()
    dog._thread.join(5)
    assert ended
    assert "hung" in ended[0]
