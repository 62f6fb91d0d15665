"""Free TCP ports on loopback."""

from __future__ import annotations

import contextlib
import random
import socket

# Below the range from which the kernel takes ports for outgoing connections (32768 on Linux), or a
# connection of somebody else could take one between our look and the program's start.
_LOWEST, _HIGHEST = 15000, 32000


def free_ports(count: int) -> list[int]:
    """Return ports nobody listens on now, at random so that two callers rarely get the same."""
    found: list[int] = []
    while len(found) < count:
        port = random.randint(_LOWEST, _HIGHEST)
        if port not in found and _is_free(port):
            found.append(port)
    return found


def listens(port: int) -> bool:
    """Does somebody accept connections on this port?"""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _is_free(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
