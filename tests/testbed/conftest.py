"""Takes the fixtures of `plugin`."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin unless another conftest did."""
    if not config.pluginmanager.has_plugin("tests.testbed.plugin"):
        config.pluginmanager.import_plugin("tests.testbed.plugin")
