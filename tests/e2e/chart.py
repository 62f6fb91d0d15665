"""The chart as helm sees it, and what its objects say."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from sevenhop.settings import Settings, load_settings
from tests.shared import ROOT, missing
from tests.testbed.binaries import BuildFailed
from tests.testbed.tools import HELM, Tool, ensure_tool

Object = dict[str, Any]

CHART = ROOT / "helm" / "sevenhop"
CASES = sorted((CHART / "ci").glob("*-values.yaml"))

INVENTED: dict[str, str] = {"routing_key": "0123456789abcdef0123456789abcdef"}
"""Last word of a setting to a value of the right shape; others take any."""


@cache
def programs(tool: Tool = HELM) -> Path:
    """The folder with the tool's programs; the test is skipped where they cannot be had, and fails in CI."""
    try:
        return ensure_tool(tool)
    except BuildFailed as failure:
        missing(str(failure))


def helm(*words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """One helm command; it sees no cluster unless `env` names a KUBECONFIG."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("KUBE", "HELM_"))}
    command = [str(programs() / "helm"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**environ, **(env or {})})


def kubectl(kubeconfig: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(programs() / "kubectl"), f"--kubeconfig={kubeconfig}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, input=given)


def rendered(
    *values: Path | Mapping[str, Any], folder: Path, release: str = "sevenhop", namespace: str = "default"
) -> list[Object]:
    """What `helm template` makes of the chart with these values, the later wins; `folder` is for scratch files."""
    words = []
    for number, given in enumerate(values):
        path = given if isinstance(given, Path) else folder / f"values-{number}.json"
        if not isinstance(given, Path):
            path.write_text(json.dumps(given), "utf-8")
        words += ["--values", str(path)]
    made = helm("template", release, str(CHART), "--namespace", namespace, *words)
    assert made.returncode == 0, made.stderr
    return [each for each in yaml.safe_load_all(made.stdout) if each]


def of_kind(objects: Iterable[Object], kind: str) -> list[Object]:
    return [each for each in objects if each["kind"] == kind]


def pod_templates(objects: Iterable[Object]) -> dict[str, Object]:
    """Component to the template of its pods."""
    found = {}
    for each in objects:
        if each["kind"] in ("Deployment", "DaemonSet"):
            found[each["metadata"]["labels"]["app.kubernetes.io/component"]] = each["spec"]["template"]
    return found


def settings_of(objects: Iterable[Object], component: str, folder: Path) -> Settings:
    """The settings as the service of a component reads them: its file, and its environment with invented secrets."""
    objects = list(objects)
    (config,) = [each for each in of_kind(objects, "ConfigMap") if each["metadata"]["name"].endswith("-config")]
    path = folder / f"{component}.yaml"
    path.write_text(config["data"]["sevenhop.yaml"], "utf-8")
    (container,) = pod_templates(objects)[component]["spec"]["containers"]
    environ = {}
    for variable in container["env"]:
        last = variable["name"].lower().rpartition("__")[2]
        environ[variable["name"]] = variable.get("value", INVENTED.get(last, "invented"))
    return load_settings(path, environ)


def granted(role: Object) -> set[tuple[str, str, str]]:
    """(group, resource, verb) of each right."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
