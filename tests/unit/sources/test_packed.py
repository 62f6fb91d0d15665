"""Support bundles as they are handed on: gzip, tar and both, from files, folders and standard input."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.sources.files import Loaded, load_files
from sevenhop.sources.packed import Part, unpacked


def pod(name: str) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "x"}}).encode()


YAML = b"apiVersion: v1\nkind: Pod\nmetadata: {name: y, namespace: x}\n---\nbroken: [\n"


def tar(**members: bytes) -> bytes:
    """An archive of these files, `__` in a name for ``.`` and `_SLASH_` for ``/``."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name.replace("_SLASH_", "/").replace("__", "."))
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return raw.getvalue()


def names(loaded: Loaded) -> list[str]:
    return [obj.metadata.name for _, obj in loaded.items]


def problems(loaded: Loaded) -> list[str]:
    return [f"{p.where}: {p.message}" for p in loaded.problems]


BUNDLE = tar(out_SLASH_pods__json=pod("a"), out_SLASH_more__yaml=YAML, notes__txt=b"not read", _SLASH___json=b"{}")


@pytest.mark.parametrize(
    ("file", "data"),
    [
        pytest.param("bundle.tar", BUNDLE, id="tar"),
        pytest.param("bundle.tgz", gzip.compress(BUNDLE), id="tgz"),
        pytest.param("bundle.tar.gz", gzip.compress(BUNDLE), id="tar.gz"),
        pytest.param("bundle", gzip.compress(BUNDLE), id="whatever it is called"),
    ],
)
def test_members_of_an_archive_are_files(tmp_path: Path, file: str, data: bytes) -> None:
    """Each with its own name and lines, so that a problem is found again."""
    (tmp_path / file).write_bytes(data)

    loaded = load_files([tmp_path / file])

    assert names(loaded) == ["a", "y"]
    assert [where for where, _ in (line.split(": ", 1) for line in problems(loaded))] == [
        f"{tmp_path / file}!out/more.yaml:6"
    ]


def test_a_packed_file_is_the_file(tmp_path: Path) -> None:
    """Under its own name, of a folder too, and several streams in a row are one text."""
    (tmp_path / "pods.json.gz").write_bytes(gzip.compress(pod("a") + b"\n") + gzip.compress(pod("b")))
    (tmp_path / "more.yaml.gz").write_bytes(gzip.compress(YAML))

    loaded = load_files([tmp_path])

    assert names(loaded) == ["y", "a", "b"]
    assert problems(loaded)[0].startswith(f"{tmp_path / 'more.yaml.gz'}:6: broken YAML")


@pytest.mark.parametrize("file", ["bundle.tar", "bundle.tgz", "bundle.tar.gz"])
def test_a_bundle_in_its_own_folder(tmp_path: Path, file: str) -> None:
    """Where a folder holds nothing else to read, its archives are what is meant."""
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / file).write_bytes(BUNDLE if file.endswith(".tar") else gzip.compress(BUNDLE))

    assert names(load_files([tmp_path])) == ["a", "y"]


def test_an_archive_beside_files_is_left_alone(tmp_path: Path) -> None:
    """A chart beside the objects is none of them."""
    (tmp_path / "chart.tgz").write_bytes(gzip.compress(BUNDLE))
    (tmp_path / "pods.json").write_bytes(pod("b"))

    assert names(load_files([tmp_path])) == ["b"]


@pytest.mark.parametrize("folder", [True, False], ids=["unpacked", "packed"])
def test_what_sosreport_names_after_a_command(tmp_path: Path, folder: bool) -> None:
    """It has no suffix, and tells in its name what it holds."""
    files = {"kubectl_get_-o_json_--namespace_x_pods": pod("a"), "kubectl_describe_--namespace_x_pods": b"Name: b"}
    if folder:
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
    else:
        (tmp_path / "sos.tar").write_bytes(tar(**files))

    loaded = load_files([tmp_path])

    assert (names(loaded), problems(loaded)) == (["a"], [])


def test_standard_input() -> None:
    """A pipe has no name that could tell."""
    assert names(load_files(["-"], io.BytesIO(gzip.compress(BUNDLE)))) == ["a", "y"]


def test_a_packed_member() -> None:
    """Some tools pack each file, and then all of them."""
    data = tar(pods__json__gz=gzip.compress(pod("a")))

    assert list(unpacked("b.tar", data, lambda _: True)) == [Part("b.tar!pods.json.gz", pod("a"))]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(gzip.compress(b"x" * 1001), "more than 1000 bytes unpacked", id="a gzip bomb"),
        pytest.param(
            tar(a__json=b"{}", b__json=b"x" * 1001), "more than 1000 bytes in one archive", id="a large member"
        ),
        pytest.param(tar(a__json=b"x" * 600, b__json=b"x" * 600), "more than 1000 bytes in one", id="large together"),
        pytest.param(
            tar(a__json__gz=gzip.compress(b"x" * 1001)), "more than 1000 bytes unpacked", id="a packed member"
        ),
        pytest.param(gzip.compress(pod("a"))[:-9], "ends too early", id="cut off"),
        pytest.param(b"\x1f\x8b" + b"x" * 40, "damaged", id="not gzip after all"),
        pytest.param(tar(a__json=pod("a"))[:560], "the archive cannot be read to its end", id="a cut archive"),
        pytest.param(tar(a__txt=b"x"), "the archive holds no .json", id="nothing to read"),
        pytest.param(b"PK\x03\x04....", "compressed with zip: unpack it first", id="zip"),
    ],
)
def test_what_cannot_be_unpacked_says_why(data: bytes, expected: str) -> None:
    """One line, and no more in memory than was allowed."""
    parts = list(unpacked("f", data, lambda name: name.endswith((".json", ".gz")), most=1000))

    assert expected in next(part.problem for part in parts if part.problem)
    assert sum(len(part.data) for part in parts) <= 1000


def test_a_bomb_is_not_unpacked_to_be_measured() -> None:
    """Fifty kilobytes that would be fifty megabytes stay small."""
    bomb = gzip.compress(bytes(50_000_000))
    tracemalloc.start()
    try:
        (part,) = unpacked("f", bomb, lambda _: True, most=1_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert part.problem
    assert peak < 5_000_000


def test_no_link_is_followed() -> None:
    """An archive may name any file of this machine."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        link = tarfile.TarInfo("link.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)

    assert [part.data for part in unpacked("f", raw.getvalue(), lambda _: True)] == [b""]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([BUNDLE, gzip.compress(BUNDLE)]), st.data())
def test_a_damaged_bundle_never_raises(data: bytes, draw: st.DataObject) -> None:
    """Whatever a copy over a bad line leaves of it."""
    at = draw.draw(st.integers(0, len(data) - 1))
    damaged = data[:at] + draw.draw(st.binary(max_size=4)) + data[at + draw.draw(st.integers(0, 600)) :]

    for part in unpacked("f", damaged, lambda _: True):
        assert part.problem or isinstance(part.data, bytes)
