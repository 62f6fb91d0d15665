"""
docs/howto/install-with-helm.md, followed: its values render, and its commands are typed, one after another.

What a test bed has not is an image, so no container runs.  KWOK plays the kubelet, and what `kubectl exec` would run in
the pod runs here, with the settings, the secrets and the account that the release has in the cluster.  `docker` and
`helm test` are left out.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.chart import of_kind, programs, rendered
from tests.e2e.processes import Run
from tests.e2e.rules import hurried_rules
from tests.e2e.scenes import scene
from tests.e2e.service import HOLD_S, Service
from tests.e2e.slack import FakeSlack, shown
from tests.fakes.slack_server import TOKEN
from tests.shared import ROOT
from tests.testbed import build
from tests.testbed.cluster import Cluster
from tests.testbed.plugin import Pool
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

NEVER_FITS = "component-never-fits"
"""The rule that the example is for."""

PAGE = (ROOT / "docs" / "howto" / "install-with-helm.md").read_text("utf-8")


def blocks(name: str) -> list[Any]:
    """The YAML blocks of the page that belong into this file."""
    return [yaml.safe_load(text) for text in re.findall(rf"```yaml\n(# {re.escape(name)}\n.*?)```", PAGE, re.DOTALL)]


@pytest.mark.parametrize("values", blocks("values.yaml"), ids=["first", "scaled"])
def test_its_values_render(values: dict[str, Any], tmp_path: Path) -> None:
    """Each file that it gives to copy is one that the chart takes."""
    assert of_kind(rendered(values, folder=tmp_path), "Deployment")


@pytest.fixture
def too_large(testbed: Cluster) -> Iterator[dict[str, Any]]:
    """Its example, gone at the end."""
    (manifest,) = blocks("too-large.yaml")
    yield manifest
    testbed.client.delete("apps/v1", "Deployment", "too-large", "default")


def test_its_example_is_told_and_ends(
    testbed: Cluster, slack: FakeSlack, start: Callable[..., Service], too_large: dict[str, Any]
) -> None:
    """`explain` knows it at once; after `for:` one message; without the deployment it ends as the page says."""
    with scene(testbed) as here:
        here.pool.add_gpu_nodes(1)
        service = start(rules=(NEVER_FITS,), name=here.namespace)
        testbed.client.create(too_large)
        said = eventually(lambda: _explained(service), timeout=20, every=0.5, what="an answer of explain")
        post = eventually(lambda: slack.posts_about("too-large"), timeout=HOLD_S + 30, what="a post")
        testbed.client.delete("apps/v1", "Deployment", "too-large", "default")
        ended = eventually(lambda: _ended(slack), timeout=30, what="the end of the message")
    assert f"pending  {NEVER_FITS}" in said
    assert len(post) == 1
    assert ended in PAGE.replace("\n", " ")


# --- typed as they stand there ---


COMMANDS = [
    line.strip()
    for block in re.findall(r"```sh\n(.*?)```", PAGE.partition("## What else")[0], re.DOTALL)
    for line in block.splitlines()
]
EXEC = "kubectl -n sevenhop exec deploy/sevenhop -- sevenhop "
LEFT_OUT = ("docker ",)


class Operator:
    """Somebody at a shell, in a folder with the page's files."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self._folder, self._cluster = folder, cluster
        tools = programs()
        self._environ = {
            **{
                name: value for name, value in os.environ.items() if not name.startswith(("SEVENHOP_", "KUBE", "HELM_"))
            },
            "KUBECONFIG": str(cluster.kubeconfig()),
            "PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HELM_DATA_HOME": str(folder),
            "HELM_CACHE_HOME": str(folder),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        self.pod: Run | None = None

    def write(self, name: str) -> None:
        """Copy a file from the page, the first of its name."""
        found = re.search(rf"```yaml\n# {re.escape(name)}\n(.*?)```", PAGE, re.DOTALL)
        assert found is not None
        (self._folder / name).write_text(found[1], "utf-8")

    def type(self, command: str) -> str:
        """What it says; a command of the pod is run where its container would be."""
        environ, words = self._environ, shlex.split(command)
        if command.startswith(EXEC):
            assert self.pod is not None
            environ = {**self.pod.environ, "SEVENHOP_CONFIG": str(self.pod.config)}
            words = [sys.executable, "-m", "sevenhop.cli.main", *shlex.split(command.removeprefix(EXEC))]
        elif words[0] == "sevenhop":
            words = [sys.executable, "-m", "sevenhop.cli.main", *words[1:]]
        done = subprocess.run(words, cwd=self._folder, env=environ, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start_container(self, slack: FakeSlack) -> None:
        """The process of the pod's container, with what the release gave it; rules are hurried, Slack is ours."""
        client = self._cluster.client
        config = self._folder / "mounted.yaml"
        config.write_text(
            client.get("v1", "ConfigMap", "sevenhop-config", "sevenhop")["data"]["sevenhop.yaml"], "utf-8"
        )
        deployment = client.get("apps/v1", "Deployment", "sevenhop", "sevenhop")
        spec = deployment["spec"]["template"]["spec"]
        run = Run(self._folder, "pod", config=config)
        for variable in spec["containers"][0]["env"]:
            if "valueFrom" not in variable:
                run.environ[variable["name"]] = variable["value"]
            elif secret := variable["valueFrom"].get("secretKeyRef"):
                data = client.get("v1", "Secret", secret["name"], "sevenhop")["data"]
                run.environ[variable["name"]] = base64.b64decode(data[secret["key"]]).decode()
        account = f"system:serviceaccount:sevenhop:{spec['serviceAccountName']}"
        run.environ |= {
            "SEVENHOP__KUBERNETES__KUBECONFIG": str(self._cluster.kubeconfig(account)),
            "SEVENHOP__RECEIVERS__TEAM__BASE_URL": slack.base_url,
            "SEVENHOP__RULES": str([str(hurried_rules(self._folder, {NEVER_FITS: f"{HOLD_S}s"}))]),
            "SEVENHOP__STATE": str(run.folder / "state"),
            "SEVENHOP__WEB__LISTEN": f"127.0.0.1:{run.port}",
        }
        self.pod = run.start()
        eventually(lambda: run.get("/readyz")[0] == 200, timeout=60, every=0.5, what=f"ready\n{run.tail()}")


@pytest.fixture
def operator(testbed: Cluster, tmp_path: Path) -> Iterator[Operator]:
    """With the repository's chart in the folder, and a node that the release's pod fits on; all gone at the end."""
    testbed.client.delete("v1", "Namespace", "sevenhop")  # others may have used it before
    eventually(lambda: testbed.client.find("v1", "Namespace", "sevenhop") is None, timeout=60, what="an empty cluster")
    (tmp_path / "helm").symlink_to(ROOT / "helm")
    pool = Pool(testbed.client, {})
    pool.add(build.cpu_node("guide-cpu"), build.gpu_node("guide-gpu"))
    made = Operator(tmp_path, testbed)
    for name in ("values.yaml", "too-large.yaml"):
        made.write(name)
    try:
        yield made
    finally:
        if made.pod is not None:
            made.pod.stop()
        made.type("helm uninstall sevenhop --namespace sevenhop --ignore-not-found")
        testbed.client.delete("apps/v1", "Deployment", "too-large", "default")
        testbed.client.delete("v1", "Namespace", "sevenhop")
        for name in pool.names:
            testbed.client.delete("v1", "Node", name)


def test_its_commands_work_in_their_order(operator: Operator, slack: FakeSlack) -> None:
    """From an empty cluster to the message and its end, each command as it stands on the page."""
    said: dict[str, str] = {}
    for command in COMMANDS:
        if command.startswith(LEFT_OUT):
            continue
        if command.startswith(EXEC) and operator.pod is None:
            operator.start_container(slack)
        if " explain " in command:
            ask = partial(_with, operator, command, NEVER_FITS)
            said["explain"] = eventually(ask, timeout=30, every=1, what="an answer of explain")
            eventually(lambda: slack.posts_about("too-large"), timeout=HOLD_S + 40, every=0.5, what="a post")
            continue
        # The only thing that is a person's own: the token.
        said[command.partition(" exec ")[2] or command] = operator.type(command.replace("xoxb-not-a-real-token", TOKEN))
    ended = eventually(lambda: _ended(slack), timeout=40, every=0.5, what="the end of the message")

    print("", *(f"{command}\n    {text.strip()[:300]}" for command, text in said.items()), sep="\n  ")
    assert any("successfully rolled out" in text for text in said.values())
    assert f"pending  {NEVER_FITS}" in said["explain"] or f"firing  {NEVER_FITS}" in said["explain"]
    assert "Every kind that the API server serves is seen" in said["deploy/sevenhop -- sevenhop doctor"]
    assert ended in PAGE.replace("\n", " ")


def _with(operator: Operator, command: str, text: str) -> str:
    found = operator.type(command)
    return found if text in found else ""


def _explained(service: Service) -> str:
    """What the page's command says, once there is something to say."""
    (words,) = re.findall(r"-- sevenhop (explain .+)", PAGE)
    answer = service.ask(*words.split())
    return answer.stdout if NEVER_FITS in answer.stdout else ""


def _ended(slack: FakeSlack) -> str:
    (message,) = slack.messages_about("too-large")
    found = re.search(r"ENDED(: [\w ]+)", shown(message))
    return f"ended{found[1].rstrip()}" if found else ""
