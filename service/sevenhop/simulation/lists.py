"""Lists, in pages."""

from __future__ import annotations

import base64

import msgspec
from aiohttp import web

from sevenhop.simulation.selectors import Selection
from sevenhop.simulation.store import Data, Store, StoreError
from sevenhop.simulation.target import Target
from sevenhop.simulation.views import encode

_LISTS_KEPT = 64
"""Paged lists in flight; older continue tokens are answered 410, as etcd's compaction does."""


class Lists:
    """Those of which a client has not read the last page yet are kept as they were at the first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, list[Data]] = {}
        self._paged = 0

    def answer(self, request: web.Request, target: Target) -> web.Response:
        """
        Raises:
            StoreError: 400 a continue token that is none; 410 one that is too old.
        """
        kind = target.the_kind
        limit = int(request.query.get("limit") or 0)
        token = request.query.get("continue", "")
        if token:
            revision, start = _read_token(token)
            rest = self._kept.get(token)
            if rest is None:
                raise StoreError(410, "Expired", "The provided continue parameter is too old")
        else:
            revision, start = self._store.revision, 0
            selection = Selection.parse(request.query)
            rest = [data for data in self._store.all(kind.name, target.namespace) if selection.selects(data)]
        page = rest[start : start + limit] if limit else rest[start:]
        meta: Data = {"resourceVersion": str(revision)}
        left = len(rest) - start - len(page)
        if left:
            self._paged += 1
            next_token = _write_token(revision, start + len(page), self._paged)
            self._kept[next_token] = rest
            while len(self._kept) > _LISTS_KEPT:
                del self._kept[next(iter(self._kept))]
            meta |= {"continue": next_token, "remainingItemCount": left}
        items = b",".join(encode(data, target) for data in page)
        head = msgspec.json.encode({"kind": f"{kind.kind}List", "apiVersion": target.api_version, "metadata": meta})
        return web.Response(body=head[:-1] + b',"items":[' + items + b"]}", content_type="application/json")


def _write_token(revision: int, start: int, salt: int) -> str:
    return base64.urlsafe_b64encode(f"{revision}:{start}:{salt}".encode()).decode()


def _read_token(token: str) -> tuple[int, int]:
    try:
        revision, start, _ = base64.urlsafe_b64decode(token).decode().split(":")
        return int(revision), int(start)
    except ValueError:
        raise StoreError(400, "BadRequest", "continue key is not valid") from None
