"""Which hop broke first: the earliest whose broken pods cover what is broken later."""

from __future__ import annotations

from collections.abc import Sequence

from sevenhop.core.hops.report import HopLine, HopReport, HopState
from sevenhop.core.subject import Hop


def report(lines: Sequence[HopLine]) -> HopReport:
    """All seven hops in order, with the one that broke first."""
    return HopReport(tuple(lines), first_broken(lines))


def first_broken(lines: Sequence[HopLine]) -> Hop | None:
    """
    The earliest hop whose broken pods cover what is broken later; None if nothing is broken.

    Two pods that are broken on two hops are two troubles: the earlier one then does not explain the later one, and the
    later one, which nothing explains, is what to look at.
    """
    broken = [line for line in lines if line.state is HopState.BROKEN]
    for position, line in enumerate(broken):
        later = {pod for other in broken[position + 1 :] for pod in other.pods}
        if later <= set(line.pods):
            return line.hop
    return None
