"""The reference page of the frameworks, rendered from their table."""

from __future__ import annotations

from collections.abc import Sequence

from sevenhop.core.inventory.framework import FrameworkSpec
from sevenhop.core.inventory.policy import OWNER, OWNER_LABELS, TIER
from sevenhop.frameworks import FRAMEWORKS

_INTRO = f"""# Frameworks

How Sevenhop finds inference workloads, in order of precedence: where an object could be read as two things, the first
wins.  A pod is followed through its owners to the topmost root; labels join it where owners are not visible.
Everything else that serves a model is recognised by command and image.

A workload's tier is the annotation `{TIER}` on the root or the namespace, else what the settings say.  Its owner is
`{OWNER}`, else one of {", ".join(f"`{label}`" for label in OWNER_LABELS)}, as label or annotation.
"""


def render(frameworks: Sequence[FrameworkSpec] = FRAMEWORKS) -> str:
    """The page as Markdown, ending with a newline; the same for the same table."""
    lines = [_INTRO]
    lines += ["| framework | roots | found by | pods register with |", "| --- | --- | --- | --- |"]
    lines += [
        f"| [{spec.framework}](#{spec.framework}) | {_codes(spec.roots) or 'none of its own'} | {_found_by(spec)} "
        f"| {spec.registers} |"
        for spec in frameworks
    ]
    for spec in frameworks:
        lines += ["", *_section(spec)]
    return "\n".join(lines) + "\n"


def _section(spec: FrameworkSpec) -> list[str]:
    lines = [f"## {spec.framework}", "", spec.docs, "", f"- Scales by: {spec.scale}"]
    if spec.below:
        lines.append(f"- In between: {_codes(spec.below)}")
    if spec.claims:
        lines.append(f"- Takes some of: {_codes(spec.claims)}")
    if spec.labels:
        lines.append(f"- Labels: {_codes(spec.labels)}")
    lines += [f"- `{kind}` is no workload: {why}" for kind, why in spec.aside]
    return lines


def _found_by(spec: FrameworkSpec) -> str:
    ways = ["owners"] if spec.roots else []
    ways += ["labels"] if spec.labels else []
    ways += ["what runs"] if spec.claims else []
    return ", ".join(ways)


def _codes(words: Sequence[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
