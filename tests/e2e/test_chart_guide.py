"""docs/howto/install-with-helm.md, followed: its values render, and its example is told as the page says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.chart import of_kind, rendered
from tests.e2e.scenes import scene
from tests.e2e.service import HOLD_S, Service
from tests.e2e.slack import FakeSlack, shown
from tests.shared import ROOT
from tests.testbed.cluster import Cluster
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


def _explained(service: Service) -> str:
    """What the page's command says, once there is something to say."""
    (words,) = re.findall(r"-- sevenhop (explain .+)", PAGE)
    answer = service.ask(*words.split())
    return answer.stdout if NEVER_FITS in answer.stdout else ""


def _ended(slack: FakeSlack) -> str:
    (message,) = slack.messages_about("too-large")
    found = re.search(r"ENDED(: [\w ]+)", shown(message))
    return f"ended{found[1].rstrip()}" if found else ""
