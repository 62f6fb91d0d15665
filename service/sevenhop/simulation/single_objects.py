"""One object: get, create, change, delete, evict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from sevenhop.simulation import events
from sevenhop.simulation.answers import answer
from sevenhop.simulation.evictions import evict
from sevenhop.simulation.patches import PatchError, json_patch, merge_patch, strategic_patch
from sevenhop.simulation.store import Data, Store, StoreError
from sevenhop.simulation.target import Target
from sevenhop.simulation.views import managed, placed, view, written

_KEEPS_STATUS = frozenset({"Node"})
"""Kinds whose status may come with their creation: the kubelet registers its node so."""


async def serve_object(store: Store, request: web.Request, target: Target) -> web.Response:
    """
    Answer a request that is about one object.

    Raises:
        StoreError: What the API server would refuse.
        PatchError: 422.
    """
    kind = target.the_kind
    dry_run = request.query.get("dryRun") == "All"
    at = (kind.name, target.namespace if kind.namespaced else "", target.name)
    if target.verb == "get":
        return answer(view(store.get(*at), target))
    if target.subresource == "eviction":
        evict(store, target.namespace, target.name, await _read_data(request), dry_run=dry_run)
        return answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}, 201)
    if target.verb == "create":
        data = placed(await _read_data(request), target)
        data = events.to_core(data) if target.group == events.GROUP else data
        if kind.name not in _KEEPS_STATUS:
            data.pop("status", None)
        return answer(view(store.create(kind.name, data, dry_run=dry_run), target), 201)
    if target.verb == "delete":
        options = await _read_data(request)
        conditions = options.get("preconditions") or {}
        grace = options.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
        gone = store.delete(
            *at,
            grace_s=None if grace is None else int(grace),
            uid=str(conditions.get("uid", "")),
            resource_version=str(conditions.get("resourceVersion", "")),
            dry_run=dry_run or options.get("dryRun") == ["All"],
        )
        return answer(view(gone, target))
    if target.verb == "patch":
        return await _patch(store, request, target, at, dry_run=dry_run)
    if target.verb == "update":
        data = placed(await _read_data(request), target)
        before = store.get(*at)
        return answer(view(store.update(kind.name, written(before, data, target), dry_run=dry_run), target))
    raise StoreError(405, "MethodNotAllowed", f"{request.method} is not supported here")


async def _patch(
    store: Store, request: web.Request, target: Target, at: tuple[str, str, str], *, dry_run: bool
) -> web.Response:
    kind = target.the_kind
    style = request.headers.get("Content-Type", "").partition(";")[0]
    body = msgspec.json.decode(await request.read())
    manager = request.query.get("fieldManager", "")
    if style == "application/apply-patch+yaml":
        if not manager:
            raise StoreError(400, "BadRequest", "fieldManager is required for apply patch")
        if store.find(*at) is None:
            data = managed(placed(body, target), manager, "Apply")
            data["metadata"] = {**data["metadata"], "name": target.name}
            return answer(view(store.create(kind.name, data, dry_run=dry_run), target), 201)
        apply: Callable[[Any, Any], Any] = strategic_patch
    elif style == "application/strategic-merge-patch+json":
        apply = strategic_patch
    elif style == "application/merge-patch+json":
        apply = merge_patch
    elif style == "application/json-patch+json":
        apply = json_patch
    else:
        raise StoreError(415, "UnsupportedMediaType", f"the body of the request was in an unknown format: {style}")
    before = store.get(*at)
    changed = apply(view(before, target), body)
    if not isinstance(changed, dict):
        raise PatchError("the patch leaves no object")
    after = written(before, changed, target)
    if manager and after != before:
        after = managed(after, manager, "Apply" if style.startswith("application/apply") else "Update")
    return answer(view(store.update(kind.name, after, dry_run=dry_run), target))


async def _read_data(request: web.Request) -> Data:
    body = await request.read()
    return msgspec.json.decode(body, type=dict[str, Any]) if body else {}
