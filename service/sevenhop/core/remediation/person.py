"""Who decides: a verified identity.  Verifying is done where the request comes in; what it may do is decided here."""

from __future__ import annotations

from datetime import datetime

import msgspec


class Person(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        id: The verified identity with its kind: ``slack:U0123``, ``kubernetes:alice@corp``, ``unix:root``.
        name: As people call them; shown, never compared.
        groups: Verified groups, with their kind: ``slack-group:S0123``, ``kubernetes-group:llm-oncall``.
        is_same_as: Further verified ids of the same human, so that one person does not count as two approvers.
        verified_at: When id and groups were looked up.
    """

    id: str
    name: str = ""
    groups: tuple[str, ...] = ()
    is_same_as: tuple[str, ...] = ()
    verified_at: datetime | None = None

    @property
    def ids(self) -> frozenset[str]:
        return frozenset((self.id, *self.is_same_as))

    def is_one_of(self, allowed: tuple[str, ...]) -> bool:
        """Whether a list of ids and groups names this person; nothing but equality counts."""
        return not frozenset(allowed).isdisjoint((*self.ids, *self.groups))
