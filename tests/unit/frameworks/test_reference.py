"""The rendered page, and the words for what is no object."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.frameworks import FRAMEWORKS
from sevenhop.frameworks.not_objects import why_no_object
from sevenhop.frameworks.reference import render


def test_render() -> None:
    """
    Every framework has its section, with its roots and how it scales, and no line is left hanging.
    """
    page = render()

    for spec in FRAMEWORKS:
        assert f"\n## {spec.framework}\n" in page
        assert spec.scale in page
        assert all(f"`{kind}`" in page for kind in (*spec.roots, *spec.labels, *spec.below))
    assert page.endswith("\n")
    assert page == render()


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param({"apiVersion": "v1", "kind": "Pod"}, "", id="an object"),
        pytest.param({"servingEngineSpec": {}}, "production-stack", id="production-stack values"),
        pytest.param({"modelArtifacts": {}, "decode": {}}, "llm-d", id="llm-d values"),
        pytest.param({"kind": "Pod"}, "no apiVersion", id="no apiVersion"),
        pytest.param({"a": 1}, "no apiVersion and no kind", id="anything"),
        pytest.param(["a"], "a list", id="a list"),
        pytest.param("a", "a text", id="a text"),
    ],
)
def test_why_no_object(document: Any, words: str) -> None:
    """
    What is no object is named, with what to do about it.
    """
    reason = why_no_object(document)

    assert bool(words) == bool(reason)
    assert words in reason
