"""A pod whose spec has the bytes of its last version is read without it, and is what it would be in full."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.objects.decode import UndecodableError, decode
from sevenhop.core.objects.kinds import KINDS
from sevenhop.sources.kubernetes.pods import PodReader

POD = KINDS["Pod"]


def raw(*, name: str = "p", image: str = "i", label: str = "a", phase: str = "Running", spec: Any = None) -> bytes:
    made = {"nodeName": "n", "containers": [{"name": "c", "image": image, "env": [{"name": "A", "value": image}]}]}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "prod", "uid": name, "labels": {"app": label}},
            "spec": made if spec is None else spec,
            "status": {"phase": phase},
        }
    ).encode()


_VERSIONS = st.builds(
    raw,
    name=st.sampled_from("pq"),
    image=st.sampled_from("ij"),
    label=st.sampled_from("ab"),
    phase=st.sampled_from(("Running", "Failed")),
    spec=st.sampled_from((None, None, {}, {"containers": None}, {"priority": 5})),
)


@given(st.lists(_VERSIONS, max_size=12))
def test_every_version_is_what_decoding_says(versions: list[bytes]) -> None:
    """Whatever the versions before it: a pod is never one of its earlier ones, nor another pod."""
    reader = PodReader()
    for version in versions:
        assert reader.read(version) == decode(POD, version)


def test_the_same_bytes_are_the_same_spec() -> None:
    """A change of the status alone keeps spec and labels of the version before."""
    reader = PodReader()
    first, second = reader.read(raw()), reader.read(raw(phase="Failed"))
    assert second.status.phase == "Failed"
    assert second.spec is first.spec
    assert second.metadata.labels is first.metadata.labels


def test_pods_of_one_template_share() -> None:
    """The first version of each pod takes its containers from a pod like it."""
    reader = PodReader()
    assert reader.read(raw(name="p")).spec.containers is reader.read(raw(name="q")).spec.containers


def test_what_is_gone_is_forgotten() -> None:
    """A pod that is gone is not kept in memory for a namesake."""
    reader = PodReader()
    first = reader.read(raw())
    reader.forget(("prod", "p"))
    assert reader.read(raw()).spec is not first.spec


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b"{", id="no JSON"),
        pytest.param(raw(spec={"containers": [{"image": {}}]}), id="a type that no reading accepts"),
        pytest.param(raw(spec=7), id="a spec that is none"),
    ],
)
def test_what_cannot_be_decoded_is_said_as_before(bad: bytes) -> None:
    """The message is that of `decode`, after a good version too."""
    reader = PodReader()
    reader.read(raw())
    with pytest.raises(UndecodableError) as said:
        reader.read(bad)
    with pytest.raises(UndecodableError) as expected:
        decode(POD, bad)
    assert str(said.value) == str(expected.value)
