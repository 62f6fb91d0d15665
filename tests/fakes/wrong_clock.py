"""Builds the library that gives a process a wrong clock (`clock/shift.c`)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.shared import missing

SOURCE = Path(__file__).parent / "clock" / "shift.c"
SHIFT = "SEVENHOP_CLOCK_SHIFT"
"""Environment variable: seconds that the process is ahead; less than 0 is behind."""


def build(folder: Path) -> Path:
    """The library, for LD_PRELOAD; the test is skipped without a C compiler, or fails if CI is set."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        missing("no C compiler: a wrong clock cannot be built")
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "libwrongclock.so"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "-o", str(made), str(SOURCE), "-ldl"], check=True)
    return made
