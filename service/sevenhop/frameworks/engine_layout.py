"""How a model is laid out over engines: whether one does prefill or decode alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_KV_ROLES = {"kv_producer": "prefill", "kv_consumer": "decode"}
_MODES = {"prefill": "prefill", "decode": "decode", "context": "prefill", "generation": "decode"}


def role_of(flags: Mapping[str, str]) -> str:
    """``prefill`` or ``decode`` where the flags say so; empty otherwise."""
    for name in ("disaggregation-mode", "server-role"):
        role = _MODES.get(flags.get(name, "").lower())
        if role:
            return role
    if "is-prefill-worker" in flags:
        return "prefill"
    if "is-decode-worker" in flags:
        return "decode"
    dotted = _KV_ROLES.get(flags.get("kv-transfer-config.kv-role", ""), "")
    return dotted or _kv_role(flags.get("kv-transfer-config", ""))


def _kv_role(text: str) -> str:
    """The first connector that only produces or only consumes; MultiConnector hides it inside."""
    if not text:
        return ""
    try:
        found = _values_of(json.loads(text), "kv_role")
    except (ValueError, RecursionError):  # nested deeper than anything that means something
        words = sorted(set(re.findall(r"kv_producer|kv_consumer", text)))
        return _KV_ROLES[words[0]] if len(words) == 1 else ""
    roles = {_KV_ROLES[role] for role in found if role in _KV_ROLES}
    return roles.pop() if len(roles) == 1 else ""


def _values_of(data: Any, key: str) -> list[str]:
    if isinstance(data, dict):
        own: list[str] = [data[key]] if isinstance(data.get(key), str) else []
        return own + [found for value in data.values() for found in _values_of(value, key)]
    if isinstance(data, list):
        return [found for value in data for found in _values_of(value, key)]
    return []
