"""The chart's files that come from the code, and names that chart, image and schema must share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from docs.render import CHART, CHART_FILES
from docs.rendering.chart import PREFIX, settings_definitions
from sevenhop.channels import CHANNELS
from tests.shared import ROOT

TEMPLATES = "\n".join(path.read_text("utf-8") for path in sorted((CHART / "templates").rglob("*")) if path.is_file())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text("utf-8"))

FREE = {"config", "affinity", "updateStrategy", "requests", "limits", "nodeSelector", "rollingUpdate"}
"""Values whose keys are people's, or Kubernetes' own."""


@pytest.mark.parametrize("name", CHART_FILES)
def test_what_is_rendered_is_current(name: str) -> None:
    """A file of the chart says what the code says now."""
    assert CHART_FILES[name]() == (CHART / name).read_text("utf-8"), "run make docs"


def paths(values: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        yield (*at, key)
        if isinstance(value, dict) and key not in FREE:
            yield from paths(value, (*at, key))


def in_schema(path: tuple[str, ...]) -> bool:
    node = SCHEMA
    for key in path:
        if "$ref" in node:
            node = SCHEMA["definitions"][node["$ref"].rpartition("/")[2]]
        if key not in node.get("properties", {}):
            return False
        node = node["properties"][key]
    return True


@pytest.mark.parametrize("path", list(paths(VALUES)), ids=".".join)
def test_every_value_is_in_the_schema_and_used(path: tuple[str, ...]) -> None:
    """No value that the schema would refuse, and none that no template reads."""
    assert in_schema(path)
    if not set(path) & {"resources", "updateStrategy"}:
        assert re.search(rf"\.{re.escape(path[-1])}\b", TEMPLATES) or path[-1] in ("rules", "playbooks"), path


def test_the_schema_has_no_value_that_is_not_written_down() -> None:
    """Each of its keys has a default, and so a line to read, in values.yaml."""
    assert set(SCHEMA["properties"]) - set(VALUES) == {"global"}
    assert SCHEMA["additionalProperties"] is False


def test_the_schema_is_one_that_helm_reads() -> None:
    """Draft-07, and nothing that would have to be fetched."""
    text = json.dumps(SCHEMA)
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    references = set(re.findall(r'"\$ref": "([^"]+)"', text))
    assert {ref for ref in references if not ref.startswith("#/definitions/")} == set()
    assert {ref.rpartition("/")[2] for ref in references} <= set(SCHEMA["definitions"])
    assert "$defs" not in text


SECRET = re.compile(r"token|secret|password|routing_key")


def test_secrets_are_no_keys_of_config() -> None:
    """`config` becomes a ConfigMap: what a channel keeps secret cannot stand there, but the rest of it can."""
    definitions = settings_definitions()
    keys = {(name, key) for name, body in definitions.items() for key in body["properties"]}
    assert {(name, key) for name, key in keys if SECRET.search(key)} == set()
    for spec in CHANNELS.values():
        name = PREFIX + spec.settings.__name__.removesuffix("Settings")
        expected = {key for key in spec.settings.model_fields if not SECRET.search(key)}
        assert set(definitions[name]["properties"]) == expected
    assert ("settingsKafka", "servers") in keys


def test_what_a_secret_gives_may_be_missing() -> None:
    """Only a receiver's type is required: it tells which keys it has."""
    required = {key for body in settings_definitions().values() for key in body.get("required", ())}
    assert required == {"type"}


def test_off_without_quotes_is_a_mode() -> None:
    """YAML reads it as false."""
    mode = settings_definitions()["settingsPlaybook"]["properties"]["mode"]
    assert {"enum": ["off", "shadow", "approve", False]} in mode["anyOf"]


def test_chart_and_image_agree() -> None:
    """On the user, on the folder that is written to, and on where the shipped rules lie."""
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    assert "USER 65532:65532" in dockerfile
    assert TEMPLATES.count("runAsUser: 65532") == 1
    for folder in ("/var/lib/sevenhop", "/usr/share/sevenhop/"):
        assert folder in dockerfile
        assert folder in TEMPLATES


def test_version_is_the_code_s() -> None:
    """The chart installs the version that it lies beside."""
    from sevenhop.version import __version__

    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert (chart["appVersion"], chart["version"]) == (__version__, __version__)
    assert f"ARG VERSION={__version__}" in (ROOT / "Dockerfile").read_text("utf-8")
