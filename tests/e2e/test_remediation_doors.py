"""
Where a decision comes in, and where an incident is told: Slack over HTTP, a page's own command, a route for each.

One service for all of it, which hears clicks over HTTP alone, and another one of another cluster beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.remediation_kills import WRITES
from tests.e2e.remediation_scenes import DECODE, Open
from tests.e2e.remediation_stage import ALLOWED, ALLOWED_TOO, STRANGER, Row, Stage, borrowed, later, pagerduty_process
from tests.e2e.service import Service
from tests.e2e.slack import FakeSlack
from tests.fakes.pagerduty_server import KEY
from tests.fakes.slack_server import CHANNEL, SECRET
from tests.shared import ROOT
from tests.testbed.cluster import Cluster
from tests.testbed.ports import free_ports

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

OTHER_CHANNEL = "C0BATCHTEAM"
OTHER_KEY = "fedcba9876543210fedcba9876543210"
WITHIN_S = 3.0
"""Slack shows the person an error where no answer came within it."""


@pytest.fixture(scope="module")
def slack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeSlack]:
    """With a channel for each of two teams."""
    with FakeSlack(tmp_path_factory.mktemp("slack"), (CHANNEL, OTHER_CHANNEL)) as fake:
        yield fake


@pytest.fixture(scope="module")
def stage(testbed: Cluster, slack: FakeSlack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Critical incidents page and go to one channel, the others to another channel and another PagerDuty service."""
    (port,) = free_ports(1)
    over_http = {**slack.settings, "signing_secret": SECRET}
    with pagerduty_process(KEY, OTHER_KEY) as pagerduty:
        more = {
            "web": {"listen": f"127.0.0.1:{port}"},
            "receivers": {
                "team": over_http,
                "other-team": {**over_http, "channel": OTHER_CHANNEL},
                "pager": pagerduty.settings,
                "quiet-pager": {**pagerduty.settings, "routing_key": OTHER_KEY},
            },
            "route": {
                "receiver": "team",
                "routes": [
                    {"matchers": ["severity = critical"], "receiver": "pager", "continue": True},
                    {"matchers": ["severity = warning"], "receiver": "quiet-pager", "continue": True},
                    {"matchers": ["tier = standard"], "receiver": "other-team"},
                    {"matchers": [], "receiver": "team"},
                ],
            },
        }
        stage = Stage(
            tmp_path_factory.mktemp("doors"), testbed, slack, pagerduty, name="doors", times={"lease": "2h"}, more=more
        )
        stage.port = port
        with stage.playing():
            yield stage


def actions_of(port: int) -> str:
    return f"http://127.0.0.1:{port}/slack/actions"


def send_again(to: str, sent: Row) -> int:
    """The very same request, by somebody who has recorded it; the HTTP status of the answer."""
    request = urllib.request.Request(to, sent["body"].encode(), sent["headers"])
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_what_is_not_a_click_of_this_workspace_decides_nothing(stage: Stage, opens: Open) -> None:
    """
    Forged, late and replayed requests get 401; clicks of another workspace, of another app, of somebody who may not,
    and on another commitment change nothing; a person who is known is told so alone and stands in the audit trail.
    The right click runs the plan, once.
    """
    here = opens("forged")
    plan = stage.plan_told(here)
    to = actions_of(stage.port)

    forged = stage.press(ALLOWED, "approve", here.product, to=to, secret="of-another-app")
    late = stage.press(ALLOWED, "approve", here.product, to=to, age_s=301)
    early = stage.press(ALLOWED, "approve", here.product, to=to, age_s=-301)
    assert [each["status"] for each in (forged, late, early)] == [401, 401, 401]
    foreign = stage.press(ALLOWED, "approve", here.product, to=to, team="T0OTHER")
    of_another_app = stage.press(ALLOWED, "approve", here.product, to=to, app="A0OTHER")
    stranger = stage.press(STRANGER, "approve", here.product, to=to)
    assert [each["status"] for each in (foreign, of_another_app, stranger)] == [200, 200, 200]
    told = later(lambda: stage.slack.whispers(STRANGER), what="the stranger to be told")
    assert "may not approve" in told[-1]
    (record,) = stage.refusals(plan["plan"])
    assert (record["what"], record["who"]) == ("refused", f"slack:{STRANGER} (Guest) via slack")
    assert stage.service.errors.count("a click from another workspace or app") == 2
    assert not stage.slack.whispers(ALLOWED)
    wider = json.dumps({"i": "", "p": plan["plan"], "h": "0" * 16})
    assert stage.press(ALLOWED, "approve", here.product, to=to, value=wider)["status"] == 200
    assert "is not what you saw" in _answer(stage, ALLOWED, 0)
    assert stage.state_of(plan["plan"]) == "proposed"
    assert here.replicas() == 3
    assert not borrowed(here.deployment())

    good = stage.press(ALLOWED, "approve", here.product, to=to)
    assert good["status"] == 200
    assert [send_again(to, sent) for sent in (good, stranger, foreign, forged)] == [401, 401, 401, 401]
    done = stage.wait_for(plan["plan"], "succeeded", timeout=30)
    assert [(each["person"], each["via"]) for each in done["approvals"]] == [(f"slack:{ALLOWED}", "slack")]
    here.runs(1, DECODE)
    assert here.replicas() == 2


def test_a_click_is_answered_in_time_whatever_hangs(stage: Stage, opens: Open, testbed: Cluster) -> None:
    """
    While the API server hangs, and Slack does not say who it was, the click has its answer within Slack's time; who
    cannot be verified is told so and decides nothing, and the next click runs the plan once the API server is back.
    """
    here = opens("in-time")
    plan = stage.plan_told(here)
    before = len(stage.slack.whispers(ALLOWED))
    stage.slack.fail("users.info", "429", retry_after=1)
    with testbed.paused("kube-apiserver"):
        answered = stage.press(ALLOWED, "approve", here.product, to=actions_of(stage.port))
    print(f"\nanswered after {answered['seconds']:.3f} s")
    assert answered["status"] == 200
    assert answered["seconds"] < WITHIN_S
    told = later(lambda: stage.slack.whispers(ALLOWED)[before:], what="who clicked to be told")
    print("", *told)
    assert "could not be verified" in told[0]
    assert stage.state_of(plan["plan"]) == "proposed"

    with testbed.paused("kube-apiserver"):
        answered = stage.press(ALLOWED, "approve", here.product, to=actions_of(stage.port))
        later(lambda: stage.state_of(plan["plan"]) == "approved", what="the approval")
    assert answered["seconds"] < WITHIN_S
    stage.wait_for(plan["plan"], "succeeded", timeout=30)


def test_two_people_who_click_at_once(stage: Stage, opens: Open) -> None:
    """One of them approves, the other one is told that it is approved already; it is carried out once."""
    here = opens("at-once")
    plan = stage.plan_told(here)
    people = (ALLOWED, ALLOWED_TOO)
    before = {person: len(stage.slack.whispers(person)) for person in people}
    generation = here.deployment()["metadata"]["generation"]
    with ThreadPoolExecutor() as hands:
        click = partial(stage.press, verb="approve", about=here.product, to=actions_of(stage.port))
        assert [answer["status"] for answer in hands.map(click, people)] == [200, 200]
    told = [_answer(stage, person, before[person]) for person in people]
    print("", *told, sep="\n  ")
    assert sorted("begins with a dry run" in text for text in told) == [False, True]
    assert sum("nothing was done" in text for text in told) == 1
    done = stage.wait_for(plan["plan"], "succeeded", timeout=30)
    assert len(done["approvals"]) == 1
    assert here.deployment()["metadata"]["generation"] == generation + WRITES
    assert here.replicas() == 2


def _answer(stage: Stage, person: str, before: int) -> str:
    """What a person was told after so many other answers."""
    new: list[str] = later(lambda: stage.slack.whispers(person)[before:], what=f"{person} to be told")
    return new[0]


def test_a_plan_of_another_cluster_is_not_decided_here(
    stage: Stage, opens: Open, testbed: Cluster, slack: FakeSlack, tmp_path: Path
) -> None:
    """
    One Slack app for two clusters, and a click comes to the other one's service: it knows no such plan, tells the
    person so and keeps a record; the plan waits where it belongs.
    """
    here = opens("elsewhere")
    plan = stage.plan_told(here)
    (port,) = free_ports(1)
    more = {
        "web": {"listen": f"127.0.0.1:{port}"},
        "receivers": {"console": {"type": "console"}, "team": {**slack.settings, "signing_secret": SECRET}},
        "route": {"receiver": "console"},
        "remediation": {"approvers": [f"slack:{ALLOWED}"], "playbooks": {"free-gpu-capacity": {"mode": "approve"}}},
    }
    other = Service(tmp_path / "other", testbed.kubeconfig(), slack=slack, name="another", more=more)
    try:
        other.start(timeout=120)
        before = len(slack.whispers(ALLOWED))
        assert stage.press(ALLOWED, "approve", here.product, to=actions_of(port))["status"] == 200
        told = later(lambda: slack.whispers(ALLOWED)[before:], what="an answer of the other cluster's service")
        print("", *told)
        assert plan["plan"] in told[0]
        assert "no plan" in told[0]
        trail = [json.loads(line) for line in other.ask("audit", "export").stdout.splitlines()]
        (record,) = [each for each in trail if each["what"] == "refused"]
        assert ALLOWED in record["who"]
        assert plan["plan"] in record["text"]
        answer = other.ask("approve", plan["plan"])
        assert answer.returncode == 1, answer.stdout + answer.stderr
        assert "no plan" in answer.stdout + answer.stderr
    finally:
        other.stop()
    assert stage.state_of(plan["plan"]) == "proposed"
    assert here.replicas() == 3


def test_the_page_says_how_to_approve(stage: Stage, opens: Open) -> None:
    """
    The command stands in what PagerDuty received, word for word: pasted into a shell it approves; acknowledge and
    resolve come with the trigger's key, a person is notified once, and an outage in the beginning loses nothing.
    """
    here = opens("paged")
    stage.pagerduty.go_down(6)
    here.short_of_one()
    plan = stage.plan(here.namespace)

    def look() -> Row | None:
        return next((p for p in stage.pagerduty.about(here.product) if p["details"].get("Plan id")), None)

    page = later(look, timeout=60, what="a page with the plan")
    assert (page["routing_key"], page["severity"]) == (KEY, "critical")
    assert page["details"]["Plan id"] == plan["plan"]
    (received,) = [
        event for event in stage.pagerduty.events(page["dedup_key"])[-1:] if event["event_action"] == "trigger"
    ]
    command = received["payload"]["custom_details"]["Approve with"]
    said = in_a_shell(command, stage.service.config)
    print("", command, said.stdout, sep="\n  ")
    assert command.startswith("sevenhop approve ")
    assert said.returncode == 0, said.stdout + said.stderr
    stage.wait_for(plan["plan"], "succeeded", timeout=30)

    later(partial(_is_resolved, stage, page["dedup_key"]), what="the end of the page")
    (page,) = stage.pagerduty.about(here.product)
    sent = [event["event_action"] for event in stage.pagerduty.events(page["dedup_key"])]
    assert page["notified"] == 1
    assert sent[0] == "trigger"
    assert sent[-1] == "resolve"
    assert "acknowledge" in sent
    assert sent.count("resolve") == 1


def in_a_shell(command: str, config: Path) -> subprocess.CompletedProcess[str]:
    """As it stands there, where `sevenhop` is installed and its settings are named by the environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SEVENHOP_", "KUBE"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    environ = {**kept, "PATH": path, "SEVENHOP_CONFIG": str(config)}
    return subprocess.run(["sh", "-c", command], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60)


def test_each_route_has_its_channel_and_its_pager(stage: Stage, opens: Open) -> None:
    """
    A critical and a standard workload wait at once: each is told in its team's channel alone and pages its own service;
    the buttons of both channels work.
    """
    critical, standard = opens("route-a"), opens("route-b")
    critical.short_of_one()
    standard.short_of_one(tier="standard")
    for here, channel, key, severity in (
        (critical, CHANNEL, KEY, "critical"),
        (standard, OTHER_CHANNEL, OTHER_KEY, "warning"),
    ):
        plan = stage.plan(here.namespace)
        stage.wait_told(here.product, plan["plan"])
        (page,) = later(partial(stage.pagerduty.about, here.product), what=f"a page about {here.namespace}")
        assert {message["channel"] for message in stage.slack.messages_about(here.product)} == {channel}
        assert (page["routing_key"], page["severity"]) == (key, severity)
        stage.press(ALLOWED, "approve", here.product, to=actions_of(stage.port))
        stage.wait_for(plan["plan"], "succeeded", timeout=30)
        stage.wait_told(here.product, "RECOVERED")
        later(partial(_is_resolved, stage, page["dedup_key"]), what="the end of the page")
        assert {message["channel"] for message in stage.slack.messages_about(here.product)} == {channel}


def _is_resolved(stage: Stage, dedup_key: str) -> bool:
    (page,) = stage.pagerduty.about(dedup_key)
    return bool(page["status"] == "resolved")
