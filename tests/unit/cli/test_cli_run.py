"""`sevenhop run` as a process: what it says when its state, its disk or its receiver is not well, and how it stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sevenhop.cli.cluster import ask_service
from sevenhop.cli.output import UsageError
from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.stores.sqlite import SqliteStore
from tests.e2e.crash_processes import Cluster
from tests.fakes.slack_server import CHANNEL, TOKEN, SlackServer
from tests.shared import missing
from tests.unit.cli.servers import api_server, slack_server, write_kubeconfig

RULE = """\
id: node-gone
status: experimental
subject: node
expr: "!node.ready"
for: 0s
keep_firing_for: 0s
severity: critical
annotations: {summary: "{{ node }} is not ready"}
description: A node that should be there is not, and what ran on it is lost.
false_positives: [A reboot.]
triage: Look at it.
"""


def sick_node(server: ApiServerSimulation) -> None:
    create_node(server, ready="False")


def well_node(server: ApiServerSimulation) -> None:
    create_node(server, ready="True")


def create_node(server: ApiServerSimulation, *, ready: str) -> None:
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    server.store.create("Node", {"metadata": {"name": "n1"}, "status": status})


class Run:
    """One service on a folder."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.state = folder / "state"
        self.log = folder / "log"
        rules = folder / "rules" / "discovery"
        rules.mkdir(parents=True, exist_ok=True)
        (rules / "node-gone.yaml").write_text(RULE)
        config = folder / "sevenhop.yaml"
        common = {"state": str(self.state), "rules": [str(folder / "rules")], "incidents": {"group_wait": "0s"}}
        config.write_text(yaml.safe_dump({**common, **settings}))
        self.words = [sys.executable, "-m", "sevenhop.cli.main", "run", "--config", str(config)]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> Run:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SEVENHOP_")}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*self.words, *more], stdout=log, stderr=log, env=environ)
        return self

    def said(self) -> str:
        text = self.log.read_text()
        assert "Traceback" not in text, text
        return text

    def until(self, is_true: Callable[[], bool], seconds: float = 60.0) -> None:
        ends_at = time.monotonic() + seconds
        while not is_true():
            assert time.monotonic() < ends_at, self.said()
            assert self.process is not None
            assert self.process.poll() is None, self.said()
            time.sleep(0.02)

    def asks(self, path: str) -> Any:
        """What its local door answers; None while it is not open."""
        try:
            return ask_service(self.state, "GET", path)
        except UsageError:
            return None

    def ended(self, seconds: float = 60.0) -> int:
        assert self.process is not None
        return self.process.wait(seconds)

    def stop(self) -> float:
        """SIGTERM; gives the seconds that it took to end well."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.said()
        return time.monotonic() - began

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Makes services that end with the test."""
    made: list[Run] = []

    def make_one(url: str, folder: Path = tmp_path, **settings: Any) -> Run:
        kubeconfig = str(write_kubeconfig(folder, url))
        made.append(Run(folder, kubernetes={"kubeconfig": kubeconfig}, **settings))
        return made[-1]

    yield make_one
    for each in made:
        each.kill()


def to_slack(slack: SlackServer, token: str = TOKEN, **more: Any) -> dict[str, Any]:
    channel = {"type": "slack", "token": token, "channel": CHANNEL, "base_url": slack.base_url, **more}
    return {"receivers": {"slack": channel}}


@pytest.fixture
def url() -> Iterator[str]:
    with api_server(sick_node) as address:
        yield address


def test_a_locked_state_folder_names_the_process_that_has_it(make: Callable[..., Run], url: str) -> None:
    """Exit code 4."""
    run = make(url)
    run.state.mkdir()
    holder = SqliteStore(run.state)
    try:
        assert run.start().ended() == 4
    finally:
        holder.close()

    assert f"{run.state}: in use by another sevenhop (pid {os.getpid()}); stop it" in run.said()
    assert len(run.said().splitlines()) == 1


def test_a_state_folder_that_cannot_be_written_is_named(make: Callable[..., Run], url: str) -> None:
    """Exit code 4, with the option that chooses another."""
    run = make(url)
    run.state.write_text("a file, not a folder")

    assert run.start().ended() == 4

    assert run.said().startswith(f"sevenhop: {run.state}: ")
    assert "choose a writable folder with --state" in run.said()


def test_a_state_folder_whose_name_is_too_long_for_a_socket_works(
    make: Callable[..., Run], url: str, tmp_path: Path
) -> None:
    """A unix socket's path may have 107 bytes: the door is found by a shorter way, by service and command line."""
    folder = tmp_path / ("x" * 200)
    folder.mkdir()
    run = make(url, folder).start()

    run.until(lambda: bool(run.asks("/get/alerts")))

    run.stop()


def test_a_corrupt_state_file_is_set_aside_and_the_watch_goes_on(make: Callable[..., Run], url: str) -> None:
    """It says where the damaged file went, and begins empty."""
    with slack_server() as slack:
        run = make(url, **to_slack(slack))
        run.state.mkdir()
        (run.state / "state.db").write_bytes(b"SQLite format 3\x00" + os.urandom(4096))

        run.start().until(lambda: len(slack.parents) == 1)

    kept = list(run.state.glob("state.db.damaged-*"))
    assert len(kept) == 1
    assert f"moved to {kept[0]}" in run.said()


def test_a_refused_token_is_said_and_shows_in_doctor_and_the_alert_waits(make: Callable[..., Run], url: str) -> None:
    """Slack says invalid_auth: one line with the fix, no token in it; the service goes on."""
    with slack_server() as slack:
        run = make(url, **to_slack(slack, token="xoxb-revoked-secret"))
        run.start().until(lambda: "refuses incident" in run.said())
        run.until(lambda: bool((run.asks("/doctor") or {}).get("outbox", {}).get("failing")))
        failing = run.asks("/doctor")["outbox"]["failing"]
        alerts = run.asks("/get/alerts")
        run.stop()

    assert "invalid_auth" in failing["slack"]
    assert [a["state"] for a in alerts] == ["firing"]
    assert run.said().count("refuses incident") == 1
    assert "xoxb-revoked-secret" not in run.said()


def test_it_stops_at_once_while_a_message_hangs_and_tells_it_after_the_next_start(
    make: Callable[..., Run], url: str
) -> None:
    """It does not wait for the answer, exit code 0; Slack had taken the message, so it is not sent again."""
    with slack_server() as slack:
        slack.fail("chat.postMessage", "timeout_after")
        run = make(url, **to_slack(slack, timeout="50s"))
        run.start().until(lambda: len(slack.parents) == 1)
        assert run.stop() < 25  # on a machine that is not loaded it takes two

        run.start().until(lambda: bool(slack.thread_of(slack.parents[0])))
        run.stop()

    assert len(slack.parents) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 384 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=384k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        missing("needs the right to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def break_node(url: str, message: str = "") -> None:
    """After the start."""
    condition = {"type": "Ready", "status": "False", "message": message}
    Cluster(url).patch_status("/api/v1/nodes/n1", {"conditions": [condition]})


def is_watching(run: Run) -> bool:
    return bool(run.asks("/get/nodes"))


def test_a_full_disk_holds_input_back_until_there_is_space(make: Callable[..., Run], small_disk: Path) -> None:
    """It says so, answers doctor meanwhile, and tells the alert once there is space."""
    with api_server(well_node) as url, slack_server() as slack:
        run = make(url, state=str(small_disk / "state"), **to_slack(slack))
        run.state = small_disk / "state"
        run.start().until(lambda: is_watching(run))
        fill(small_disk / "filler")
        break_node(url)
        run.until(lambda: bool((run.asks("/doctor") or {}).get("stalled")))
        assert slack.parents == []

        (small_disk / "filler").unlink()

        run.until(lambda: len(slack.parents) == 1)
        run.stop()
    assert run.said().count("state not stored, input waits") == 1
    assert "free some space" in run.said()


def test_a_disk_that_is_full_at_the_start_is_named(make: Callable[..., Run], url: str, small_disk: Path) -> None:
    """Exit code 4: nothing could be kept, so nothing is begun."""
    fill(small_disk / "filler")

    run = make(url, state=str(small_disk / "state"))

    assert run.start().ended() == 4
    assert "free some space" in run.said()
    assert len(run.said().splitlines()) == 1


def test_a_recording_that_cannot_go_on_does_not_end_the_watch(make: Callable[..., Run], small_disk: Path) -> None:
    """The disk of the recording is full: it ends with a line, the alert is told all the same."""
    with api_server(well_node) as url, slack_server() as slack:
        run = make(url, **to_slack(slack))
        run.start("--record", str(small_disk / "night.gz")).until(lambda: is_watching(run))
        fill(small_disk / "filler")
        for _ in range(3):
            break_node(url, os.urandom(4096).hex())  # more than what is left of the recording's last block
        run.until(lambda: len(slack.parents) == 1)
        run.stop()
    assert run.said().count("recording ended, watching goes on") <= 1
    assert "cannot be written: No space left on device" in run.said()


def test_a_recording_does_not_overwrite_a_file(make: Callable[..., Run], url: str, tmp_path: Path) -> None:
    """Exit code 2: last night's recording is worth more than this one's name."""
    (tmp_path / "night.gz").write_text("last night")

    run = make(url)

    assert run.start("--record", str(tmp_path / "night.gz")).ended() == 2
    assert "--record: " in run.said()
    assert (tmp_path / "night.gz").read_text() == "last night"


def fill(file: Path) -> None:
    """Until the file system is full to the last byte."""
    with file.open("wb", buffering=0) as out:
        for size in (4096, 256, 1):
            try:
                while True:
                    out.write(b"x" * size)
            except OSError:
                continue
