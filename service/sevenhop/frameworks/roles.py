"""Prefill and decode in names, and what is left of a name without them."""

from __future__ import annotations

import re

_WORDS = {
    "prefill": "prefill", "prefiller": "prefill", "decode": "decode", "decoder": "decode", "router": "router",
    "frontend": "frontend", "head": "head", "planner": "planner", "epp": "epp",
}  # fmt: skip
_TOKEN = re.compile(r"[-_.]?(prefill(er)?|decode(r)?)(?=$|[-_.])[-_.]?", re.IGNORECASE)
_SHORT = re.compile(r"[-_.](p|d)$")


def role_in(name: str) -> str:
    """
    Our word for a role that stands in a name; empty if none does.

    >>> role_in("qwen-prefill"), role_in("decode-cluster"), role_in("VllmDecodeWorker"), role_in("llama")
    ('prefill', 'decode', 'decode', '')
    """
    tokens = re.split(r"[-_.\s]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower())
    return next((_WORDS[token] for token in tokens if token in _WORDS), "")


def stem_of(name: str) -> str:
    """
    A name without its prefill or decode; the whole name if nothing else is in it.

    >>> stem_of("pd-modelservice-decode"), stem_of("vllm-d"), stem_of("prefill-qwen"), stem_of("decode")
    ('pd-modelservice', 'vllm', 'qwen', 'decode')
    """
    if name != (shorter := _SHORT.sub("", name)):
        return shorter
    stem = _TOKEN.sub("-", name, count=1).strip("-_.")
    return stem or name
