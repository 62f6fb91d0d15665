"""What of a container tells what it runs, and whether that does anything at all."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from sevenhop.core.objects.pod import Container

Content = tuple[str, tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...], tuple[int, ...]]
"""Image, command, arguments, (name, value) of its environment, ports: hashable, for what is remembered of it."""

_IDLE = frozenset(
    ("sleep", "tail", "wait", "true", "cat", "echo", "trap", "hostname", "nvidia-smi", "while", "do", "done", "exit")
)


def content_of(container: Container) -> Content:
    """What of a container tells what it runs."""
    return (
        container.image,
        tuple(container.command),
        tuple(container.args),
        tuple((e.name, e.value) for e in container.env if e.value),
        tuple(port.container_port for port in container.ports),
    )


def only_waits(lines: Sequence[Sequence[str]]) -> bool:
    """Whether commands do nothing but wait, look or talk; true of none at all."""
    return all(posixpath.basename(words[0]) in _IDLE for words in lines if words)
