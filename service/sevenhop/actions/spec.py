"""What the table of actions says of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from sevenhop.core.objects.kinds import KINDS

Patched = tuple[str, str]
"""(name in `KINDS`, subresource or empty)"""


class Permission(msgspec.Struct, frozen=True, order=True):
    """One line of a role: verbs on one resource, subresource included (``deployments/scale``)."""

    group: str
    resource: str
    verbs: tuple[str, ...]


class ActionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """
    One action.

    Attributes:
        name: As in `action.ACTION_NAMES` and in a playbook's `steps`.
        touches: Objects and fields.
        dry_run, undo, verify: How, in a sentence.
        permissions: What it needs beyond reading, given what frameworks let it patch.
    """

    name: str
    touches: str
    dry_run: str
    undo: str
    verify: str
    permissions: Callable[[Iterable[Patched]], tuple[Permission, ...]]


def permission(kind: str, subresource: str, *verbs: str) -> Permission:
    row = KINDS[kind]
    return Permission(row.group, f"{row.plural}/{subresource}" if subresource else row.plural, verbs)
