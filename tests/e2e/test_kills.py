"""kill -9 at any moment: nothing is lost, and nobody is told twice."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.crash_lanes import write_rules
from tests.e2e.crash_processes import Service, cluster
from tests.e2e.crash_slack import slack
from tests.e2e.crash_story import AIMED, Story, kill_plan
from tests.saying import Say

SOAK = os.environ.get("SEVENHOP_ROUNDS") == "soak"
KILLS = int(os.environ.get("SEVENHOP_KILLS", "500" if SOAK else "20"))  # in each of the two tests
LEAST_OF_EACH = 10 if SOAK else 2
SEED = int(os.environ.get("SEVENHOP_SEED", "7"))

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(6 * 3600 if SOAK else 300)]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[tuple[Story, Service]]:
    """A cluster and a Slack that stay up, and a service on its own state."""
    with ExitStack() as open_things:
        running = open_things.enter_context(cluster())
        judge = open_things.enter_context(slack(tmp_path))
        service = Service(tmp_path, running, judge.base_url, write_rules(tmp_path / "rules"))
        open_things.callback(service.end)
        yield Story(running, judge, service, random.Random(SEED), diary=tmp_path / "diary.jsonl"), service


def test_killed_at_any_moment_it_tells_each_transition_once(stage: tuple[Story, Service], say: Say) -> None:
    """Killed before the commit, with messages waiting, on their way, or arrived and not recorded: 0 lost, 0 double."""
    story, service = stage

    tally = story.play(kill_plan(KILLS, random.Random(SEED)))

    say(f"{tally}")
    assert (tally.lost, tally.duplicated, tally.wrong) == ([], [], [])
    assert {at: tally.met[at] for at in AIMED if tally.met[at] < LEAST_OF_EACH} == {}
    code, seconds = service.stop()
    assert code == 0
    assert seconds < 5


def test_with_the_state_deleted_it_does_not_page_again_for_what_is_still_true(
    stage: tuple[Story, Service], say: Say
) -> None:
    """The same, and after every third kill the state folder is gone: Slack itself is the memory."""
    story, _ = stage
    story.lose_every = 3

    tally = story.play(kill_plan(KILLS, random.Random(SEED + 1)))

    say(f"{tally}")
    assert tally.losses_of_state == KILLS // 3
    assert (tally.lost, tally.duplicated, tally.wrong) == ([], [], [])
