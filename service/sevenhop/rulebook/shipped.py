"""Where the rules that travel with Sevenhop lie."""

from __future__ import annotations

from pathlib import Path

import sevenhop


def shipped_rules() -> Path:
    """
    The folder of shipped rules: inside the installed package, or at the top of a checkout.

    Raises:
        FileNotFoundError: Neither is there; the installation is incomplete.
    """
    package = Path(sevenhop.__file__).resolve().parent
    for folder in (package / "_data" / "rules", package.parent.parent / "rules"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the shipped rules are missing from {package}; install sevenhop again")
