"""Stories that need a service of their own: nobody answers, the store is lost, and kill -9 at any moment."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e import remediation_objects as objects
from tests.e2e.remediation_kills import Kills, Lane
from tests.e2e.remediation_scenes import DECODE, DynamoStandIn, Waiting, waiting_scene
from tests.e2e.remediation_stage import (
    ALLOWED,
    PagerDuty,
    Stage,
    borrowed,
    events_on,
    pagerduty_process,
    quick_rules,
)
from tests.e2e.slack import FakeSlack
from tests.saying import Say
from tests.testbed.cluster import Cluster

SOAK = os.environ.get("SEVENHOP_ROUNDS") == "soak"
KILLS = int(os.environ.get("SEVENHOP_KILLS", "200" if SOAK else "10"))
SEED = int(os.environ.get("SEVENHOP_SEED", "7"))

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400 + 40 * KILLS)]

MakeStage = Callable[..., Stage]


@pytest.fixture(scope="module")
def pagerduty(testbed: Cluster) -> Iterator[PagerDuty]:
    with pagerduty_process() as found, DynamoStandIn(testbed.client):
        yield found


@pytest.fixture
def starts(testbed: Cluster, slack: FakeSlack, pagerduty: PagerDuty, tmp_path: Path) -> Iterator[MakeStage]:
    """Starts services that end with the test; `times` are those of the playbook."""
    with ExitStack() as opened:

        def start(name: str, **times: str) -> Stage:
            more = {"rules": [str(quick_rules(tmp_path / name))]}
            times = {"cooldown": "1s", **times}
            stage = Stage(tmp_path / name, testbed, slack, pagerduty, name=name, times=times, more=more)
            opened.callback(stage.service.stop)
            stage.service.start(timeout=120)
            return stage

        yield start


@pytest.fixture
def here(request: pytest.FixtureRequest, testbed: Cluster) -> Iterator[Waiting]:
    name = request.node.originalname.removeprefix("test_")[:12].replace("_", "-").strip("-")
    with waiting_scene(testbed, name) as here:
        yield here


def test_nobody_answers(starts: MakeStage, here: Waiting, slack: FakeSlack) -> None:
    """
    One reminder, then the plan expires, and nothing was done; one byte changed in the store breaks the audit trail.
    """
    here.short_of_one()
    stage = starts("patient", expires="14s", remind_after="5s", cooldown="10m")
    plan = stage.plan(here.namespace)
    done = stage.wait_for(plan["plan"], "expired")
    print("", *done["history"], sep="\n  ")
    said = stage.wait_told(here.product, "expired")
    posts = slack.posts_about(here.product)

    assert [line for line in done["history"] if "still waits for a decision" in line]
    assert len(posts) == 2, [post["body"]["text"] for post in posts]
    assert here.replicas() == 3
    assert not borrowed(here.deployment())
    assert "Approve" not in [button for message in slack.messages_about(here.product) for button in buttons(message)]
    assert plan["plan"] in said

    stage.service.stop()
    assert stage.service.ask("audit", "verify").returncode == 0
    with contextlib.closing(sqlite3.connect(stage.service.state / "state.db")) as db, db:
        db.execute("drop trigger audit_is_not_changed")
        number, body = db.execute(
            "select number, line from audit where instr(line, cast('proposed' as blob)) order by number limit 1"
        ).fetchone()
        changed = bytes(body).replace(b"proposed", b"proposeD", 1)
        assert changed != bytes(body)
        db.execute("update audit set line = ? where number = ?", (changed, number))
    bad = stage.service.ask("audit", "verify")
    print(bad.stdout)
    assert bad.returncode == 1
    assert f"record {number}:" in bad.stdout


def buttons(message: dict[str, object]) -> list[str]:
    blocks = message["blocks"]
    assert isinstance(blocks, list)
    found = [element for block in blocks for element in block.get("elements", []) if "action_id" in element]
    return [element["action_id"] for element in found]


def test_a_lost_store_gives_back_all_the_same(starts: MakeStage, here: Waiting) -> None:
    """Killed during a lease, and its state folder is gone: the mark on the donor is enough to restore it in time."""
    here.short_of_one()
    stage = starts("forgetful", lease="40s")
    plan = stage.plan(here.namespace)
    stage.click(ALLOWED, "approve", here.product)
    stage.wait_for(plan["plan"], "succeeded")
    stage.service.kill()
    shutil.rmtree(stage.service.state)
    stage.service.start(timeout=120)

    done = stage.wait_for(plan["plan"], "restored", timeout=60)
    print("", *done["history"], sep="\n  ")
    assert here.replicas() == 3
    assert not borrowed(here.deployment())
    assert not objects.steered(here.pods("app=summarizer"))
    here.runs(1, DECODE)
    assert events_on(stage.cluster, here.namespace, "summarizer") == ["RemediationApplied", "RemediationRestored"]


def test_killed_at_any_moment_each_patch_is_made_once(starts: MakeStage, testbed: Cluster, say: Say) -> None:
    """
    Killed while it carries out and while it gives back: no patch is made twice, none is forgotten.

    The donors' generations count every change of number or mark, by whomever; marks and deletion costs are looked for.
    """
    with ExitStack() as opened:
        lanes = [Lane(opened.enter_context(waiting_scene(testbed, f"kill-{number}"))) for number in range(2)]
        stage = starts("mortal", lease="2h")
        kills = Kills(stage, lanes, random.Random(SEED))
        try:
            tally = kills.play(KILLS)
        finally:
            say(f"{kills.tally}")
    assert tally.wrong == []
    assert tally.kills >= KILLS
    assert tally.cycles
