"""What is given instead of manifests, and files that are none: one line that says what it is, and what to give."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sevenhop.core.events import SyncState
from sevenhop.core.objects.pod import Pod
from sevenhop.sources import files_paths
from sevenhop.sources.files import Loaded, load_files

INSTEAD = "; give what `kubectl get pods,nodes,events,… -A -o json` writes"
POD = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"x"}}\n'
NOBODY = 65534
FORBIDDEN = 'Error from server (Forbidden): nodes is forbidden: User "u" cannot list resource "nodes"'


def load(data: bytes | str) -> Loaded:
    return load_files(["-"], io.BytesIO(data.encode() if isinstance(data, str) else data))


def names(loaded: Loaded) -> list[str]:
    return [obj.metadata.name for _, obj in loaded.items]


def problems(loaded: Loaded) -> list[str]:
    return [f"{p.where}: {p.message}" for p in loaded.problems]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "NAMESPACE   NAME    READY   STATUS    AGE\nx           a-0     0/1     Pending   5m\n",
            f"stdin:1: kubectl's table, which leaves out nearly everything{INSTEAD}",
            id="table",
        ),
        pytest.param(
            "LAST SEEN   TYPE      REASON\n5m          Warning   FailedScheduling\n",
            f"stdin:1: kubectl's table, which leaves out nearly everything{INSTEAD}",
            id="table of events",
        ),
        pytest.param("pod/a\npod/b\n", f"stdin:1: names alone (kubectl get -o name){INSTEAD}", id="names"),
        pytest.param(
            "Name:             a\nNamespace:        x\nPriority:         0\nNode:  <none>\n",
            f"stdin:1: what kubectl describe writes for people{INSTEAD}",
            id="describe",
        ),
        pytest.param(
            "\n<!DOCTYPE html>\n<html><body>Log in</body></html>\n",
            f"stdin:2: HTML or XML, as a proxy or a login page sends it{INSTEAD}",
            id="HTML",
        ),
        pytest.param(
            FORBIDDEN + "\n", f'stdin:1: no object, but what kubectl said: "{FORBIDDEN}"{INSTEAD}', id="an error alone"
        ),
        pytest.param(
            "No resources found in x namespace.\n",
            f'stdin:1: no object, but what kubectl said: "No resources found in x namespace."{INSTEAD}',
            id="nothing found",
        ),
        pytest.param(
            '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"nodes is forbidden","code":403}',
            "stdin:1: no objects, but an answer of the API server: nodes is forbidden",
            id="a status",
        ),
        pytest.param(
            "kind: Status\napiVersion: v1\nmessage: gone\n",
            "stdin:1: no objects, but an answer of the API server: gone",
            id="a status in YAML",
        ),
        pytest.param(
            '{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}',
            f"stdin:1: a table of the API server, which leaves out nearly everything{INSTEAD}",
            id="a table of the API server",
        ),
    ],
)
def test_what_is_no_manifest_says_what_it_is(text: str, said: str) -> None:
    """And what to give instead."""
    loaded = load(text)

    assert (problems(loaded), loaded.items) == ([said], [])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(f"{FORBIDDEN}\n{POD}", 1, id="before JSON"),
        pytest.param(f"{POD}{FORBIDDEN}\n", 2, id="behind JSON"),
        pytest.param(
            f"Warning: v1 Endpoints is deprecated\n{FORBIDDEN}\napiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\n",
            2,
            id="before YAML",
        ),
        pytest.param(
            f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\n{FORBIDDEN}", 4, id="behind YAML, without a line's end"
        ),
    ],
)
def test_what_kubectl_said_beside_its_output_costs_nothing(text: str, line: int) -> None:
    """With ``2>&1`` errors stand among the objects: these are read, and what was refused is not taken for absent."""
    loaded = load(text)

    assert names(loaded) == ["a"]
    assert problems(loaded) == [f'stdin:{line}: no object, but what kubectl said: "{FORBIDDEN}"']
    assert loaded.objects().states["Node"] is SyncState.NO_SOURCE


def test_logs_between_lists_are_passed_over() -> None:
    """``kubectl cluster-info dump`` writes both; a line behind them is still called by its number."""
    log = "==== START logs for container a of pod x ====\n{broken\nkind: P\n==== END logs for container a of pod x ===="
    cut = "==== START logs for container c of pod x/d ===="

    whole, rest = load(f"{POD}\n{log}\n{POD}"), load(f"{POD}\n{log}\n{POD}{cut}\n")

    assert (names(whole), problems(whole)) == (["a"], [])
    assert names(rest) == ["a"]
    assert [problem.split(":")[1] for problem in problems(rest)] == [str(f"{POD}\n{log}\n{POD}".count("\n") + 1)]


@pytest.mark.parametrize("text", [POD, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"], ids=["JSON", "YAML"])
def test_colours_are_no_text(text: str) -> None:
    """``jq -C`` and ``kubecolor`` write them into files too."""
    loaded = load(text.replace("kind", "\x1b[1;33mkind\x1b[0m"))

    assert (names(loaded), problems(loaded)) == (["a"], [])


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        pytest.param(POD.encode("utf-16-le"), ["a"], id="UTF-16 without a mark"),
        pytest.param(POD.encode("utf-16-be"), ["a"], id="UTF-16, big end first"),
        pytest.param(POD.encode("utf-32"), ["a"], id="UTF-32"),
        pytest.param((POD * 2 + POD[:30]).encode("utf-16")[:-1], ["a"], id="UTF-16, cut in a character"),
        pytest.param(bytes(range(256)) * 20, [], id="binary"),
        pytest.param(b"\x7fELF" + bytes(400), [], id="a program"),
    ],
)
def test_encodings(data: bytes, kept: list[str]) -> None:
    """Text in any of Unicode's is read; what is no text is one problem."""
    loaded = load(data)

    assert names(loaded) == kept
    if not kept:
        assert problems(loaded) == ["stdin:1: not text: a compressed or binary file? Unpack it first"]


def test_a_circle_of_links_is_read_once(tmp_path: Path) -> None:
    """Links to folders are followed, as a mounted ConfigMap has them; a circle ends."""
    (tmp_path / "real").mkdir()
    (tmp_path / "top").mkdir()
    (tmp_path / "real" / "pod.json").write_text(POD)
    (tmp_path / "real" / "up").symlink_to(tmp_path / "top")
    (tmp_path / "top" / "linked").symlink_to(tmp_path / "real")
    (tmp_path / "top" / "self.json").symlink_to(tmp_path / "top" / "self.json")

    loaded = load_files([tmp_path / "top"])

    assert (names(loaded), loaded.files) == (["a"], 1)
    assert len(problems(loaded)) == 1
    assert problems(loaded)[0].startswith(f"{tmp_path}/top/self.json: cannot be read")


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may ever write to it; one that is named is waited for, but not for ever."""
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "pod.json").write_text(POD)
    monkeypatch.setattr(files_paths, "_LONGEST_WAIT_S", 0.05)

    assert names(load_files([tmp_path])) == ["a"]
    assert problems(load_files([tmp_path])) == [f"{tmp_path}/pipe.json: no regular file; name it to have it read"]
    assert problems(load_files([tmp_path / "pipe.json"])) == [
        f"{tmp_path}/pipe.json: a pipe into which nobody wrote for 0.05 s"
    ]


def test_a_shells_pipe_is_read() -> None:
    """``diagnose -f <(kubectl …)``"""
    out, into = os.pipe()
    os.write(into, POD.encode())
    os.close(into)
    try:
        assert names(load_files([f"/dev/fd/{out}"])) == ["a"]
    finally:
        os.close(out)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that everybody may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything, so it is somebody else meanwhile."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def test_what_may_not_be_read_is_named(open_folder: Path) -> None:
    """A file, a folder, and what lies in a folder that may not be entered; the others are read."""
    (open_folder / "pod.json").write_text(POD)
    (open_folder / "no.json").write_text(POD)
    (open_folder / "no.json").chmod(0)
    (open_folder / "closed").mkdir(mode=0)

    with as_nobody():
        loaded = load_files([open_folder, open_folder / "closed" / "x.json"])

    assert names(loaded) == ["a"]
    assert {line.split(": ", 1)[1] for line in problems(loaded)} == {"cannot be read: Permission denied"}
    assert len(loaded.problems) == 3


def test_a_name_that_is_no_text_can_be_shown(tmp_path: Path) -> None:
    """Names of files are bytes, and a problem is printed."""
    name = os.fsencode(tmp_path) + b"/\xff.json"
    Path(os.fsdecode(name)).write_text("{")

    (problem,) = load_files([tmp_path]).problems
    assert problem.where.encode() == f"{tmp_path}/�.json:1".encode()


def test_of_one_object_in_many_files_the_newest_stands(tmp_path: Path) -> None:
    """Whatever the files are called; versions are numbers of any length."""
    versions = ["99", "1" + "0" * 5000, "100", "7"]
    for number, version in enumerate(versions):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "resourceVersion": version}}
        (tmp_path / f"{number}.json").write_text(json.dumps({**pod, "status": {"phase": f"p{number}"}}))

    ((_, found),) = load_files([tmp_path]).items
    assert isinstance(found, Pod)
    assert found.status.phase == "p1"


def test_a_folder_of_thousands_of_files(tmp_path: Path) -> None:
    """Each is read, and the broken ones are named."""
    for number in range(2000):
        text = POD.replace('"a"', f'"a{number}"')
        (tmp_path / f"{number:04}.json").write_text(text if number % 500 else text[:40])

    loaded = load_files([tmp_path])

    assert (len(loaded.items), len(loaded.problems), loaded.files) == (1996, 4, 2000)


def test_a_larger_file_than_is_read_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory has an end; the items up to there are read."""
    monkeypatch.setattr("sevenhop.sources.files.MOST_BYTES", 300)
    monkeypatch.setattr("sevenhop.sources.files_paths.MOST_BYTES", 300)
    file = tmp_path / "pods.json"
    pods = [json.loads(POD) | {"metadata": {"name": f"a{n}"}} for n in range(9)]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))

    loaded = load_files([file])

    assert names(loaded) == ["a0", "a1", "a2"]
    assert len(loaded.problems) == 2
