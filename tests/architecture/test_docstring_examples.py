"""Examples in docstrings are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

from tests.shared import ROOT

_PACKAGES = ROOT / "service"
_MODULES = sorted(path for path in _PACKAGES.glob("sevenhop/**/*.py") if ">>> " in path.read_text("utf-8"))


def _name(path: Path) -> str:
    return ".".join(path.relative_to(_PACKAGES).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("name", [_name(path) for path in _MODULES])
def test_examples_in_docstrings(name: str) -> None:
    """
    What a docstring shows is what comes out.
    """
    found = doctest.testmod(import_module(name))

    assert found.attempted, "an example that is not run"
    assert not found.failed
