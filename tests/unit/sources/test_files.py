"""Files, folders and standard input: what is read, what is skipped, and what is said of the rest."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.core.events import Applied, SourceChanged, SyncState
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod
from sevenhop.sources.files import Loaded, load_files
from tests.shared import shared_path

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def load(text: str | bytes) -> Loaded:
    return load_files(["-"], io.BytesIO(text.encode() if isinstance(text, str) else text))


def names(loaded: Loaded) -> list[str]:
    return [f"{kind} {obj.metadata.namespace}/{obj.metadata.name}" for kind, obj in loaded.items]


def problems(loaded: Loaded) -> list[str]:
    return [f"{p.where}: {p.message}" for p in loaded.problems]


POD_A = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "x"}}
POD_B = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": "x"}}
BARE = {"metadata": {"name": "a", "namespace": "x"}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(json.dumps(POD_A), ["Pod x/a"], id="one object"),
        pytest.param(json.dumps(POD_A, indent=2), ["Pod x/a"], id="one object, indented"),
        pytest.param("\ufeff" + json.dumps(POD_A), ["Pod x/a"], id="byte order mark"),
        pytest.param(json.dumps([POD_A, POD_B]), ["Pod x/a", "Pod x/b"], id="array"),
        pytest.param(json.dumps(POD_A) + "\n\n" + json.dumps(POD_B) + "\n", ["Pod x/a", "Pod x/b"], id="JSON lines"),
        pytest.param(
            json.dumps(POD_A, indent=1) + "\n" + json.dumps(POD_B, indent=1), ["Pod x/a", "Pod x/b"], id="JSON in a row"
        ),
        pytest.param(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": [POD_A, POD_B]}), ["Pod x/a", "Pod x/b"], id="List"
        ),
        pytest.param(
            json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [BARE]}),
            ["Pod x/a"],
            id="PodList of the raw API",
        ),
        pytest.param(
            json.dumps({"apiVersion": "ray.io/v1", "kind": "RayServiceList", "items": [BARE]}),
            ["RayService.ray.io x/a"],
            id="list of a custom kind",
        ),
        pytest.param(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "List",
                    "items": [{"apiVersion": "v1", "kind": "PodList", "items": [BARE]}],
                }
            ),
            ["Pod x/a"],
            id="list of lists",
        ),
        pytest.param(
            "# two\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: x}\n---\n---\n# none\n---\n"
            "apiVersion: v1\nkind: Pod\nmetadata: {name: b, namespace: x}\n...\n",
            ["Pod x/a", "Pod x/b"],
            id="YAML documents",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: x}}\n",
            ["Pod x/a"],
            id="YAML List",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", ["Pod default/a"], id="no namespace is the default one"
        ),
        pytest.param("apiVersion: v1\nkind: Node\nmetadata: {name: n, namespace: x}\n", ["Node /n"], id="cluster-wide"),
        pytest.param(
            "apiVersion: events.k8s.io/v1\nkind: Event\nmetadata: {name: e, namespace: x}\nnote: n\n",
            ["Event x/e"],
            id="both APIs of Events",
        ),
        pytest.param("", [], id="empty"),
        pytest.param("---\n# nothing\n---\n", [], id="only separators"),
        pytest.param(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": None}), [], id="null items"),
    ],
)
def test_forms(text: str, expected: list[str]) -> None:
    """Every form in which kubectl writes objects is read, without a problem."""
    loaded = load(text)

    assert (names(loaded), problems(loaded)) == (expected, [])


@pytest.mark.parametrize(
    ("text", "expected", "kept"),
    [
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nfoo: [\n---\n"
            "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n",
            ["stdin:6: broken YAML: did not find expected node content at column 1"],
            2,
            id="a broken document between two",
        ),
        pytest.param(
            "a:\n\tb: 1\n",
            ["stdin:2: broken YAML: found character that cannot start any token at column 1"],
            0,
            id="tab",
        ),
        pytest.param(
            '{\n "a": 1,\n "b" 2}\n', ["stdin:3: broken JSON: Expecting ':' delimiter at column 6"], 0, id="JSON"
        ),
        pytest.param(
            json.dumps(POD_A) + '\n{"apiVersion":"v1","kin\n' + json.dumps(POD_B),
            ["stdin:2: broken JSON: Input data was truncated"],
            2,
            id="a broken line between two",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {a: b}\n",
            ["stdin:1: Pod without metadata.name"],
            0,
            id="no name",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n"
            "- apiVersion: v1\n  kind: Pod\n  metadata: {name: b}\n  spec: {containers: 5}\n",
            ["stdin:7: Pod: Expected `array`, got `int` - at `$.spec.containers` (b)"],
            1,
            id="a wrong type, at the line of its object",
        ),
        pytest.param(
            '[\n{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}},\n'
            '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{"containers":5}}]',
            ["stdin:3: Pod: Expected `array`, got `int` - at `$.spec.containers` (b)"],
            1,
            id="the same in JSON",
        ),
        pytest.param(
            "replicas: 3\nimage: {tag: x}\n---\nmore: values\n",
            ["stdin:1: no Kubernetes object: apiVersion and kind are missing (a Helm values file?)"],
            0,
            id="a values file is one problem",
        ),
        pytest.param(
            "just a log\nof two lines\n",
            ["stdin:1: no Kubernetes object: apiVersion and kind are missing (a Helm values file?)"],
            0,
            id="prose",
        ),
        pytest.param(
            "{{- if .Values.on }}\napiVersion: v1\n{{- end }}\n---\nkind: {{ .Kind }}\n",
            ["stdin:1: a Helm template, not YAML: render it first (helm template CHART | sevenhop diagnose -f -)"],
            0,
            id="a template is one problem",
        ),
        pytest.param(
            b"\x00\x01\x02", ["stdin:1: not text: a compressed or binary file? Unpack it first"], 0, id="binary"
        ),
        pytest.param(b"a: \xff\n", ["stdin:1: not UTF-8"], 0, id="encoding"),
        pytest.param("a: \x01\n", ["stdin:1: broken YAML: control characters"], 0, id="control characters"),
        pytest.param("[" * 100_000, ["stdin:1: nested too deeply"], 0, id="deep JSON"),
        pytest.param(
            "a: " + "[" * 100_000,
            ["stdin:1: broken YAML: exceeded maximum nesting depth at column 1003"],
            0,
            id="deep YAML",
        ),
        pytest.param(
            "a: &a\n  b: *a\n", ["stdin:2: broken YAML: an alias inside itself at column 6"], 0, id="endless alias"
        ),
        pytest.param(
            "a: !!python/name:os.system\n",
            ["stdin:1: broken YAML: unknown tag tag:yaml.org,2002:python/name:os.system at column 4"],
            0,
            id="tag",
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"PodList","items":5}',
            ["stdin:1: PodList without a list of items"],
            0,
            id="items",
        ),
    ],
)
def test_problems(text: str | bytes, expected: list[str], kept: int) -> None:
    """What cannot be read is one line with its place; everything else is read."""
    loaded = load(text)

    assert (problems(loaded), len(loaded.items)) == (expected, kept)


def test_aliases_cannot_fill_the_memory() -> None:
    """A page of aliases that would be terabytes is refused at once."""
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for letter, before in zip("bcdefghijklm", "abcdefghijkl", strict=True):
        lines.append(f"{letter}: &{letter} [{','.join([f'*{before}'] * 9)}]")

    assert "aliases make it too large" in problems(load("\n".join(lines)))[0]


def test_yaml_is_read_as_the_api_server_reads_it() -> None:
    """Times and base-60 numbers stay text, keys are text, anchors and merges work, plain words get their types."""
    pod = load(
        "base: &labels {app: x, 1: one}\napiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n"
        "  creationTimestamp: 2026-01-02T03:04:05Z\n  labels: {<<: *labels, app: y}\n"
        "  annotations: {day: 2026-01-02, clock: 12:30}\nspec:\n  priority: 0x10\n  hostNetwork: true\n"
    ).items[0][1]

    assert isinstance(pod, Pod)
    assert pod.metadata.labels == {"app": "y", "1": "one"}
    assert pod.metadata.annotations == {"day": "2026-01-02", "clock": "12:30"}
    assert pod.metadata.creation_timestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (pod.spec.priority, pod.spec.host_network) == (16, True)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param("9", "10", "10", id="the newer one last"),
        pytest.param("10", "9", "10", id="the newer one first"),
        pytest.param("", "", "last", id="without versions the last"),
        pytest.param("x1", "a2", "last", id="versions that are no numbers"),
    ],
)
def test_one_object_twice(first: str, second: str, expected: str) -> None:
    """Of one object in several states the newest stands, or the last."""

    def pod(version: str, phase: str) -> str:
        meta = {"name": "a", "resourceVersion": version}
        return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": {"phase": phase}})

    items = load(f"{pod(first, first or 'first')}\n{pod(second, second if second.isdecimal() else 'last')}\n").items

    assert len(items) == 1
    assert isinstance(items[0][1], Pod)
    assert items[0][1].status.phase == expected


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_name_that_the_api_server_would_make_is_a_name(form: str) -> None:
    """Two such manifests are two objects, even with one prefix."""
    meta = {"generateName": "warm-up-", "namespace": "x"}
    one = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
    loaded = load(json.dumps([one, one]) if form == "json" else yaml.dump_all([one, one]))

    assert names(loaded) == ["Pod x/warm-up-…", "Pod x/warm-up-…2"]
    assert problems(loaded) == []


def test_unknown_kinds_are_counted() -> None:
    """Kinds that we do not read, Secrets among them, are skipped without a word and counted."""
    loaded = load(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {token: c2VjcmV0}\n---\n"
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"
    )

    assert dict(loaded.skipped) == {"Secret": 1, "Widget.example.com": 1}
    assert (loaded.items, loaded.problems) == ([], [])


def test_folders(tmp_path: Path) -> None:
    """A folder is read however deep, in order, only what is JSON or YAML; a missing path is a problem."""
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.json").write_text("{")
    (tmp_path / "b" / "deep" / "pod.YML").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: deep}\n")
    (tmp_path / "a.json").write_text(json.dumps(POD_A))
    (tmp_path / "kubelet.log").write_text("{ not ours")
    missing = tmp_path / "missing"

    loaded = load_files([tmp_path, missing])

    assert names(loaded) == ["Pod x/a", "Pod default/deep"]
    assert problems(loaded) == [f"{missing}: no such file or folder"]


def test_a_named_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    """Only in folders does the name of a file matter."""
    path = tmp_path / "bundle.txt"
    path.write_text(json.dumps(POD_A))

    assert names(load_files([path])) == ["Pod x/a"]


def test_states() -> None:
    """A kind that the files speak of is known, were it an empty list; of others nothing is known."""
    loaded = load(json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": []}) + "\n" + json.dumps(POD_A))
    events = list(loaded.events(NOON))
    objects = loaded.objects()

    assert [e.kind for e in events if isinstance(e, Applied)] == ["Pod"]
    states = {e.kind: e.state for e in events if isinstance(e, SourceChanged)}
    assert set(states) == set(KINDS)
    assert states == objects.states
    assert {kind for kind, state in states.items() if state is SyncState.SYNCED} == {"Pod", "Node"}
    assert set(states.values()) == {SyncState.SYNCED, SyncState.NO_SOURCE}


@settings(max_examples=150)
@given(st.binary(max_size=300) | st.text(alphabet="{}[]:,-&*!|>'\"\n a1#%{", max_size=120).map(str.encode))
def test_nothing_that_is_read_raises(data: bytes) -> None:
    """Whatever stands in a file, the result is objects and problems with a place."""
    for problem in load(data).problems:
        assert problem.where.startswith("stdin")


def test_light_imports() -> None:
    """Reading JSON needs neither YAML nor a network nor a server's models: the command has to start fast."""
    heavy = "('yaml', 'aiohttp', 'asyncio', 'kubernetes', 'pydantic', 'rich')"
    code = (
        "import io, sys; from sevenhop.sources.files import load_files;"
        "load_files(['-'], io.BytesIO(b'[]'));"
        f"sys.exit(str([m for m in {heavy} if m in sys.modules] or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stderr.strip() in ("", "[]")


def test_samples_are_read() -> None:
    """Every sample manifest is read or named as a problem with its line; most are objects."""
    folder = shared_path("data/samples")
    loaded = load_files([folder])

    assert len(loaded.items) > 50
    for problem in loaded.problems:
        assert problem.where.rpartition(":")[2].isdecimal(), problem


def test_the_order_in_the_files_is_irrelevant() -> None:
    """
    The same objects in another order are the same objects, in the same order.
    """
    forth, back = (
        load(json.dumps({"kind": "List", "apiVersion": "v1", "items": i})) for i in ([POD_A, POD_B], [POD_B, POD_A])
    )

    assert list(forth.objects().pods()) == list(back.objects().pods()) == [("x", "a"), ("x", "b")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize(
    "text", [json.dumps(POD_A), "apiVersion: v1\r\nkind: Pod\r\nmetadata: {name: a, namespace: x}\r\n"]
)
def test_what_windows_writes_is_read(text: str, encoding: str) -> None:
    """A redirection in PowerShell writes UTF-16 with a byte order mark."""
    mark = "\ufeff" if encoding.endswith(("le", "be")) else ""

    loaded = load((mark + text).encode(encoding))

    assert (names(loaded), problems(loaded)) == (["Pod x/a"], [])


def test_watch_events_are_read() -> None:
    """``kubectl get --watch --output-watch-events`` wraps each object; one that is gone is not there."""
    gone = {"type": "DELETED", "object": POD_B}
    lines = [{"type": "ADDED", "object": POD_A}, {"type": "MODIFIED", "object": POD_A}]

    for text in (
        "\n".join(map(json.dumps, lines)),
        json.dumps(lines, indent=2),
        "".join(f"---\n{json.dumps(v)}\n" for v in lines),
    ):
        loaded = load(text)
        assert (names(loaded), problems(loaded)) == (["Pod x/a"], [])
    assert names(load(json.dumps(gone))) == []
