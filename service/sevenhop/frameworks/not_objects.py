"""Files that people hand over for Kubernetes objects, and that are none."""

from __future__ import annotations

from typing import Any

_VALUES: tuple[tuple[str, str], ...] = (
    # A top-level key that only this chart's values have.
    ("servingEngineSpec", "the vLLM production-stack chart"),
    ("modelArtifacts", "the llm-d modelservice chart"),
    ("inferenceExtension", "the inference-pool chart"),
)


def why_no_object(document: Any) -> str:
    """
    Why a document of a YAML or JSON file is no Kubernetes object, and what to do; empty if it is one.

    >>> why_no_object({"servingEngineSpec": {}})
    'Helm values of the vLLM production-stack chart, no Kubernetes object; render them with `helm template`'
    """
    if not isinstance(document, dict):
        return f"expected a Kubernetes object, got {_called(document)}"
    if "apiVersion" in document and "kind" in document:
        return ""
    for key, chart in _VALUES:
        if key in document:
            return f"Helm values of {chart}, no Kubernetes object; render them with `helm template`"
    missing = [key for key in ("apiVersion", "kind") if key not in document]
    return f"no Kubernetes object: no {' and no '.join(missing)}"


def _called(document: Any) -> str:
    return {list: "a list", str: "a text", type(None): "nothing"}.get(type(document), "a bare value")
