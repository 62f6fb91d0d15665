"""Pods of one template share their parts, and are equal to what they were."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.objects.decode import decode
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod
from sevenhop.sources.kubernetes.sharing import Sharing


def pod(image: str, labels: dict[str, str], mount: str = "") -> Pod:
    container: dict[str, Any] = {"name": "c", "image": image, "volumeMounts": [{"name": mount}]}
    raw = {"metadata": {"labels": labels}, "spec": {"containers": [container], "tolerations": [{"key": image}]}}
    made = decode(KINDS["Pod"], json.dumps(raw).encode())
    assert isinstance(made, Pod)
    return made


def test_replicas_share() -> None:
    """Equal containers, labels and tolerations are one object, whatever the unread parts say."""
    sharing, first, second = Sharing(), pod("i", {"a": "b"}, "x"), pod("i", {"a": "b"}, "y")
    sharing.share(first)
    sharing.share(second)

    assert first.spec.containers is second.spec.containers
    assert first.spec.tolerations is second.spec.tolerations
    assert first.metadata.labels is second.metadata.labels


@given(st.lists(st.tuples(st.sampled_from("ab"), st.dictionaries(st.sampled_from("xy"), st.sampled_from("12")))))
def test_sharing_changes_nothing(pods: list[tuple[str, dict[str, str]]]) -> None:
    """A pod that shares is equal to one that does not."""
    sharing = Sharing()
    for image, labels in pods:
        shared = pod(image, labels)
        sharing.share(shared)
        assert shared == pod(image, labels)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory does not grow with the history of templates."""
    monkeypatch.setattr("sevenhop.sources.kubernetes.sharing._MOST", 100)
    sharing = Sharing()
    for n in range(1000):
        sharing.share(pod(f"i:{n}", {}))

    assert len(sharing._young) + len(sharing._old) <= 200


def test_what_is_in_use_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many templates come and go: a pod shares with the one of before."""
    monkeypatch.setattr("sevenhop.sources.kubernetes.sharing._MOST", 100)
    sharing, first = Sharing(), pod("in-use", {})
    sharing.share(first)
    for n in range(1000):
        sharing.share(pod(f"i:{n}", {}))
        again = pod("in-use", {})
        sharing.share(again)
        assert again.spec.containers is first.spec.containers


def test_a_large_clusters_templates_are_all_remembered() -> None:
    """Updates come in no order: with less room than templates, each would forget what the next asks for."""
    sharing = Sharing()
    first = [pod(f"i:{n}", {"app": str(n)}) for n in range(10_000)]
    for each in first:
        sharing.share(each)
    again = [pod(f"i:{n}", {"app": str(n)}) for n in range(10_000)]
    for each in again:
        sharing.share(each)

    assert all(a.spec.containers is b.spec.containers for a, b in zip(first, again, strict=True))
