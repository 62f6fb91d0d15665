"""Where the local door is; apart from the door itself, so that asking needs no web server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOCKET = "sevenhop.sock"
"""In the state folder."""

FITS_BYTES = 103
"""Of a socket's path without the zero at its end: `sun_path` has 108 bytes on Linux, 104 on BSD and macOS (unix(7))."""

_OPEN_FOLDERS = Path("/proc/self/fd")


@contextmanager
def way_to_door(folder: Path) -> Iterator[str]:
    """
    A path by which the door of a state folder can be bound or connected to, while the context lasts.

    A path that is too long for a socket goes by way of the opened folder, which needs Linux's /proc; without that it is
    given as it is, and whoever uses it is told that it is too long.

    Raises:
        OSError: The folder cannot be opened.
    """
    door = folder / SOCKET
    if len(os.fsencode(door)) <= FITS_BYTES or not _OPEN_FOLDERS.is_dir():
        yield str(door)
        return
    # Only as a place: that needs no right to list it, as a path does not.
    opened = os.open(folder, os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY))
    try:
        yield str(_OPEN_FOLDERS / str(opened) / SOCKET)
    finally:
        os.close(opened)
