"""Bad input: one clear line on stderr with the place and the fix, the documented exit code, never a traceback."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sevenhop.cli.main import main
from sevenhop.core.events import SourceChanged, SyncState
from sevenhop.simulation.faults import Refuse
from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.sources.recording import Recorder
from tests.unit.cli.servers import api_server, write_kubeconfig

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: n}\nspec: {containers: []}\n"

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command in an empty folder that is also HOME; gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str) -> tuple[int, str, str]:
        try:
            code = main(words)
        except SystemExit as ended:  # argparse
            code = int(str(ended.code))
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


FILES = {
    "broken.yaml": b"apiVersion: v1\nkind: Pod\nmetadata: {name: x\nspec: [\n",
    "broken.json": b'{"kind": "Pod",\n"metadata": ',
    "binary.yaml": b"\xff\xfe\x00",
    "wrong.yaml": b"apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: n}\nspec: {containers: oops}\n",
    "values.yaml": b"replicas: 3\n",
    "empty.yaml": b"",
}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("broken.yaml", "broken.yaml:4: broken YAML: "),
        ("broken.json", "broken.json:2: broken JSON: "),
        ("binary.yaml", "binary.yaml:1: not text"),
        ("wrong.yaml", "wrong.yaml:1: Pod: Expected `array`, got `str` - at `$.spec.containers`"),
        ("values.yaml", "values.yaml:1: no Kubernetes object"),
        ("empty.yaml", "empty.yaml: no Kubernetes objects"),
        ("missing.yaml", "missing.yaml: no such file or folder"),
    ],
)
def test_diagnose_names_the_file_and_the_line(call: Call, tmp_path: Path, name: str, said: str) -> None:
    """Nothing could be read: exit code 2, and no diagnosis that says "nothing is wrong"."""
    if name in FILES:
        (tmp_path / name).write_bytes(FILES[name])

    code, out, err = call("diagnose", "-f", name)

    assert code == 2
    assert out == ""
    assert err.startswith(f"sevenhop: {said}")
    assert err.count("\n") == 1


def test_diagnose_goes_on_with_what_can_be_read(call: Call, tmp_path: Path) -> None:
    """One broken file of a bundle costs that file, and is listed in the document."""
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "good.yaml").write_text(POD)

    code, out, _ = call("diagnose", "-f", ".", "-o", "json")

    assert code == 0
    places = {problem["where"].split("/")[-1].split(":")[0] for problem in json.loads(out)["problems"]}
    assert {"broken.yaml", "broken.json", "binary.yaml", "wrong.yaml", "values.yaml"} <= places


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["diagnose", "-f", "p.yaml", "--what-if", "remove n/p"], "--what-if: expected", id="what-if verb"),
        pytest.param(["diagnose", "-f", "p.yaml", "--what-if", "delete p"], "--what-if: expected", id="what-if name"),
        pytest.param(["diagnose", "-f", "p.yaml", "--what-if", "delete"], "--what-if: expected", id="what-if empty"),
        pytest.param(["diagnose", "-f", "p.yaml", "--now", "noon"], "--now: expected a time such as", id="now"),
        pytest.param(["explain", "x", "--at", "noon"], "--at: expected 03:01", id="at"),
        pytest.param(["explain", "x@25:00"], "--at: expected 03:01", id="at in the subject"),
        pytest.param(["replay", "x.gz", "--until", "noon"], "--until: expected a time such as", id="until"),
        pytest.param(["record", "x.gz", "--for", "soon"], "--for: expected a duration such as", id="record for"),
        pytest.param(
            ["silence", "add", "a=b", "-c", "x", "--for", "2"], "--for: expected a duration", id="silence for"
        ),
        pytest.param(["explain", "x", "--at", "2026-11-30T03:01:00Z"], "--at needs a running service", id="no memory"),
        pytest.param(["silence", "list"], "no service runs with the state in", id="no service"),
        pytest.param(["replay", "none.gz"], "none.gz cannot be read: No such file", id="no recording"),
        pytest.param(["rules", "check", "none"], "none: no such file or folder", id="no rules"),
        pytest.param(["scan", "--config", "none.yaml"], "none.yaml: No such file or directory", id="no settings"),
    ],
)
def test_wrong_words_are_named_with_what_is_expected(call: Call, tmp_path: Path, words: list[str], said: str) -> None:
    """Exit code 2."""
    (tmp_path / "p.yaml").write_text(POD)

    code, out, err = call(*words)

    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("sevenhop: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["get", "gizmos"], "WHAT cannot be gizmos; there are alerts, ", id="kind"),
        pytest.param(["frobnicate"], "COMMAND cannot be frobnicate; there are scan, ", id="command"),
        pytest.param(["diagnose"], "the following arguments are required: -f/--filename", id="no file"),
        pytest.param(["get", "pods", "-o", "xml"], "-o/--output cannot be xml; there are table, ", id="format"),
    ],
)
def test_unknown_words_list_the_known_ones(call: Call, words: list[str], said: str) -> None:
    """As every command-line tool: exit code 2, and the choices."""
    code, _, err = call(*words)

    assert code == 2
    assert said in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("receivers: [", ["s.yaml:1: "], id="broken YAML"),
        pytest.param("receivrs: {}", ["s.yaml:1: receivrs: unknown key; did you mean receivers?"], id="unknown key"),
        pytest.param("cluster: [1]", ["s.yaml:1: cluster: expected text; a number needs quotes"], id="wrong type"),
        pytest.param("[]", ["s.yaml:1: expected sections such as `receivers:`, got a list"], id="no sections"),
        pytest.param(
            "clutser: x\nincidents: {group_wait: 5, grop: 1}",
            [
                "s.yaml:1: clutser: unknown key; did you mean cluster?",
                "s.yaml:2: incidents.group_wait: expected a duration such as 90s",
                "s.yaml:2: incidents.grop: unknown key; there are group_wait,",
            ],
            id="all at once",
        ),
    ],
)
def test_settings_that_are_wrong_are_named_one_per_line(call: Call, tmp_path: Path, text: str, said: list[str]) -> None:
    """Before anything is connected or opened."""
    (tmp_path / "s.yaml").write_text(text)

    code, _, err = call("run", "--config", "s.yaml")

    assert code == 2
    assert all(any(line.startswith(f"sevenhop: {each}") for line in err.splitlines()) for each in said), err
    assert len(err.splitlines()) == len(said)


def test_a_wrong_variable_of_the_environment_is_told_from_the_file(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks for a typo of the environment in a file."""
    monkeypatch.setenv("SEVENHOP__CLUTSER", "x")

    code, _, err = call("scan")

    assert code == 2
    assert err == "sevenhop: environment SEVENHOP__CLUTSER: clutser: unknown key; did you mean cluster?\n"


# The cluster


@pytest.mark.parametrize("command", [["scan"], ["get", "pods"], ["doctor"], ["explain", "x"], ["run"], ["record", "r"]])
def test_without_a_kubeconfig_the_fix_is_named(call: Call, command: list[str]) -> None:
    """Exit code 3, whatever was asked of the cluster."""
    code, _, err = call(*command)

    assert code == 3
    assert err == "sevenhop: no kubeconfig found; pass --kubeconfig FILE, set KUBECONFIG, or run inside a cluster\n"


def test_an_unknown_context_is_named_with_how_to_list_them(call: Call, tmp_path: Path) -> None:
    """Exit code 3."""
    file = write_kubeconfig(tmp_path, "http://127.0.0.1:9")

    code, _, err = call("scan", "--kubeconfig", str(file), "--context", "there")

    assert code == 3
    assert f"context 'there' is not in {file}; `kubectl config get-contexts` lists them" in err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(FILES["broken.yaml"], ":4: broken YAML: ", id="broken YAML"),
        pytest.param(FILES["binary.yaml"], " cannot be read: ", id="binary"),
        pytest.param(b"[1, 2]", "is it a kubeconfig?", id="another file"),
    ],
)
def test_a_kubeconfig_that_cannot_be_read_is_named(call: Call, tmp_path: Path, content: bytes, said: str) -> None:
    """Exit code 3, with the place."""
    (tmp_path / "kc").write_bytes(content)

    code, _, err = call("scan", "--kubeconfig", "kc")

    assert code == 3
    assert err.startswith("sevenhop: kubeconfig kc")
    assert said in err
    assert err.count("\n") == 1


def test_an_api_server_that_is_not_there_is_named(call: Call, tmp_path: Path) -> None:
    """Exit code 3, with its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

        code, _, err = call("scan", "--kubeconfig", str(write_kubeconfig(tmp_path, url)))

    assert code == 3
    assert err.startswith(f"sevenhop: {url} cannot be reached")
    assert err.count("\n") == 1


def test_a_token_that_has_expired_is_named(call: Call, tmp_path: Path) -> None:
    """401: log in again; the token itself is not shown."""
    with api_server(tokens={"fresh"}) as url:
        code, _, err = call("scan", "--kubeconfig", str(write_kubeconfig(tmp_path, url, "expired-secret")))

    assert code == 3
    assert "log in" in err
    assert "expired-secret" not in err
    assert err.count("\n") == 1


def refuse(status: int, reason: str, plural: str = "") -> Callable[[ApiServerSimulation], object]:
    fault = Refuse(status=status, reason=reason, message="not for you", plural=plural, times=None)
    return lambda server: server.faults.add(fault)


def test_one_forbidden_kind_is_unknown_and_the_rest_is_seen(call: Call, tmp_path: Path) -> None:
    """403 on nodes: doctor names the kind and the permission, exit code 1; a hop is blind, nothing breaks."""
    with api_server(refuse(403, "Forbidden", "nodes")) as url:
        code, out, err = call("doctor", "--kubeconfig", str(write_kubeconfig(tmp_path, url)))

    assert (code, err) == (1, "")
    line = next(line for line in out.splitlines() if line.startswith("Node "))
    assert "forbidden" in line
    assert "nodes" in line
    assert "discovery   blind" in out


def test_an_object_that_cannot_be_decoded_is_counted_and_named(call: Call, tmp_path: Path) -> None:
    """Its kind goes on; doctor names the object and what is wrong with it."""

    def fill(server: ApiServerSimulation) -> None:
        meta = {"namespace": "prod"}
        server.store.create("Pod", {"metadata": {**meta, "name": "good"}, "spec": {"containers": []}})
        server.store.create("Pod", {"metadata": {**meta, "name": "odd"}, "spec": {"containers": "oops"}})

    with api_server(fill) as url:
        file = str(write_kubeconfig(tmp_path, url))
        code, out, _ = call("doctor", "--kubeconfig", file)
        _, pods, _ = call("get", "pods", "--kubeconfig", file, "-o", "json")

    assert code == 1
    assert "unreadable" in out
    assert "prod/odd: Pod: Expected `array`, got `str` - at `$.spec.containers`" in out
    assert [pod["pod"] for pod in json.loads(pods)] in ([], ["good"])


RULE = """\
id: {id}
status: experimental
subject: node
expr: "{expr}"
for: 0s
keep_firing_for: 0s
severity: warning
annotations: {{summary: "{{{{ node }}}}"}}
description: A node that should be there is not, and what ran on it is lost.
false_positives: [A reboot.]
triage: Look at it.
"""


def test_a_rule_that_fails_at_run_time_is_named_and_others_go_on(call: Call, tmp_path: Path) -> None:
    """Division by zero with every fact there: the rule is broken, its neighbour fires."""
    folder = tmp_path / "rules" / "discovery"
    folder.mkdir(parents=True)
    (folder / "divides.yaml").write_text(RULE.format(id="divides", expr="1 / node.gpu.bound > 2"))
    (folder / "works.yaml").write_text(RULE.format(id="works", expr="!node.ready"))
    (tmp_path / "s.yaml").write_text("rules: [rules]\n")

    def fill(server: ApiServerSimulation) -> None:
        status = {"conditions": [{"type": "Ready", "status": "False"}]}
        server.store.create("Node", {"metadata": {"name": "n1"}, "status": status})

    with api_server(fill) as url:
        where = ["--kubeconfig", str(write_kubeconfig(tmp_path, url)), "--config", "s.yaml"]
        code, out, _ = call("doctor", *where)
        _, scanned, _ = call("scan", *where, "-o", "json")

    assert code == 1
    assert "Broken rule divides: " in out
    assert "its alerts are frozen until it is mended" in out
    assert [(a["rule"], a["state"]) for a in json.loads(scanned)["alerts"]] == [("works", "firing")]


def test_a_subject_that_is_not_known_is_named_with_where_to_look(call: Call, tmp_path: Path) -> None:
    """Exit code 2."""
    with api_server() as url:
        code, _, err = call("explain", "nobody", "--kubeconfig", str(write_kubeconfig(tmp_path, url)))

    assert code == 2
    assert err == "sevenhop: nothing is called 'nobody'; `sevenhop get workloads` lists what is known\n"


# Recordings


def recording(path: Path) -> bytes:
    with Recorder(path, cluster="c", started_at=NOON) as recorder:
        for n in range(200):
            recorder(SourceChanged(at=NOON, kind=f"Kind{n}", state=SyncState.SYNCED))
    return path.read_bytes()


def test_a_recording_without_its_end_is_read_up_to_there(call: Call, tmp_path: Path) -> None:
    """A crash of the recorder costs the last second, not the night."""
    whole = recording(tmp_path / "whole.gz")
    (tmp_path / "cut.gz").write_bytes(whole[: len(whole) * 2 // 3])

    code, out, err = call("replay", "cut.gz")

    assert code == 0, err
    assert "0 fired" in out


@pytest.mark.parametrize("command", [["replay"], ["explain", "x", "--from"], ["rules", "backtest"]])
def test_a_damaged_recording_is_named_with_the_line(call: Call, tmp_path: Path, command: list[str]) -> None:
    """Exit code 2; nothing is concluded from half a story."""
    whole = bytearray(recording(tmp_path / "whole.gz"))
    middle = len(whole) // 2
    whole[middle : middle + 20] = b"\x00" * 20
    (tmp_path / "bad.gz").write_bytes(whole)

    code, _, err = call(*command, "bad.gz")

    assert code == 2
    assert err.startswith("sevenhop: bad.gz:")
    assert "damaged" in err


def test_what_is_no_recording_is_named(call: Call, tmp_path: Path) -> None:
    """Exit code 2."""
    (tmp_path / "notes.txt").write_text("hello\n")

    code, _, err = call("replay", "notes.txt")

    assert code == 2
    assert err.startswith("sevenhop: notes.txt:1: ")


def test_a_fault_of_ours_is_one_line_and_exit_code_5(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With where it broke, and how to see more; what was in the objects is not printed as a traceback."""
    (tmp_path / "p.yaml").write_text(POD)

    def broken(*_: object, **__: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("sevenhop.core.bundle.diagnose", broken)

    code, _, err = call("diagnose", "-f", "p.yaml")

    assert code == 5
    assert err.startswith("sevenhop: something of ours broke (KeyError at test_bad_input.py:")
    assert "SEVENHOP_TRACEBACK=1" in err
