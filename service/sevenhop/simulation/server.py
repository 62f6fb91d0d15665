"""The Kubernetes API over loopback HTTP, served from a `Store`."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from sevenhop.core.objects.kinds import Kind
from sevenhop.simulation import events
from sevenhop.simulation.evictions import evict
from sevenhop.simulation.faults import Call, CutError, Fault, Faults
from sevenhop.simulation.patches import PatchError, json_patch, merge_patch, strategic_patch
from sevenhop.simulation.selectors import Selection
from sevenhop.simulation.store import Change, Data, Store, StoreError

_AGGREGATED = "apidiscovery.k8s.io"
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_SCALABLE = frozenset(
    {"Deployment", "ReplicaSet", "StatefulSet", "LeaderWorkerSet", "Model", "RayCluster", "NIMService"}
)
"""Kinds with a scale subresource whose path is ``spec.replicas``."""
_KEEPS_STATUS = frozenset({"Node"})
"""Kinds whose status may come with their creation: the kubelet registers its node so."""
_LISTS_KEPT = 64
"""Paged lists in flight; older continue tokens are answered 410, as etcd's compaction does."""


class ApiServerSimulation:
    """
    Lists, watches and changes the objects of `store` as a Kubernetes API server does.

    Left out: conversion between versions (an object is the same in each), field ownership, admission, and most
    validation.

    Attributes:
        faults: What misbehaves.
        tokens: Bearer tokens that are accepted; None accepts everything.
        aggregated: Whether discovery is aggregated (since 1.26).
    """

    def __init__(
        self,
        store: Store,
        *,
        bookmark_s: float = 10.0,
        tokens: set[str] | None = None,
        aggregated: bool = True,
        version: str = "v1.36.3",
    ) -> None:
        self.store = store
        self.faults = Faults()
        self.tokens = tokens
        self.aggregated = aggregated
        self.url = ""
        self.requests: list[tuple[str, str]] = []
        """(method, path with query) of what was asked, newest last, the last thousand."""
        self._version = version
        self._bookmark_s = bookmark_s
        self._lists: dict[str, list[Data]] = {}
        self._wake: dict[str, set[asyncio.Event]] = {}
        store.listeners.append(self._on_change)

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[str]:
        """
        Listen on loopback; gives the base URL.
        """
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", port)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield self.url
        finally:
            await runner.cleanup()

    def drop_connections(self) -> None:
        """End all watches now, as a rolling restart of the API server does."""
        for kind in list(self._wake):
            for event in self._wake.pop(kind):
                event.set()

    # Requests ---------------------------------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        del self.requests[:-1000]
        try:
            return await self._answer(request)
        except StoreError as error:
            return _status(error.status, error.reason, str(error), causes=error.causes)
        except CutError:
            if request.transport is not None:
                request.transport.abort()
            raise
        except PatchError as error:
            return _status(422, "Invalid", str(error))
        except msgspec.DecodeError as error:
            return _status(400, "BadRequest", f"the body is not JSON: {error}")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        target = _Target.parse(request, self.store)
        call = Call(
            target.verb,
            target.kind.plural if target.kind else "",
            request.headers.get("Authorization", "").removeprefix("Bearer "),
            is_continued="continue" in request.query,
        )
        refusal = await self.faults.before(call)
        if refusal is not None:
            headers = {"Retry-After": refusal.retry_after} if refusal.retry_after else {}
            return _status(refusal.status, refusal.reason, refusal.message, headers)
        if self.tokens is not None and call.token not in self.tokens:
            return _status(401, "Unauthorized", "Unauthorized")
        if target.kind is None:
            return self._discovery(request)
        if target.verb == "watch":
            return await self._watch(request, target, self.faults.stream(call))
        if target.verb == "list":
            return self._list(request, target)
        answer = await self._one(request, target)
        await self.faults.after(call)
        return answer

    # Discovery --------------------------------------------------------------------------------------------------------

    def _discovery(self, request: web.Request) -> web.Response:
        parts = [part for part in request.path.split("/") if part]
        if parts == ["version"]:
            major, minor, _ = self._version.removeprefix("v").split(".", 2)
            return _json({"major": major, "minor": minor, "gitVersion": self._version, "platform": "simulation"})
        if parts in (["healthz"], ["readyz"], ["livez"]):
            return web.Response(text="ok")
        if parts in (["api"], ["apis"]):
            groups = self._groups(is_core=parts == ["api"])
            if self.aggregated and _AGGREGATED in request.headers.get("Accept", ""):
                return _json(_aggregated_discovery(groups))
            return _json(_plain_discovery(groups, is_core=parts == ["api"]))
        if parts[:1] == ["api"] and len(parts) == 2:
            return self._resources("", parts[1])
        if parts[:1] == ["apis"] and len(parts) == 3:
            return self._resources(parts[1], parts[2])
        raise StoreError(404, "NotFound", "the server could not find the requested resource")

    def _groups(self, *, is_core: bool) -> dict[str, dict[str, list[Kind]]]:
        groups: dict[str, dict[str, list[Kind]]] = {}
        for kind in self.store.kinds():
            if is_core is (kind.group == ""):
                for version in kind.versions:
                    groups.setdefault(kind.group, {}).setdefault(version, []).append(kind)
        return groups

    def _resources(self, group: str, version: str) -> web.Response:
        kinds = self._groups(is_core=group == "").get(group, {}).get(version)
        if kinds is None:
            raise StoreError(404, "NotFound", "the server could not find the requested resource")
        resources = [
            {"name": k.plural, "kind": k.kind, "namespaced": k.namespaced, "singularName": "", "verbs": _VERBS}
            for k in kinds
        ]
        name = f"{group}/{version}" if group else version
        return _json({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources})

    # Lists and watches ------------------------------------------------------------------------------------------------

    def _list(self, request: web.Request, target: _Target) -> web.Response:
        kind = target.the_kind
        limit = int(request.query.get("limit") or 0)
        token = request.query.get("continue", "")
        if token:
            revision, start = _read_token(token)
            rest = self._lists.get(token)
            if rest is None:
                raise StoreError(410, "Expired", "The provided continue parameter is too old")
        else:
            revision, start = self.store.revision, 0
            selection = Selection.parse(request.query)
            rest = [data for data in self.store.all(kind.name, target.namespace) if selection.selects(data)]
        page = rest[start : start + limit] if limit else rest[start:]
        meta: Data = {"resourceVersion": str(revision)}
        left = len(rest) - start - len(page)
        if left:
            next_token = _write_token(revision, start + len(page), len(self.requests))
            self._lists[next_token] = rest
            while len(self._lists) > _LISTS_KEPT:
                del self._lists[next(iter(self._lists))]
            meta |= {"continue": next_token, "remainingItemCount": left}
        items = b",".join(_encode(data, target) for data in page)
        head = msgspec.json.encode({"kind": f"{kind.kind}List", "apiVersion": target.api_version, "metadata": meta})
        return web.Response(body=head[:-1] + b',"items":[' + items + b"]}", content_type="application/json")

    async def _watch(self, request: web.Request, target: _Target, fault: Fault | None) -> web.StreamResponse:
        kind = target.the_kind
        selection = Selection.parse(request.query)
        asked = request.query.get("resourceVersion", "")
        with_bookmarks = request.query.get("allowWatchBookmarks", "").lower() in ("1", "true")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + float(request.query.get("timeoutSeconds") or 1800)
        wake = asyncio.Event()
        self._wake.setdefault(kind.name, set()).add(wake)
        write = (fault or Fault()).write
        try:
            lines: list[bytes] = []
            if asked in ("", "0"):
                revision = self.store.revision
                known = self.store.all(kind.name, target.namespace)
                lines += [_line("ADDED", data, target) for data in known if selection.selects(data)]
            else:
                revision = int(asked)
            while wake in self._wake.get(kind.name, ()):
                wake.clear()
                changes = self.store.changes_since(kind.name, revision)
                revision = changes[-1].revision if changes else revision
                lines += _lines(changes, selection, target)
                if lines:
                    await write(response.write, lines)
                    lines = []
                remaining_s = ends_at - loop.time()
                if remaining_s <= 0:
                    break
                try:
                    async with asyncio.timeout(min(remaining_s, self._bookmark_s)):
                        await wake.wait()
                except TimeoutError:
                    if with_bookmarks and not wake.is_set():
                        # Nothing of this kind happened since, so the newest revision of all is as good.
                        revision = self.store.revision
                        lines = [_bookmark(revision, target)]
        except StoreError as error:
            body = msgspec.json.encode(_status_data(error.status, error.reason, str(error)))
            await response.write(b'{"type":"ERROR","object":' + body + b"}\n")
        except CutError:
            if request.transport is not None:
                request.transport.abort()
            return response
        except EOFError:
            pass  # a fault that ends the answer as if it was whole
        finally:
            self._wake.get(kind.name, set()).discard(wake)
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response

    def _on_change(self, kind: str) -> None:
        for event in self._wake.get(kind, ()):
            event.set()

    # Single objects ---------------------------------------------------------------------------------------------------

    async def _one(self, request: web.Request, target: _Target) -> web.Response:
        store, kind = self.store, target.the_kind
        dry_run = request.query.get("dryRun") == "All"
        at = (kind.name, target.namespace if kind.namespaced else "", target.name)
        if target.verb == "get":
            return _json(_view(store.get(*at), target))
        if target.subresource == "eviction":
            evict(store, target.namespace, target.name, await _read_data(request), dry_run=dry_run)
            return _json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}, 201)
        if target.verb == "create":
            data = _namespaced(await _read_data(request), target)
            data = events.to_core(data) if target.group == events.GROUP else data
            if kind.name not in _KEEPS_STATUS:
                data.pop("status", None)
            return _json(_view(store.create(kind.name, data, dry_run=dry_run), target), 201)
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
            return _json(_view(gone, target))
        if target.verb == "patch":
            return await self._patch(request, target, at, dry_run=dry_run)
        if target.verb == "update":
            data = _namespaced(await _read_data(request), target)
            before = store.get(*at)
            return _json(_view(store.update(kind.name, _write(before, data, target), dry_run=dry_run), target))
        raise StoreError(405, "MethodNotAllowed", f"{request.method} is not supported here")

    async def _patch(
        self, request: web.Request, target: _Target, at: tuple[str, str, str], *, dry_run: bool
    ) -> web.Response:
        store, kind = self.store, target.the_kind
        style = request.headers.get("Content-Type", "").partition(";")[0]
        body = msgspec.json.decode(await request.read())
        manager = request.query.get("fieldManager", "")
        if style == "application/apply-patch+yaml":
            if not manager:
                raise StoreError(400, "BadRequest", "fieldManager is required for apply patch")
            if store.find(*at) is None:
                data = _managed(_namespaced(body, target), manager, "Apply")
                data["metadata"] = {**data["metadata"], "name": target.name}
                return _json(_view(store.create(kind.name, data, dry_run=dry_run), target), 201)
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
        changed = apply(_view(before, target), body)
        if not isinstance(changed, dict):
            raise PatchError("the patch leaves no object")
        after = _write(before, changed, target)
        if manager and after != before:
            after = _managed(after, manager, "Apply" if style.startswith("application/apply") else "Update")
        return _json(_view(store.update(kind.name, after, dry_run=dry_run), target))


class _Target(msgspec.Struct, frozen=True):
    """What a path and method are about; `kind` is None for discovery, `group` is the path's."""

    verb: str
    kind: Kind | None = None
    group: str = ""
    version: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def the_kind(self) -> Kind:
        assert self.kind is not None
        return self.kind

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @classmethod
    def parse(cls, request: web.Request, store: Store) -> _Target:
        parts = [part for part in request.path.split("/") if part]
        group, rest = ("", parts[1:]) if parts[:1] == ["api"] else (parts[1] if len(parts) > 1 else "", parts[2:])
        if parts[:1] not in (["api"], ["apis"]) or len(rest) < 2:
            return cls("discovery")
        version, rest = rest[0], rest[1:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        stored_in = "" if (group, rest[0]) == (events.GROUP, "events") else group
        kind = next(
            (k for k in store.kinds() if k.group == stored_in and k.plural == rest[0] and version in k.versions), None
        )
        if kind is None:
            raise StoreError(404, "NotFound", "the server could not find the requested resource")
        name = rest[1] if len(rest) > 1 else ""
        subresource = rest[2] if len(rest) > 2 else ""
        is_scale_without = subresource == "scale" and kind.kind not in _SCALABLE
        is_eviction = subresource == "eviction" and kind.name == "Pod" and request.method == "POST"
        is_known = subresource in ("", "status", "scale") or is_eviction
        if not is_known or is_scale_without or len(rest) > 3:
            raise StoreError(404, "NotFound", "the server could not find the requested resource")
        is_watch = request.query.get("watch", "").lower() in ("1", "true")
        reading = "get" if name else "watch" if is_watch else "list"
        verb = {"GET": reading, "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(
            request.method, "unknown"
        )
        if not is_eviction and bool(name) is (verb == "create") and verb != "list" and verb != "watch":
            raise StoreError(405, "MethodNotAllowed", f"{request.method} is not supported here")
        return cls(verb, kind, group, version, namespace, name, subresource)


# Views of an object ---------------------------------------------------------------------------------------------------


def _view(data: Data, target: _Target) -> Data:
    """An object, or its scale, in the version asked for."""
    if target.subresource != "scale":
        return data if data.get("apiVersion") == target.api_version else {**data, "apiVersion": target.api_version}
    spec, status, meta = data.get("spec") or {}, data.get("status") or {}, data["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    labels = ((spec.get("selector") or {}) if isinstance(spec.get("selector"), dict) else {}).get("matchLabels") or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {k: meta[k] for k in kept if k in meta},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {
            "replicas": status.get("replicas", 0),
            "selector": ",".join(f"{k}={v}" for k, v in sorted(labels.items())),
        },
    }


def _write(before: Data, written: Mapping[str, Any], target: _Target) -> Data:
    """What a write through a (sub)resource makes of an object: only its part changes."""
    meta = written.get("metadata") or {}
    guards = {k: meta[k] for k in ("uid", "resourceVersion") if meta.get(k)}
    if target.subresource == "scale":
        replicas = (written.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            raise StoreError(422, "Invalid", "spec.replicas: Invalid value: must be greater than or equal to 0")
        spec = {**(before.get("spec") or {}), "replicas": replicas}
        return {**before, "spec": spec, "metadata": {**before["metadata"], **guards}}
    if target.subresource == "status":
        return {**before, "status": written.get("status") or {}, "metadata": {**before["metadata"], **guards}}
    kept = {"status": before["status"]} if "status" in before else {}
    fixed = ("name", "namespace", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
    merged = {**meta, **{k: before["metadata"][k] for k in fixed if k in before["metadata"]}}
    return {**{k: v for k, v in written.items() if k != "status"}, **kept, "metadata": merged}


def _managed(data: Data, manager: str, operation: str) -> Data:
    meta = data["metadata"]
    others = [m for m in meta.get("managedFields") or () if (m["manager"], m["operation"]) != (manager, operation)]
    entry = {"manager": manager, "operation": operation, "apiVersion": data.get("apiVersion", "")}
    return {**data, "metadata": {**meta, "managedFields": [*others, entry]}}


def _namespaced(data: Data, target: _Target) -> Data:
    meta = dict(data.get("metadata") or {})
    if (
        target.the_kind.namespaced
        and target.namespace
        and meta.setdefault("namespace", target.namespace) != target.namespace
    ):
        raise StoreError(400, "BadRequest", "the namespace of the object does not match the namespace of the request")
    if target.name and meta.setdefault("name", target.name) != target.name:
        raise StoreError(400, "BadRequest", "the name of the object does not match the name on the URL")
    return {**data, "metadata": meta}


async def _read_data(request: web.Request) -> Data:
    body = await request.read()
    return msgspec.json.decode(body, type=dict[str, Any]) if body else {}


# Bytes ----------------------------------------------------------------------------------------------------------------


def _encode(data: Data, target: _Target) -> bytes:
    return msgspec.json.encode(_view(data, target))


def _line(change: str, data: Data, target: _Target) -> bytes:
    return b'{"type":"' + change.encode() + b'","object":' + _encode(data, target) + b"}\n"


def _lines(changes: list[Change], selection: Selection, target: _Target) -> list[bytes]:
    """Changes as this watch sees them: an object that no longer matches is deleted, one that begins to is added."""
    lines = []
    for change in changes:
        if target.namespace and change.data["metadata"].get("namespace", "") != target.namespace:
            continue
        was = change.before is not None and selection.selects(change.before)
        is_in = change.type != "DELETED" and selection.selects(change.data)
        if is_in:
            lines.append(_line("MODIFIED" if was else "ADDED", change.data, target))
        elif was:
            lines.append(_line("DELETED", change.data, target))
    return lines


def _bookmark(revision: int, target: _Target) -> bytes:
    data = {
        "kind": target.the_kind.kind,
        "apiVersion": target.api_version,
        "metadata": {"resourceVersion": str(revision), "creationTimestamp": None},
    }
    return b'{"type":"BOOKMARK","object":' + msgspec.json.encode(data) + b"}\n"


def _json(data: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(data), status=status, content_type="application/json")


def _status_data(status: int, reason: str, message: str, causes: Sequence[str] = ()) -> Data:
    return {
        **({"details": {"causes": [{"message": cause} for cause in causes]}} if causes else {}),
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": status,
    }


def _status(
    status: int, reason: str, message: str, headers: Mapping[str, str] | None = None, *, causes: Sequence[str] = ()
) -> web.Response:
    body = msgspec.json.encode(_status_data(status, reason, message, causes))
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)


def _aggregated_discovery(groups: dict[str, dict[str, list[Kind]]]) -> Data:
    items = []
    for group, versions in groups.items():
        rows = []
        for version, kinds in versions.items():
            resources = [
                {
                    "resource": k.plural,
                    "responseKind": {"group": group, "version": version, "kind": k.kind},
                    "scope": "Namespaced" if k.namespaced else "Cluster",
                    "singularResource": k.kind.lower(),
                    "verbs": _VERBS,
                }
                for k in kinds
            ]
            rows.append({"version": version, "resources": resources, "freshness": "Current"})
        items.append({"metadata": {"name": group, "creationTimestamp": None}, "versions": rows})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _plain_discovery(groups: dict[str, dict[str, list[Kind]]], *, is_core: bool) -> Data:
    if is_core:
        return {"kind": "APIVersions", "versions": list(groups.get("", {}))}
    rows = [
        {
            "name": group,
            "versions": [{"groupVersion": f"{group}/{version}", "version": version} for version in versions],
            "preferredVersion": {"groupVersion": f"{group}/{next(iter(versions))}", "version": next(iter(versions))},
        }
        for group, versions in groups.items()
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": rows}


def _write_token(revision: int, start: int, salt: int) -> str:
    return base64.urlsafe_b64encode(f"{revision}:{start}:{salt}".encode()).decode()


def _read_token(token: str) -> tuple[int, int]:
    try:
        revision, start, _ = base64.urlsafe_b64decode(token).decode().split(":")
        return int(revision), int(start)
    except ValueError:
        raise StoreError(400, "BadRequest", "continue key is not valid") from None
