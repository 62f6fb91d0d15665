"""Where weights come from, and which release they are."""

from __future__ import annotations

import pytest

from sevenhop.frameworks.model_source import from_reference, from_uri, image_name, image_version


@pytest.mark.parametrize(
    ("uri", "name", "version"),
    [
        pytest.param("hf://Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-7B", "", id="hub"),
        pytest.param("hf://Qwen/Qwen2.5-7B:abc", "Qwen/Qwen2.5-7B", "abc", id="hub with revision"),
        pytest.param("hf://Qwen/Qwen2.5-7B@abc", "Qwen/Qwen2.5-7B", "abc", id="hub with @"),
        pytest.param("oci://ghcr.io/org/model:v3", "org/model", "v3", id="modelcar tag"),
        pytest.param("oci://ghcr.io/org/model@sha256:ab", "org/model", "sha256:ab", id="modelcar digest"),
        pytest.param("oci+native://host:5000/org/model:v1", "org/model", "v1", id="image volume"),
        pytest.param("s3://bucket/models/llama/v12", "llama", "v12", id="version folder"),
        pytest.param("gs://bucket/models/sklearn/1.0/model", "model", "1.0", id="version in the middle"),
        pytest.param("s3://bucket/llama/20260101-rc1/", "llama", "20260101-rc1", id="date"),
        pytest.param("pvc://claim/hf/8b_instruct", "8b_instruct", "hf/8b_instruct", id="a size is no version"),
        pytest.param("pvc://claim", "claim", "", id="whole claim"),
        pytest.param("https://huggingface.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "", id="page of the hub"),
        pytest.param("https://hf.co/a/b/tree/r1", "a/b", "r1", id="page of a revision"),
        pytest.param("ollama://gemma2:2b", "gemma2:2b", "2b", id="ollama"),
    ],
)
def test_from_uri(uri: str, name: str, version: str) -> None:
    """
    The release is the revision, tag or digest, else the version in the path, else the path.
    """
    model = from_uri(uri)

    assert (name, version, uri) == (model.name, model.version, model.source)


@pytest.mark.parametrize(
    ("reference", "name", "version"),
    [
        pytest.param("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B", "", id="hub"),
        pytest.param("/hub/models--a--b-8B/snapshots/0a1b2c", "a/b-8B", "0a1b2c", id="cache of the hub"),
        pytest.param("/hub/models--a--b-8B/", "a/b-8B", "", id="cache of the hub, no snapshot"),
        pytest.param("meta-llama/Llama-3.1-8B@r1", "meta-llama/Llama-3.1-8B", "r1", id="hub with revision"),
        pytest.param("/models/llama", "llama", "", id="folder"),
        pytest.param("/models/llama/v3", "llama", "v3", id="folder with version"),
        pytest.param("s3://b/llama/v2", "llama", "v2", id="an engine that streams"),
    ],
)
def test_from_reference(reference: str, name: str, version: str) -> None:
    """
    Engines take a hub name, a folder or a URI.
    """
    model = from_reference(reference)

    assert (name, version) == (model.name, model.version)


@pytest.mark.parametrize(
    ("image", "name", "version"),
    [
        ("nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8.4", "nim/meta/llama-3.1-8b-instruct", "1.8.4"),
        ("host:5000/a/b", "a/b", ""),
        ("vllm/vllm-openai:latest", "vllm/vllm-openai", ""),
        ("a/b:1@sha256:ff", "a/b", "sha256:ff"),
        ("ollama", "ollama", ""),
    ],
)
def test_images(image: str, name: str, version: str) -> None:
    """
    Registry and port are no part of the name; ``latest`` is no version, and a digest beats a tag.
    """
    assert (name, version) == (image_name(image), image_version(image))
