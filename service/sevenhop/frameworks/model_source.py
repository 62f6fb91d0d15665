"""Where weights come from, and which release of them: ``hf://org/model:rev``, ``s3://…/v3``, ``oci://image:tag``."""

from __future__ import annotations

import re

from sevenhop.core.inventory.workloads import Model

_HUB_CACHE = re.compile(
    r"/models--(?P<org>[^/]{1,96}?)--(?P<name>[^/]{1,96})(?:/snapshots/(?P<revision>[^/]{1,96}))?/?$"
)
_HUB_PAGE = re.compile(
    r"^https?://(?:www\.)?(?:huggingface\.co|hf\.co)/(?P<name>[^/?#]+/[^/?#]+)(?:/(?:tree|resolve|blob)/(?P<revision>[^/?#]+))?"
)
_VERSION_SEGMENT = re.compile(
    r"^(v?\d+(\.\d+)*([-_.][0-9A-Za-z]+)*|[0-9a-f]{7,40}|rev(ision)?[-_]?\w+)$", re.IGNORECASE
)


def image_version(image: str) -> str:
    """
    The digest of an image, else its tag; empty for none, and for ``latest``, which says nothing.

    >>> image_version("nvcr.io/nim/meta/llama:1.12.0"), image_version("host:5000/x"), image_version("x@sha256:ab")
    ('1.12.0', '', 'sha256:ab')
    """
    name, at, digest = image.partition("@")
    if at:
        return digest
    last = name.rpartition("/")[2]
    tag = last.partition(":")[2]
    return "" if tag == "latest" else tag


def image_digest(image: str) -> str:
    """The digest that an image is pinned to; empty if it is not."""
    return image.partition("@")[2]


def image_name(image: str) -> str:
    """
    An image without registry host, tag and digest.

    >>> image_name("host:5000/nim/meta/llama-3.2-1b:1.12.0")
    'nim/meta/llama-3.2-1b'
    """
    path = image.partition("@")[0]
    head, slash, tail = path.rpartition("/")
    path = f"{head}{slash}{tail.partition(':')[0]}"
    first, _, rest = path.partition("/")
    return rest if rest and ("." in first or ":" in first or first == "localhost") else path


def from_uri(uri: str) -> Model:
    """
    The artifact's own name and release, as a storage URI states them.

    >>> from_uri("hf://Qwen/Qwen2.5-7B:abc123")
    Model(name='Qwen/Qwen2.5-7B', version='abc123', source='hf://Qwen/Qwen2.5-7B:abc123')
    >>> from_uri("gs://kfserving-examples/models/sklearn/1.0/model").version
    '1.0'
    """
    scheme, separator, path = uri.partition("://")
    if not separator:
        return from_reference(uri)
    page = _HUB_PAGE.match(uri)
    if page:
        return Model(name=page["name"], version=page["revision"] or "", source=uri)
    if scheme in ("hf", "ollama"):
        path = path.partition("?")[0]  # KubeAI's options: ?insecure=true, ?pull=false
    if scheme == "hf":
        name, _, revision = path.partition("@") if "@" in path else path.partition(":")
        return Model(name=name, version=revision, source=uri)
    if scheme.startswith("oci"):
        return Model(name=image_name(path), version=image_version(path), source=uri)
    if scheme == "ollama":
        name, _, tag = path.partition(":")
        return Model(name=path, version="" if tag == "latest" else tag, source=uri)
    bucket, _, inside = path.partition("?")[0].strip("/").partition("/")
    segments = [segment for segment in inside.split("/") if segment]
    version = next((s for s in reversed(segments) if _VERSION_SEGMENT.match(s) and not _is_size(s)), "")
    plain = [segment for segment in segments if segment != version]
    name = plain[-1] if plain else (segments[-1] if segments else bucket)
    return Model(name=name, version=version or inside, source=uri)


def _is_size(segment: str) -> bool:
    """``8b_instruction_tuned``, ``70b``: how large the model is, not which release."""
    return bool(re.match(r"^\d+(\.\d+)?[bm]([-_]|$)", segment, re.IGNORECASE))


def from_reference(reference: str) -> Model:
    """
    A model as engines take it: a name on the hub (``org/model``, ``org/model@rev``), or a path in the container.

    >>> from_reference("meta-llama/Llama-3.1-8B@abc").version, from_reference("/models/llama/v3").version
    ('abc', 'v3')
    """
    if "://" in reference:
        return from_uri(reference)
    cached = _HUB_CACHE.search(reference)
    if cached:
        return Model(name=f"{cached['org']}/{cached['name']}", version=cached["revision"] or "", source=reference)
    if reference.startswith(("/", "./", "$")):
        segments = [segment for segment in reference.split("/") if segment]
        version = segments[-1] if len(segments) > 1 and re.match(r"^v\d+(\.\d+)*$", segments[-1]) else ""
        name = segments[-2] if version else (segments[-1] if segments else "")
        return Model(name=name, version=version, source=reference)
    name, _, revision = reference.partition("@")
    return Model(name=name, version=revision, source=reference)
