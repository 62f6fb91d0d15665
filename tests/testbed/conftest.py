"""Takes the fixtures of `plugin`."""

from __future__ import annotations

import pytest

from tests.testbed import plugin


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin unless another conftest did."""
    if not config.pluginmanager.has_plugin("tests.testbed.plugin"):
        # Not import_plugin: that warns if a test module has imported it already.
        config.pluginmanager.register(plugin, "tests.testbed.plugin")
