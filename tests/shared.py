"""Where the shared reference data lies, if it is here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("SEVENHOP_SHARED") or ROOT.parent / "shared")


def missing(why: str) -> NoReturn:
    """A part of this machine that a test needs is not there: it is skipped on a laptop, and fails in CI."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def shared_path(relative: str) -> Path:
    """
    A file or folder of the shared data; the test that asks is skipped, by name, where it is absent.
    """
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"shared data absent: {relative} (set SEVENHOP_SHARED)", allow_module_level=True)
    return path
