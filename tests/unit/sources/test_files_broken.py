"""Bundles that were cut or damaged: each whole item is read as before, and one line says what is missing."""

from __future__ import annotations

import io
import json
import re
from functools import cache
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sevenhop.core import bundle
from sevenhop.core.events import SyncState
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.base import Object
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.sources.files import Loaded, load_files

Manifest = dict[str, Any]

APPLIED = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "inner"}, "spec": {"args": ["]}", "{"]}})


def load(data: bytes | str) -> Loaded:
    return load_files(["-"], io.BytesIO(data.encode() if isinstance(data, str) else data))


def problems(loaded: Loaded) -> list[str]:
    return [f"{p.where}: {p.message}" for p in loaded.problems]


def names(loaded: Loaded) -> list[str]:
    return [obj.metadata.name for _, obj in loaded.items]


def pod(name: str) -> Manifest:
    """With what looks like an end or an object inside of it: braces in texts, owners, JSON in an annotation."""
    said = '0/1 nodes are "available": 1 Insufficient nvidia.com/gpu. ü'
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "x",
            "annotations": {"applied": APPLIED},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}],
        },
        "spec": {"containers": [{"name": "c", "image": "i", "args": ["{{a}}", "]}"]}, {"name": "d", "image": "i"}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": said}]},
    }


def claims(name: str) -> Manifest:
    """Holds templates that are no objects of the cluster."""
    inner = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {}}
    spec = {"template": {"spec": {"containers": []}}, "volumeClaimTemplates": [inner, inner]}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "namespace": "x"}, "spec": spec}


ITEMS = [pod("p0"), claims("s1"), pod("p2"), claims("s3"), pod("p4")]
LIST = {"apiVersion": "v1", "items": ITEMS, "kind": "List", "metadata": {"resourceVersion": ""}}
KIND_FIRST = {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": ITEMS}

JSON_FORMS = {
    "kubectl": json.dumps(LIST, indent=4, ensure_ascii=False) + "\n",
    "compact": json.dumps(KIND_FIRST, separators=(",", ":"), ensure_ascii=False),
    "compact, kind last": json.dumps(LIST),
    "array": json.dumps(ITEMS, indent=2),
    "lines": "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in ITEMS),
    "in a row": "".join(json.dumps(item, indent=4) + "\n" for item in ITEMS),
}
YAML_FORMS = {
    "kubectl yaml": yaml.safe_dump(LIST, allow_unicode=True),
    "kind first": yaml.safe_dump(KIND_FIRST, sort_keys=False),
    "documents": yaml.safe_dump_all(ITEMS, allow_unicode=True),
}
FORMS = {name: text.encode() for name, text in (JSON_FORMS | YAML_FORMS).items()}


@cache
def whole(form: str) -> dict[str, Object]:
    return {obj.metadata.name: obj for _, obj in load(FORMS[form]).items}


@cache
def ends(form: str) -> list[int]:
    """Bytes up to the end of each item in a form of JSON."""
    text, decoder, found = JSON_FORMS[form], json.JSONDecoder(), list[int]()
    at = text.index("[", text.index('"items"')) + 1 if '"items"' in text else int(text.startswith("["))
    while (at := re.compile(r"[\s,]*").match(text, at).end()) < len(text) and text[at] == "{":  # type: ignore[union-attr]
        _, at = decoder.raw_decode(text, at)
        found.append(len(text[:at].encode()))
    return found


few = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@few
@given(st.sampled_from(list(JSON_FORMS)), st.data())
def test_a_cut_bundle_of_json_is_read_up_to_the_cut(form: str, draw: st.DataObject) -> None:
    """Every item that is complete is the same object as before, nothing else is one, and one line says the rest."""
    at = draw.draw(st.integers(1, len(FORMS[form])))
    loaded = load(FORMS[form][:at])

    complete = sum(end <= at for end in ends(form))
    assert [obj for _, obj in loaded.items] == list(whole(form).values())[:complete]
    is_missing_nothing = (
        form in ("lines", "in a row") and FORMS[form][:at].rstrip()[-1:] == b"}" and at in _line_ends(form)
    )
    is_whole = at >= len(FORMS[form].rstrip())
    assert len(loaded.problems) == (0 if is_missing_nothing or is_whole else 1), problems(loaded)


def _line_ends(form: str) -> set[int]:
    return {end + more for end in ends(form) for more in (0, 1)}


@few
@given(st.sampled_from(list(YAML_FORMS)), st.data())
def test_a_cut_bundle_of_yaml_is_read_up_to_the_cut(form: str, draw: st.DataObject) -> None:
    """Every item before the one in which the cut is; with kubectl's order of keys that one is never taken for whole."""
    at = draw.draw(st.integers(1, len(FORMS[form])))
    loaded = load(FORMS[form][:at])

    begun = len(re.findall(rb"^(?:- )?apiVersion: \S+\n(?=(?:  )?kind: [PS])", FORMS[form][:at], re.MULTILINE))
    found = {obj.metadata.name: obj for _, obj in loaded.items}
    expected = list(whole(form).items())[: max(0, begun - 1)]
    assert [item for item in found.items() if item in expected] == expected
    if form == "kubectl yaml":
        assert all(item in whole(form).items() for item in found.items())


@few
@given(st.sampled_from(list(FORMS)), st.data())
def test_a_damaged_byte_costs_one_item(form: str, draw: st.DataObject) -> None:
    """Wherever it is behind the list's beginning, and the diagnosis goes on; a template inside is never an object."""
    data = FORMS[form]
    at = draw.draw(st.integers(150, len(data) - 1))
    byte = draw.draw(st.sampled_from(list(b'"{}[],:\\\n\t -x\x00\xff')) | st.integers(0, 255))
    loaded = load(data[:at] + bytes([byte]) + data[at + 1 :])

    found = {obj.metadata.name: obj for _, obj in loaded.items}
    lost = [name for name, obj in whole(form).items() if found.get(name) != obj]
    assert len(lost) <= (1 if form in JSON_FORMS else 2), (at, byte, problems(loaded))
    assert not {"data", "inner", "r"} & set(found)
    bundle.diagnose(loaded.objects(), FRAMEWORKS, Policy(), now=None)


@few
@given(st.sampled_from(list(FORMS)), st.data())
def test_a_bundle_damaged_in_many_places_never_raises(form: str, draw: st.DataObject) -> None:
    """Bytes changed, left out and put in; every problem has its place."""
    data = bytearray(FORMS[form])
    for _ in range(draw.draw(st.integers(1, 8))):
        at = draw.draw(st.integers(0, len(data) - 1))
        data[at : at + draw.draw(st.integers(0, 40))] = draw.draw(st.binary(max_size=6))
    loaded = load(bytes(data))

    assert all(re.match(r"stdin(:\d+)?: .", line) for line in problems(loaded))
    bundle.diagnose(loaded.objects(), FRAMEWORKS, Policy(), now=None)


@pytest.mark.parametrize(
    ("text", "kept", "said"),
    [
        pytest.param(
            '{"kind":"List","apiVersion":"v1","items":[\n{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}},\n'
            '{"apiVersion":"v1","kind":"Po',
            ["a"],
            ["stdin:3: broken JSON: cut off after column 29 in item 2; 1 item before it read"],
            id="JSON cut in an item",
        ),
        pytest.param(
            '{"kind":"List","apiVersion":"v1","items":[\n{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}\n',
            ["a"],
            ["stdin:2: broken JSON: cut off after column 56 before the end of the list; 1 item before it read"],
            id="JSON cut behind an item",
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}\n{"apiVersion":"v1","kind":"Po',
            ["a"],
            ["stdin:2: broken JSON: cut off after column 29; 1 objects read"],
            id="lines",
        ),
        pytest.param(
            "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n"
            "- apiVersion: v1\n  kind: Pod\n  metadata: {name: b}\n",
            ["a"],
            ["stdin:8: broken YAML: cut off in item 2; 1 item before it read"],
            id="YAML cut between two lines",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n"
            "- apiVersion: v1\n  kind: Pod\n  metadata: {name: b\n",
            ["a"],
            ["stdin:9: broken YAML: cut off in item 2; 1 item before it read"],
            id="YAML cut in a value",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n\tmetadata: {name: a}\n"
            "- apiVersion: v1\n  kind: Pod\n  metadata: {name: b}\n",
            ["b"],
            ["stdin:6: broken YAML: found a tab character that violates indentation at column 1, in item 1, which is left out"],  # noqa: E501
            id="a tab",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nkind: Pod\n---\n"
            "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\n",
            ["b"],
            ["stdin:4: broken YAML: the key kind appears twice at column 1"],
            id="a key twice",
        ),
        pytest.param(
            '[null,\n7,\n{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}},\n{"metadata":{"name":"c"}}]',
            ["b"],
            ["stdin:1: an item that is null", "stdin:2: an item that is no object",
             "stdin:4: an item without apiVersion and kind"],
            id="items that are no objects",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n- null\n- {kind: Pod, metadata: {name: a}}\n"
            "- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n",
            ["b"],
            ["stdin:1: an item that is null", "stdin:5: an item without apiVersion"],
            id="the same in YAML",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: v1\n"
            "    kind: Pod\n    metadata: {name: a}\n  - x: [\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n",
            ["a", "b"],
            ["stdin:11: broken YAML: did not find expected node content at column 1, in item 2, which is left out"],
            id="a broken item of a List in a List",
        ),
        pytest.param(
            "apiVersion: v1\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\nkind: List\n"
            "apiVersion: v1\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n}}\nkind: List\n",
            ["a", "n"],
            [],
            id="two outputs of kubectl in one file",
        ),
        pytest.param(
            b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"x":"\xff"}}}\n',
            ["a"],
            ["stdin:1: not UTF-8"],
            id="a byte that is no text, in JSON",
        ),
        pytest.param(
            b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n"
            b"apiVersion: v1\nkind: Pod\nmetadata: {name: b, annotations: {x: caf\xe9}}\n",
            ["a", "b"],
            ["stdin:7: not UTF-8"],
            id="a byte that is no text, in YAML",
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"x":"\\ud800"}}}',
            ["a"],
            [],
            id="half of a surrogate pair",
        ),
        pytest.param(
            '{"kind":"List","apiVersion":"v1","itemz":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}]}',
            ["a"],
            ["stdin:1: List without items"],
            id="the key of the items damaged",
        ),
        pytest.param(
            '{"items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}]}', ["a"], [], id="items alone, of jq"
        ),
        pytest.param(
            '{apiVersion: v1, kind: Pod, metadata: {name: "a"}}', ["a"], [], id="YAML in braces"
        ),
    ],
)  # fmt: skip
def test_what_is_whole_is_read(text: str | bytes, kept: list[str], said: list[str]) -> None:
    """Each fault is one line with its place, and costs the item in which it is."""
    loaded = load(text)

    assert (names(loaded), problems(loaded)) == (kept, said)


@pytest.mark.parametrize("form", ["kubectl", "kubectl yaml"])
def test_what_was_cut_off_is_unknown(form: str) -> None:
    """Kinds of which nothing was read are not absent, and the last one is not fully known."""
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r", "namespace": "x"}},
        pod("p"),
        *({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{n}"}} for n in range(3)),
    ]
    document = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    text = json.dumps(document, indent=4) if form == "kubectl" else yaml.safe_dump(document)
    whole, cut = load(text).objects(), load(text[: text.index("n2") - 2]).objects()

    assert whole.states["Node"] is whole.states["Service"] is SyncState.SYNCED
    assert cut.states["Node"] is cut.states["Service"] is SyncState.NO_SOURCE
    assert cut.states["Namespace"] is SyncState.SYNCED


def test_a_flood_of_problems_is_counted() -> None:
    """A hundred lines of them say enough; the object between them is read."""
    lines = ['{"a": 1}'] * 300 + ['{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}']
    loaded = load("[" + ",\n".join(lines) + "]")

    assert names(loaded) == ["a"]
    assert len(loaded.problems) == 101
    assert problems(loaded)[-1] == "stdin: and 200 more problems like these"


@pytest.mark.parametrize("form", ["compact", "compact, kind last"])
def test_a_template_in_a_broken_owner_is_no_object(form: str) -> None:
    """Behind the damage the next thing that looks like an object is a claim's template; the list goes on after it."""
    data = FORMS[form].decode()
    loaded = load(data.replace('"template"', '"template', 1))

    assert names(loaded) == ["p0", "p2", "s3", "p4"]
