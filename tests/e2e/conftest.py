"""One cluster for all end-to-end tests, and the parts of the service that each may start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.remediation_scenes import Open, opened_scenes
from tests.e2e.service import Service
from tests.e2e.slack import FakeSlack
from tests.testbed import plugin
from tests.testbed.cluster import ADMIN, Cluster


def pytest_configure(config: pytest.Config) -> None:
    """Register the test bed's fixtures unless another conftest did."""
    if not config.pluginmanager.has_plugin("tests.testbed.plugin"):
        config.pluginmanager.register(plugin, "tests.testbed.plugin")


@pytest.fixture(scope="module")
def slack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeSlack]:
    """A local Slack in a process of its own."""
    with FakeSlack(tmp_path_factory.mktemp("slack")) as fake:
        yield fake


@pytest.fixture
def start(testbed: Cluster, slack: FakeSlack, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Starts services that tell the console and Slack; they end with the test.  Arguments as those of `Service`."""
    started: list[Service] = []

    def start_one(*, user: str = ADMIN, **how: Any) -> Service:
        service = Service(tmp_path / f"service-{len(started)}", testbed.kubeconfig(user), slack=slack, **how)
        started.append(service)
        return service.start()

    yield start_one
    for service in started:
        service.stop()


@pytest.fixture
def opens(testbed: Cluster) -> Iterator[Open]:
    """Opens scenes in which somebody waits for GPUs; they end with the test."""
    with opened_scenes(testbed) as opens:
        yield opens
