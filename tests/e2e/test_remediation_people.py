"""
Who decides, where two people must agree: the same person twice is one, who was taken off the group is nobody, and
giving back takes one.

One service for all of it, over Socket Mode.
"""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterator

import pytest

from tests.e2e.remediation_scenes import DECODE, Open, Waiting
from tests.e2e.remediation_stage import (
    ALLOWED,
    ALLOWED_TOO,
    GROUP,
    PLAYBOOK,
    Row,
    Stage,
    borrowed,
    pagerduty_process,
)
from tests.e2e.slack import FakeSlack
from tests.testbed.cluster import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

REMOVED_FOR_S = 6.0
"""Long enough for an answer about the group to be too old to count; people are given a minute in the documents."""


@pytest.fixture(scope="module")
def stage(testbed: Cluster, slack: FakeSlack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two of the on-call group, or of the host's users, must agree."""
    more = {
        "remediation": {
            "playbooks": {PLAYBOOK: {"mode": "approve", "approvals": 2}},
            "approvers": [f"slack-group:{GROUP}", f"unix:{getpass.getuser()}"],
        }
    }
    times = {"lease": "2h", "no_progress": "2m"}
    with pagerduty_process() as pagerduty:
        folder = tmp_path_factory.mktemp("people")
        stage = Stage(folder, testbed, slack, pagerduty, name="agreed", times=times, more=more)
        with stage.playing():
            yield stage


@pytest.fixture(autouse=True)
def everybody_on_call(slack: FakeSlack) -> Iterator[None]:
    """After each test both are on call again."""
    yield
    slack.set_group(GROUP, ALLOWED, ALLOWED_TOO)


def offered(stage: Stage, here: Waiting, annotations: dict[str, str] | None = None) -> Row:
    """A plan that one person, Kim, has agreed to; the `annotations` are of the pod that waits."""
    plan = stage.plan_told(here, annotations=annotations)
    said = stage.click(ALLOWED, "approve", here.product)
    print("", said)
    assert "1 more of 2" in said
    stage.wait_told(here.product, "approved so far by Kim")
    return plan


def nothing_is_done(stage: Stage, here: Waiting, plan: Row) -> None:
    assert stage.state_of(plan["plan"]) == "proposed"
    assert here.replicas() == 3
    assert not borrowed(here.deployment())


def test_two_people_run_it_and_one_gives_back(stage: Stage, opens: Open) -> None:
    """
    The first click is one of two and starts nothing, nor does the same person's second, nor the host's user, who may be
    the same human; the second person's runs it.  To give back one of them is enough.
    """
    here = opens("two")
    plan = offered(stage, here)
    again = stage.click(ALLOWED, "approve", here.product)
    assert "has approved" in again
    assert "another person is needed" in again
    answer = stage.service.ask("approve", plan["plan"])
    print("", answer.stdout)
    assert "may be the same person" in answer.stdout
    nothing_is_done(stage, here, plan)

    assert "is approved by Kim" in stage.click(ALLOWED_TOO, "approve", here.product)
    done = stage.wait_for(plan["plan"], "succeeded", timeout=30)
    assert {each["person"] for each in done["approvals"]} >= {f"slack:{ALLOWED}", f"slack:{ALLOWED_TOO}"}
    here.runs(1, DECODE)
    assert here.replicas() == 2
    stage.wait_told(here.product, "Lee")

    answer = stage.service.ask("runs", "restore", plan["plan"])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    done = stage.wait_for(plan["plan"], "restored", timeout=30)
    print("", *done["history"], sep="\n  ")
    assert here.replicas() == 3
    assert not borrowed(here.deployment())


def test_who_was_taken_off_the_group_is_not_the_second(stage: Stage, opens: Open) -> None:
    """Removed a moment before the click: told so alone, in the trail, nothing done; back in the group it counts."""
    here = opens("removed")
    plan = offered(stage, here)
    stage.slack.set_group(GROUP, ALLOWED)
    time.sleep(REMOVED_FOR_S)
    said = stage.click(ALLOWED_TOO, "approve", here.product)
    print("", said)
    assert "Lee may not approve" in said
    (record,) = stage.refusals(plan["plan"])
    assert record["who"] == f"slack:{ALLOWED_TOO} (Lee) via slack"
    nothing_is_done(stage, here, plan)

    stage.slack.set_group(GROUP, ALLOWED, ALLOWED_TOO)
    time.sleep(REMOVED_FOR_S)
    stage.click(ALLOWED_TOO, "approve", here.product)
    stage.wait_for(plan["plan"], "succeeded", timeout=30)


def test_one_person_undoes_what_two_agreed_to(stage: Stage, opens: Open) -> None:
    """While the run still waits for its goal, one of them clicks Undo: the donor has its replicas again."""
    here = opens("undone")
    plan = offered(stage, here, {"sevenhop.dev/testbed": "unready"})
    stage.click(ALLOWED_TOO, "approve", here.product)
    stage.wait_for(plan["plan"], "running")
    said = stage.click(ALLOWED, "undo", here.product)
    print("", said)
    done = stage.wait_for(plan["plan"], "undone", timeout=30)
    assert "undone by Kim" in "\n".join(done["history"])
    assert here.replicas() == 3
    assert not borrowed(here.deployment())
