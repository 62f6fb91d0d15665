"""Where a server listens; apart from the server, so that reading settings needs no web server."""

from __future__ import annotations


def parse_listen(listen: str) -> tuple[str, int]:
    """
    Host and port.

    Raises:
        ValueError: It is not ``host:port``.

    >>> parse_listen("127.0.0.1:8443"), parse_listen("[::]:0"), parse_listen(":8080")
    (('127.0.0.1', 8443), ('::', 0), ('0.0.0.0', 8080))
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"expected host:port such as 127.0.0.1:8443, got {listen!r}")
    return host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port)  # noqa: S104  asked for by its absence
