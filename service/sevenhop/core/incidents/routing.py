"""Who is told: Alertmanager's routing tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sevenhop.core.incidents.matchers import Matcher, all_match


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """
    One node of the tree.

    Attributes:
        receiver: Name; empty inherits the parent's, at the root all receivers.
        go_on: ``continue``: siblings after this one are tried too.
    """

    matchers: tuple[Matcher, ...] = ()
    receiver: str = ""
    go_on: bool = False
    routes: tuple[Route, ...] = ()


def receivers_of(root: Route, labels: Mapping[str, str], everyone: Iterable[str]) -> tuple[str, ...]:
    """
    The receivers of one alert, in the order of the tree, each once.

    The root takes everything.  Below it the first child that matches takes the alert, and the ones after it only where
    it says `go_on`; a node none of whose children match takes the alert itself.

    Args:
        everyone: Who is told where no node names a receiver.
    """
    found: dict[str, None] = {}
    for receiver in _walk(root, labels, ""):
        for name in [receiver] if receiver else everyone:
            found[name] = None
    return tuple(found)


def _walk(route: Route, labels: Mapping[str, str], inherited: str) -> list[str]:
    receiver = route.receiver or inherited
    found: list[str] = []
    for child in route.routes:
        if all_match(child.matchers, labels):
            found += _walk(child, labels, receiver)
            if not child.go_on:
                break
    return found or [receiver]
