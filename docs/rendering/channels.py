"""docs/reference/channels.md, rendered from the table of channels."""

from __future__ import annotations

from typing import Any

import yaml

from docs.rendering.markdown import code, page
from sevenhop.channels import CHANNELS
from sevenhop.channels.spec import ChannelSpec

_INTRO = """# Channels

Rendered from `service/sevenhop/channels` by `make docs`; change the code, not this page. Every key of a channel's
settings stands in [settings](settings.md#receivers). The secrets below are invented.
"""


def render() -> str:
    """The page as Markdown."""
    parts = [_INTRO]
    for spec in CHANNELS.values():
        parts += [f"## {spec.name}", spec.summary, _network(spec), f"```yaml\n{_example(spec)}```"]
    return page(*parts)


def _network(spec: ChannelSpec) -> str:
    if not spec.addresses:
        return "Talks to nobody over the network."
    return (
        f"Talks over the network to the address in {', '.join(code(name) for name in spec.addresses)}, and to no other."
    )


def _example(spec: ChannelSpec) -> str:
    settings: dict[str, Any] = {"receivers": {"team": dict(spec.example)}}
    return yaml.safe_dump(settings, sort_keys=False, width=120)
