"""Where the rules and playbooks that travel with Sevenhop lie."""

from __future__ import annotations

from pathlib import Path

import sevenhop


def shipped_rules() -> Path:
    """
    The folder of shipped rules: inside the installed package, or at the top of a checkout.

    Raises:
        FileNotFoundError: Neither is there; the installation is incomplete.
    """
    return _shipped("rules")


def shipped_playbooks() -> Path:
    """
    The folder of shipped playbooks, likewise.

    Raises:
        FileNotFoundError: As for the rules.
    """
    return _shipped("playbooks")


def _shipped(what: str) -> Path:
    package = Path(sevenhop.__file__).resolve().parent
    for folder in (package / "_data" / what, package.parent.parent / what):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the shipped {what} are missing from {package}; install sevenhop again")
