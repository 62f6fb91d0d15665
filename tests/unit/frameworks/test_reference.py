"""The rendered page."""

from __future__ import annotations

from sevenhop.frameworks import FRAMEWORKS
from sevenhop.frameworks.reference import render


def test_render() -> None:
    """
    Every framework has its section, with its roots and how it scales, and no line is left hanging.
    """
    page = render()

    for spec in FRAMEWORKS:
        assert f"\n## {spec.framework}\n" in page
        assert spec.scale in page
        assert all(f"`{kind}`" in page for kind in (*spec.roots, *spec.labels, *spec.below))
    assert page.endswith("\n")
    assert page == render()
