"""Two workers that both listen to one Slack app: a click counts once, whichever of them hears it, and if both do."""

from __future__ import annotations

import json
import socket
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scaled_people import PLAYBOOK, Person, allow_plans, shortage
from tests.e2e.scaled_stage import Stage, WorkerProcess, stage, wait_until
from tests.e2e.slack import FakeSlack, shown
from tests.fakes.slack_server import APP_TOKEN, CHANNEL, SECRET, TEAM, signed
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CLUSTERS = ("lab", "prod-ap", "prod-eu", "prod-us")
KIM, GUEST = "U0KIM", "U0GUEST"
ACTIONS, COMMANDS = "/slack/actions", "/slack/commands"


class Listening:
    """The stage, with the local Slack and the addresses at which each worker listens."""

    def __init__(self, at: Stage, slack: FakeSlack, addresses: list[str]) -> None:
        self.at = at
        self.slack = slack
        self.addresses = addresses

    def has(self, number: int, cluster: str) -> bool:
        rows = self.at.workers[number].report().get("partitions", {}).values()
        return any(cluster in row["clusters"] for row in rows)

    def elsewhere(self, cluster: str) -> int:
        """A worker that does not have the cluster."""
        return next(number for number in range(2) if not self.has(number, cluster))

    def message(self, cluster: str) -> dict[str, Any]:
        [found] = [each for each in self.slack.messages() if f'"{cluster}"' in json.dumps(each["metadata"])]
        return found

    def click(self, cluster: str, action: str, to: int, user: str = KIM, **how: Any) -> dict[str, Any]:
        address = f"{self.addresses[to]}{ACTIONS}"
        answer = self.slack.click(user, f"sevenhop.{action}", self.message(cluster)["ts"], to=address, **how)
        assert answer is not None
        assert answer["status"] == 200
        assert answer["seconds"] < 3
        return answer

    def post(self, to: int, path: str, body: bytes, headers: Mapping[str, str]) -> int:
        request = urllib.request.Request(f"{self.addresses[to]}{path}", body, dict(headers))
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """Two workers at one Slack app, over Socket Mode and over HTTP, and a plan in each cluster."""
    folder = tmp_path_factory.mktemp("scaled-slack")
    with (
        Redis() as redis,
        Kafka(1) as kafka,
        FakeSlack(folder) as slack,
        stage(folder, kafka, redis, "slack", CLUSTERS) as at,
        pytest.MonkeyPatch.context() as environment,
    ):
        allow_plans(at, folder)
        change_settings(at.config, slack)
        addresses = []
        for _ in range(2):
            port = free_port()
            environment.setenv("SEVENHOP__WEB__LISTEN", f"127.0.0.1:{port}")
            at.add_worker()
            addresses.append(f"http://127.0.0.1:{port}")
        for edge in at.edges.values():
            edge.tell(shortage(edge.feed))
        made = Listening(at, slack, addresses)
        wait_until("served", lambda: at.served() and all(worker.partitions() for worker in at.workers), 120, at.logs)
        wait_until("told", lambda: len(slack.messages()) == len(CLUSTERS), 60, at.logs)
        yield made


def change_settings(config: Path, slack: FakeSlack) -> None:
    settings = json.loads(config.read_text("utf-8"))
    settings["receivers"] = {"slack": {**slack.settings, "app_token": APP_TOKEN, "signing_secret": SECRET}}
    settings["remediation"]["approvers"].append("slack-group:S0ONCALL")
    assert PLAYBOOK in settings["remediation"]["playbooks"]
    config.write_text(json.dumps(settings), "utf-8")


def approvals(worker: WorkerProcess, cluster: str) -> list[str]:
    return [text for text in Person(worker).audited(cluster) if text.startswith("approved: ")]


def until_decided(scene: Listening, cluster: str, word: str) -> None:
    wait_until(word, lambda: word in shown(scene.message(cluster)), 20, scene.at.logs)


def test_one_click_that_two_workers_hear(scene: Listening) -> None:
    """Slack sends again what it believes lost, perhaps to the other worker: one approval, in the cluster it is for."""
    cluster = "lab"
    wrong = scene.elsewhere(cluster)
    sent = scene.click(cluster, "approve", to=wrong)
    assert scene.post(1 - wrong, ACTIONS, sent["body"].encode(), sent["headers"]) == 200
    wait_until("approved", lambda: bool(approvals(scene.at.workers[0], cluster)), 20, scene.at.logs)
    time.sleep(1.0)  # a second one would have been counted by now
    assert approvals(scene.at.workers[1], cluster) == ["approved: approved by Kim"]
    assert all(not approvals(scene.at.workers[0], name) for name in CLUSTERS if name != cluster)


def test_socket_mode(scene: Listening) -> None:
    """Every worker is connected, and whichever Slack chooses takes the click to the cluster's own."""
    cluster = "prod-eu"
    assert scene.slack.click(KIM, "sevenhop.reject", scene.message(cluster)["ts"]) == {"ok": True}
    until_decided(scene, cluster, "rejected by Kim")


def test_a_stranger_is_told_and_nothing_is_decided(scene: Listening) -> None:
    """The guards are asked where the cluster is, and the answer finds the person at the other worker's door."""
    cluster = "prod-us"
    scene.click(cluster, "approve", to=scene.elsewhere(cluster), user=GUEST)
    wait_until("refused", lambda: any("may not approve" in text for text in scene.slack.whispers(GUEST)), 20)
    assert approvals(scene.at.workers[0], cluster) == []


def test_details_and_silence_from_the_other_worker(scene: Listening) -> None:
    """The details are those of the incident as it was told; the silence is in force in its cluster alone."""
    cluster = "prod-us"
    wrong = scene.elsewhere(cluster)
    scene.click(cluster, "details", to=wrong)
    wait_until("the details", lambda: "views.open" in methods(scene), 10, scene.at.logs)
    scene.click(cluster, "silence", to=wrong, option="30m")
    person = Person(scene.at.workers[wrong])
    wait_until("silenced", lambda: bool(person.silences(cluster)), 20, scene.at.logs)
    assert [name for name in CLUSTERS if person.silences(name)] == [cluster]


def test_stop_and_status_are_about_all_clusters(scene: Listening) -> None:
    """Whoever writes `/sevenhop stop` at one worker stops every cluster; sent again to the other, it is one order."""
    form = {
        "command": "/sevenhop", "text": "stop too much at once", "user_id": KIM, "user_name": "kim",
        "team_id": TEAM, "channel_id": CHANNEL, "trigger_id": "command-1",
    }  # fmt: skip
    body, headers = signed(form)
    for to in range(2):
        assert scene.post(to, COMMANDS, body, headers) == 200
    person = Person(scene.at.workers[0])
    wait_until("stopped", lambda: all(person.is_stopped(name) for name in CLUSTERS), 20, scene.at.logs)
    time.sleep(1.0)
    for name in CLUSTERS:
        assert [text for text in person.audited(name) if "kill switch on" in text] == [
            "Kim turned the kill switch on: too much at once"
        ]
    body, headers = signed({**form, "text": "status", "trigger_id": "command-2"})
    assert scene.post(1, COMMANDS, body, headers) == 200
    lines = [f"{name}: kill switch on, by Kim" for name in CLUSTERS]

    def is_told() -> bool:
        return any(all(line in text for line in lines) for text in scene.slack.whispers(KIM))

    wait_until("the status", is_told, 20, lambda: f"{scene.slack.whispers(KIM)}\n{scene.at.logs()}")


def methods(scene: Listening) -> set[str]:
    return {str(request["method"]) for request in scene.slack._get("requests")}
