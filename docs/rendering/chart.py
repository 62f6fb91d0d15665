"""
helm/sevenhop/values.schema.json: the part that checks `config` comes from the settings; the rest is people's.

helm/sevenhop/files/remediation.yaml: what each action needs, and which actions each shipped playbook takes.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from docs.rendering.actions import permissions_by_action
from sevenhop.rulebook.playbook_load import load_playbooks
from sevenhop.rulebook.shipped import shipped_playbooks
from sevenhop.settings import Settings

PREFIX = "settings"
"""Names of definitions that are rendered begin so."""

SET_BY_THE_CHART: dict[str, tuple[str, ...]] = {
    "Settings": ("state", "rules", "playbooks"),
    "KubernetesSettings": ("kubeconfig", "context"),
    "RuntimeSettings": ("role", "lease"),
    "WebSettings": ("listen", "tls_certificate", "tls_key"),
}
"""Settings that other values decide: in `config` they would be overwritten in silence, so they are refused there."""

ADDRESSES = ("url",)
"""Secrets that are addresses: most hold no token, and may stand in `config`."""


def render_schema(current: str) -> str:
    """The schema `current` with what it says of `config` renewed."""
    schema = json.loads(current)
    kept = {name: value for name, value in schema["definitions"].items() if not name.startswith(PREFIX)}
    schema["definitions"] = {**kept, **settings_definitions()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def settings_definitions() -> dict[str, Any]:
    """
    The settings as definitions of JSON Schema draft-07, the root as ``settings``.

    Looser than the settings themselves, which check at the start: nothing but `type` is required, for a Secret may
    give it, and formats (durations, moments) are not looked at.  Stricter in one thing: a secret is not a key there,
    because `config` becomes a ConfigMap.
    """
    schema = Settings.model_json_schema(by_alias=True)
    sections = {"Settings": schema, **schema.pop("$defs")}
    return {_name(section): _section(section, body) for section, body in sorted(sections.items())}


_REMEDIATION = """\
# Rights of each action, and the actions of each shipped playbook with the mode of its file.  Rendered from
# service/sevenhop/actions, service/sevenhop/frameworks/scaling and playbooks by `make docs`.
"""


def render_remediation() -> str:
    """What the chart makes the role of approved plans from."""
    actions = {
        name: [{"group": p.group, "resource": p.resource, "verbs": list(p.verbs)} for p in needed]
        for name, needed in permissions_by_action().items()
    }
    playbooks = {
        book.id: {"mode": book.mode.value, "steps": list(book.steps)}
        for book in load_playbooks([shipped_playbooks()]).playbooks
    }
    data = {"actions": actions, "playbooks": playbooks}
    return _REMEDIATION + yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=120)


def _name(section: str) -> str:
    return PREFIX if section == "Settings" else f"{PREFIX}{section.removesuffix('Settings')}"


def _section(section: str, body: dict[str, Any]) -> dict[str, Any]:
    hidden = SET_BY_THE_CHART.get(section, ())
    properties = {
        key: _loosened(value)
        for key, value in body["properties"].items()
        if key not in hidden and (key in ADDRESSES or not _is_secret(value))
    }
    required = [key for key in body.get("required", ()) if key == "type"]
    found: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**found, "required": required} if required else found


def _is_secret(value: Any) -> bool:
    if isinstance(value, dict):
        return value.get("format") == "password" or any(map(_is_secret, value.values()))
    return isinstance(value, list) and any(map(_is_secret, value))


_LEFT_OUT = frozenset(("title", "default", "format", "writeOnly", "discriminator", "description"))


def _loosened(value: Any, *, names_keys: bool = False) -> Any:
    """Without what draft-07 does not know, or reads otherwise (it insists on formats)."""
    if isinstance(value, list):
        return [_loosened(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:  # draft-07 ignores what stands beside it
        return {"$ref": f"#/definitions/{_name(value['$ref'].rpartition('/')[2])}"}
    if "off" in value.get("enum", ()):
        # YAML reads `off` without quotes as false.
        return {"enum": [*value["enum"], False]}
    return {
        key: _loosened(inner, names_keys=key == "properties")
        for key, inner in value.items()
        if names_keys or key not in _LEFT_OUT
    }
