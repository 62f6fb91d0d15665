"""Deciding from a terminal: what is asked, as whom, and how a refusal reads."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from sevenhop.cli.main import main
from sevenhop.core.effects import Message, Reply
from sevenhop.core.events import BreakerReset, Decided, Silenced, SwitchSet, Verb
from sevenhop.core.remediation.audit import append, line_of
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.control_path import SOCKET
from sevenhop.runtime.deciding import Deciding, IdentityError

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {USER}}]
"""


class Core:
    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.about: list[str] = []  # clusters, as they were named
        self.reply: Callable[[Any], Reply] = lambda e: Reply(request_id=e.request_id, accepted=True, text="approved")

    async def ask(self, event: Decided | SwitchSet | BreakerReset, cluster: str = "") -> Reply:
        self.asked.append(event)
        self.about.append(cluster)
        return self.reply(event)

    async def silence(self, event: Silenced) -> None:
        raise NotImplementedError

    async def message(self, incident_id: str) -> Message | None:
        raise NotImplementedError

    async def status(self) -> str:
        raise NotImplementedError


class Service:
    def __init__(self, core: Core, folder: Path, address: str) -> None:
        self.core, self.folder, self.address = core, folder, address

    async def call(self, *words: str) -> int:
        return await asyncio.to_thread(main, [*words, "--state", str(self.folder)])


async def review(token: str) -> Person:
    if token != "good-token":
        raise IdentityError("the API server does not know your token (expired?); log in again")
    return Person(id="kubernetes:alice", name="alice")


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    core = Core()
    record = append(None, at=Clock()(), what="state", plan_id="7f3a", who="sevenhop", text="approved: by kim")
    runners = []
    for takes_peers in (True, False):
        app = web.Application()
        for path, handler in Deciding(core, review, Clock(), takes_peers=takes_peers, via="terminal").routes().items():
            app.router.add_post(path, handler)
        app.router.add_get("/audit", _answering({"records": [line_of(record).decode()], "problems": []}))
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
    await web.UnixSite(runners[0], str(tmp_path / SOCKET)).start()
    await web.TCPSite(runners[1], "127.0.0.1", 0).start()
    yield Service(core, tmp_path, f"http://127.0.0.1:{runners[1].addresses[0][1]}")
    for runner in runners:
        await runner.cleanup()


def _answering(data: Any) -> Callable[[web.Request], Any]:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response(data)

    return answer


def kubeconfig(folder: Path, user: str) -> str:
    path = folder / "kubeconfig"
    path.write_text(KUBECONFIG.replace("{USER}", user))
    return str(path)


@pytest.mark.parametrize(
    "words",
    [
        ("approve", "7f3a"),
        ("runs", "undo", "7f3a"),
        ("switch", "stop"),
        ("switch", "reset-breaker"),
    ],
    ids=" ".join,
)
async def test_which_cluster_is_meant(service: Service, words: tuple[str, ...]) -> None:
    """The service is told the name, or that none was given."""
    assert await service.call(*words, "--cluster", "prod-eu") == 0
    assert await service.call(*words) == 0
    assert service.core.about == ["prod-eu", ""]


@pytest.mark.parametrize(
    ("words", "verb"),
    [
        (("approve", "7f3a"), Verb.APPROVE),
        (("reject", "7f3a"), Verb.REJECT),
        (("runs", "undo", "7f3a"), Verb.UNDO),
        (("runs", "extend", "7f3a"), Verb.EXTEND),
        (("runs", "restore", "7f3a"), Verb.RESTORE),
    ],
)
async def test_each_verb(service: Service, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], verb: Verb) -> None:
    """On the service's host the user of this process decides, with the comment that is given."""
    monkeypatch.delenv("KUBECONFIG", raising=False)

    assert await service.call(*words, "-m", "agreed with the owner") == 0
    [asked] = service.core.asked
    assert (asked.verb, asked.plan_id, asked.comment) == (verb, "7f3a", "agreed with the owner")
    assert asked.person.id == f"unix:{getpass.getuser()}"


async def test_a_refusal(service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It says why, and as whom one was heard; exit code 1."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    service.core.reply = lambda e: Reply(request_id=e.request_id, accepted=False, text="you may not approve it")

    assert await service.call("approve", "7f3a") == 1
    assert f"refused (you are unix:{getpass.getuser()}): you may not approve it" in capsys.readouterr().out


@pytest.mark.parametrize("accepted", [True, False])
async def test_nothing_that_is_told_obeys_the_terminal(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], accepted: bool
) -> None:
    """The answer may quote the cluster, or another person."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    text = "the switch is on: \x1b]0;x\x07\x1b[2J\u202eall fine"
    service.core.reply = lambda e: Reply(request_id=e.request_id, accepted=accepted, text=text)

    await service.call("approve", "7f3a")
    assert "\x1b" not in (out := capsys.readouterr().out)
    assert "\u202e" not in out


@pytest.mark.parametrize("name", ["", "../audit", "a b", "a/b", "7f3a?x=1", "\x1b[2J", "é" * 5_000, "\udcff"])
async def test_what_is_no_plan(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Whatever is typed in place of an id: one line, exit code 2 or 1, and nothing of ours breaks."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for words in (("describe", "plan"), ("runs", "describe"), ("approve",)):
        service.core.reply = lambda e: Reply(request_id=e.request_id, accepted=False, text="there is no such plan")
        assert await service.call(*words, name) in (1, 2)
    said = capsys.readouterr()
    assert "of ours broke" not in said.err
    assert "\x1b" not in said.out + said.err


async def test_a_token_that_no_header_can_carry_is_not_shown(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes nowhere, and above all not into the words of the error."""
    config = kubeconfig(tmp_path, '{token: "secret-part\\nX-Evil: 1"}')
    await service.call("approve", "7f3a", "--kubeconfig", config)
    said = capsys.readouterr()
    assert service.core.asked == []
    assert "secret-part" not in said.out + said.err


async def test_as_a_person_of_the_cluster(service: Service, tmp_path: Path) -> None:
    """The kubeconfig's token goes along, over the socket and over HTTP on this host."""
    config = kubeconfig(tmp_path, "{token: good-token}")

    assert await service.call("approve", "7f3a", "--kubeconfig", config) == 0
    assert await service.call("approve", "7f3a", "--kubeconfig", config, "--server", service.address) == 0
    assert [asked.person.id for asked in service.core.asked] == ["kubernetes:alice", "kubernetes:alice"]


@pytest.mark.parametrize(
    ("user", "server", "said"),
    [
        ("{token: bad-token}", "", "does not know your token"),
        ("{}", "HERE", "cannot be passed on"),
        ("{token: good-token}", "http://example.com:80", "over https only"),
        ("{token: good-token}", "example.com", "expected an address"),
        ("{token: good-token}", "http://127.0.0.1:1", "127.0.0.1:1"),
    ],
)
async def test_who_cannot_be_known_decides_nothing(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str], user: str, server: str, said: str
) -> None:
    """One line on stderr with what to do instead; nothing reaches the core."""
    config = kubeconfig(tmp_path, user)
    where = ["--server", server.replace("HERE", service.address)] if server else []
    code = await service.call("approve", "7f3a", "--kubeconfig", config, *where)

    assert code in (2, 3)
    assert said in capsys.readouterr().err
    assert not service.core.asked


@pytest.mark.parametrize("words", [("approve", "x"), ("switch", "stop"), ("switch", "status"), ("runs", "list"),
                                   ("get", "plans"), ("report", "shadow"), ("describe", "plan", "x")])  # fmt: skip
def test_no_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """What only the service knows is not guessed: one line says how to reach it."""
    monkeypatch.delenv("KUBECONFIG", raising=False)

    assert main([*words, "--state", str(tmp_path / "none")]) == 2
    assert "no service runs here" in capsys.readouterr().err


async def test_the_switch(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop, resume and the breaker, with who and why."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    await service.call("switch", "stop", "-m", "maintenance")
    await service.call("switch", "resume")
    await service.call("switch", "reset-breaker", "-m", "looked at it")

    stop, resume, breaker = service.core.asked
    assert (stop.is_on, stop.comment, resume.is_on) == (True, "maintenance", False)
    assert isinstance(breaker, BreakerReset)


async def test_the_audit_trail(service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Listed, exported, and verified again from the export; one changed byte is found and named."""
    assert await service.call("audit", "list") == 0
    assert "approved: by kim" in capsys.readouterr().out
    assert await service.call("audit", "export") == 0
    export = tmp_path / "trail.jsonl"
    export.write_text(capsys.readouterr().out)

    assert main(["audit", "verify", str(export)]) == 0
    assert "1 record, chain ok" in capsys.readouterr().out
    whole = export.read_text()
    export.write_text(whole.replace("kim", "jim"))
    assert main(["audit", "verify", str(export)]) == 1
    assert capsys.readouterr().out.startswith("record 1: changed")
    export.write_text(whole.replace(",", ", "))
    assert main(["audit", "verify", str(export)]) == 1
    assert capsys.readouterr().out == "changed: line 1 was changed: not as it was written\n"
    for other in ("apiVersion: v1\nkind: List\n", '{"items": []}\n', "\x00\n[" + "[" * 100_000):
        export.write_text(other)
        assert main(["audit", "verify", str(export)]) == 2
        said = capsys.readouterr()
        assert (said.out, "no audit trail" in said.err) == ("", True)


async def test_json(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """Programs read the same."""
    await service.call("audit", "list", "-o", "json")

    assert json.loads(capsys.readouterr().out)[0]["plan_id"] == "7f3a"
