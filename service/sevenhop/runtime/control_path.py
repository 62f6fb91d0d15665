"""Where the local door is; apart from the door itself, so that asking needs no web server."""

from __future__ import annotations

SOCKET = "sevenhop.sock"
"""In the state folder."""
