"""
`say`: what a test counted or measured, for whoever reads the run.

Without it pytest keeps the output of tests that pass to itself, and xdist that of its workers in any case.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Say = Callable[[str], None]

_SAID = "said"


@pytest.fixture
def say(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Say:
    """Prints a line at once; from a worker of xdist, when the test has ended."""
    if hasattr(request.config, "workerinput"):
        return lambda text: request.node.user_properties.append((_SAID, text))

    def aloud(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}", end="", flush=True)

    return aloud


class Reading:
    """Prints what the workers' tests said."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        said = [text for name, text in report.user_properties if name == _SAID]
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.when == "call" and said and terminal is not None:
            terminal.write_line("")
            for text in said:
                terminal.write_line(str(text))
